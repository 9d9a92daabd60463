"""trigmon check: one line and an exit status say whether something is wrong."""

import os

import pytest

from tests.cli.conftest import Trigmon, run_cli
from tests.daemons import Daemon, define
from tests.waiting import until
from trigmon.mq.calls import Pause


@pytest.fixture
def own(tmp_path):
    daemon = Daemon(tmp_path).start()
    yield daemon
    daemon.end()


def check(daemon, *words):
    done = run_cli("check", *words, env=daemon.env)
    return done.exit_code, done.stdout


def test_it_is_silent_of_what_is_well_and_ends_with_1_or_2_by_what_is_not(own):
    assert check(own) == (0, "OK: nothing needs attention\n")
    with own.connect() as qm:
        define(qm, "Q", max_q_depth=10)
        qm.put_many("Q", [b"m"] * 8)
        assert check(own) == (1, "WARNING: Q: 8 of at most 10 messages (MAXDEPTH)\n")
        qm.call(Pause(what="queue", name="Q", reason="a release"))
        code, text = check(own)
        assert (code, text.startswith("WARNING: Q: "), "and 1 more: trigmon status" in text) == (1, True, True)
        define(qm, "P", "PROCESS", appl_id="/bin/true")
        armed = {"trigger_control": "on", "trigger_type": "first", "process_name": "P"}
        define(qm, "T", initiation_q_name="SYSTEM.DEFAULT.INITIATION.QUEUE", **armed)
    code, text = check(own)
    assert (code, "CRITICAL: SYSTEM.DEFAULT.INITIATION.QUEUE: no monitor reads it" in text) == (2, True)
    assert check(own, "--queue", "T") == (0, "OK: nothing needs attention\n")


def test_a_queue_is_critical_that_is_deeper_or_whose_oldest_message_is_older_than_allowed(own):
    with own.connect() as qm:
        define(qm, "Q")
        qm.put_many("Q", [b"m"] * 3)
    assert check(own, "--queue", "Q", "--max-depth", "3", "--max-age", "1h")[0] == 0
    assert check(own, "--queue", "Q", "--max-depth", "2") == (2, "CRITICAL: Q: 3 messages, more than 2\n")
    until(lambda: check(own, "--queue", "Q", "--max-age", "1s")[0] == 2)
    assert check(own, "--queue", "NONE")[0] == 3


def test_a_queue_manager_that_does_not_answer_is_critical(tmp_path):
    code, text = check(Daemon(tmp_path))
    assert (code, text.startswith("CRITICAL: ")) == (2, True)


@pytest.mark.parametrize("words", [["--max-depth", "1"], ["--repair"], ["--queue", "Q", "--store", os.curdir]], ids=str)
def test_options_that_do_not_go_together_are_refused(trigmon: Trigmon, words):
    assert trigmon("check", *words).exit_code == 2
