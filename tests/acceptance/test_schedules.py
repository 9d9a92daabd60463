"""A schedule through a real daemon, monitor and program: the record of its run, and the tries of one that fails."""

from __future__ import annotations

import pytest

from tests.daemons import define
from tests.waiting import until
from trigmon.mq.calls import Delete, Runs

INITQ = "SYSTEM.DEFAULT.INITIATION.QUEUE"


@pytest.mark.parametrize("subject", ["queue", "process"])
def test_a_schedule_starts_a_program_and_its_run_names_the_moment(daemon, subject):
    one = daemon(with_monitor=True)
    with one.connect() as qm:
        define(qm, "P", "PROCESS", appl_id="printenv TRIGMON_OCCASION", tmc_argument="no")
        define(qm, "Q", process_name="P", initiation_q_name=INITQ)
        starts = {"q_name": "Q"} if subject == "queue" else {"process_name": "P"}
        define(qm, "S", "SCHEDULE", every_s=1, **starts)
        (run, *_) = until(lambda: qm.call(Runs(where={"state": "exited"})).rows)
        qm.call(Delete(object_type="SCHEDULE", name="S"))
    assert (run["schedule"], run["occasion"], run["exit_status"]) == ("S", "S", 0)
    assert (run["q_name"], run["process_name"]) == ("Q" if subject == "queue" else "", "P")
    assert run["moment_ms"] % 1000 == 0
    assert 0 <= run["triggered_ms"] - run["moment_ms"] < 60_000
    assert any("SCHEDULE(S), 0 waiting" in line for line in run["verdict"])
    assert one.trigmon("runs", "logs", run["run_id"]).stdout == "S\n"


@pytest.mark.parametrize("subject", ["queue", "process"])
def test_a_program_that_fails_is_tried_again_though_no_message_waits(daemon, subject):
    one = daemon(with_monitor=True)
    with one.connect() as qm:
        define(qm, "P", "PROCESS", appl_id="false", tmc_argument="no", retry=2, retry_wait_s=1)
        define(qm, "Q", process_name="P", initiation_q_name=INITQ)
        starts = {"q_name": "Q"} if subject == "queue" else {"process_name": "P"}
        define(qm, "S", "SCHEDULE", cron="0 0 29 2 *", **starts)
        until(lambda: one.trigmon("schedule", "run", "S").returncode == 0)  # when a monitor listens

        def tries() -> list[int]:
            runs = qm.call(Runs(where={"schedule": "S", "state": "exited"})).rows
            return sorted(run["attempt"] for run in runs)

        until(lambda: len(tries()) >= 3)
        assert tries() == [1, 2, 3]
        assert len({run["moment_ms"] for run in qm.call(Runs()).rows}) == 1
