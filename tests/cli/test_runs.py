from __future__ import annotations

import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.cli.conftest import Trigmon, objects, run_cli
from tests.daemons import define
from tests.strangers import as_nobody
from trigmon.mq.calls import ChangeRun, RecordRun


def test_runs_are_listed_shown_and_their_output_read(trigmon: Trigmon, qm, tmp_path: Path):
    (tmp_path / "stdout").write_bytes(b"loaded 842\n")
    (tmp_path / "stderr").write_bytes(b"a warning\n")
    record = {"state": "exited", "process_name": "P", "q_name": "Q", "start_ms": 1_000_000, "end_ms": 1_002_500}
    record |= {"exit_status": 0, "argv": ["/bin/true", "x"], "directory": str(tmp_path), "recorded_ms": 999_000}
    qm.call(RecordRun(run_id="r1", record=record))
    qm.call(RecordRun(run_id="r2", record=record | {"state": "failed", "directory": "", "stderr_tail": "no such file"}))
    assert [row["run_id"] for row in objects(trigmon("runs", "list", "--state", "exited", "--output", "json"))] == [
        "r1"
    ]
    assert "2.5" in trigmon("runs", "list", "--queue", "Q").stdout
    (shown,) = objects(trigmon("runs", "show", "r1", "--output", "json"))
    assert (shown["argv"], shown["duration_s"], shown["start_time"]) == (
        ["/bin/true", "x"],
        2.5,
        "1970-01-01T00:16:40.000Z",
    )
    logs = trigmon("runs", "logs", "r1")
    assert (logs.stdout, logs.stderr) == ("loaded 842\n", "a warning\n")
    assert trigmon("runs", "logs", "r1", "--stream", "stderr").stdout == "a warning\n"
    assert "no such file" in trigmon("runs", "logs", "r2").stderr
    assert objects(trigmon("runs", "show", "--output", "json"))[0]["run_id"] == "r2"
    assert trigmon("runs", "show", "nope").exit_code == 3
    assert json.loads(trigmon("runs", "list", "--count", "1", "--output", "json").stdout)["run_id"] == "r2"


def test_a_run_is_shown_to_a_person_with_times_and_a_line_for_each_thing_that_held(trigmon: Trigmon, qm):
    define(qm, "SHOWN.P", "PROCESS", appl_id="true", instances=2, retry=0)
    record = {"state": "exited", "process_name": "SHOWN.P", "q_name": "Q", "first_open_ms": 1_000_000}
    qm.call(RecordRun(run_id="s1", record=record))
    qm.call(ChangeRun(run_id="s1", fields={"verdict": ["1 a message is put: yes", "9 control is on: yes"]}))
    lines = [line.split(None, 1) for line in trigmon("runs", "show", "s1").stdout.splitlines()]
    assert ["verdict", "1 a message is put: yes"] in lines
    assert ["9", "control is on: yes"] in lines
    assert ["process", "instances=2 retry=0"] in lines
    (first_open,) = [line[1] for line in lines if line[0] == "first_open_time"]
    assert re.fullmatch(r"1970-01-01T00:16:40\.000Z \(\d+ d\)", first_open)
    (shown,) = objects(trigmon("runs", "show", "s1", "--output", "json"))
    assert (shown["verdict"][1], shown["process"]) == ("9 control is on: yes", {"instances": 2, "retry": 0})


def test_a_run_is_shown_with_what_it_came_to_first_and_what_is_long_last(trigmon: Trigmon, qm):
    record = {"state": "exited", "why": "ended with status 3: no room", "exit_status": 3, "q_name": "Q", "taken": 4}
    record |= {"stderr_tail": "one\ntwo\n", "argv": ["load", "x"], "start_ms": 1_000_000, "end_ms": 1_002_000}
    qm.call(RecordRun(run_id="order1", record=record))
    keys = [line.split()[0] for line in trigmon("runs", "show", "order1").stdout.splitlines() if line[0] != " "]
    assert keys[:5] == ["run_id", "state", "why", "exit_status", "q_name"]
    assert keys[-3:] == ["argv", "verdict", "stderr_tail"]
    assert keys.index("duration_s") < keys.index("taken") < keys.index("argv")
    assert "signal" not in keys


def test_runs_are_listed_past_a_page_and_every_one_when_asked_for(trigmon: Trigmon, qm):
    for number in range(600):
        qm.call(RecordRun(run_id=f"many{number:03}", record={"state": "exited", "q_name": "MANY"}))

    def listed(*words: str) -> list[str]:
        return [
            row["run_id"] for row in objects(trigmon("runs", "list", "--queue", "MANY", "--output", "json", *words))
        ]

    newest_first = [f"many{number:03}" for number in reversed(range(600))]
    assert listed("--count", "520") == newest_first[:520]
    assert listed("--all") == newest_first
    assert listed() == newest_first[:20]


def test_what_a_run_wrote_no_longer_here_is_distinguished_from_the_record_as_far_as_it_has_it(trigmon: Trigmon, qm):
    record = {"state": "failed", "directory": "/not/here", "stderr_tail": "no such table\n", "monitor": "m@host"}
    qm.call(RecordRun(run_id="gone", record=record))
    logs = trigmon("runs", "logs", "gone", "--stream", "stderr")
    assert (logs.exit_code, logs.stdout) == (0, "no such table\n")
    assert "trigmon: /not/here is not on this host; from the record of m@host:" in logs.stderr
    output = trigmon("runs", "logs", "gone", "--stream", "stdout")
    assert (output.exit_code, output.stdout) == (1, "")
    assert "the record holds the end of its errors only" in output.stderr


@pytest.mark.parametrize("barred", ["runs", "runs/r1", "runs/r1/stdout"])
def test_what_a_run_wrote_and_another_user_may_not_read_is_distinguished_from_the_record(passable, barred: str):
    one = passable(settings={"server.socket_mode": "0666"})
    directory = one.home / "runs" / "r1"
    directory.mkdir(parents=True)
    (directory / "stdout").write_bytes(b"secret\n")
    (directory / "stderr").write_bytes(b"secret\n")
    with one.connect() as qm:
        record = {"state": "failed", "directory": str(directory), "stderr_tail": "no such table"}
        qm.call(RecordRun(run_id="r1", record=record))

    def logs() -> tuple[int, str, str]:
        result = run_cli("runs", "logs", "r1", "--qmgr", one.address)
        return result.exit_code, result.stdout, result.stderr

    assert logs() == (0, "secret\n", "secret\n")
    (one.home / barred).chmod(0)
    code, out, err = as_nobody(logs)
    assert (code, out) == (0, "")
    assert "Permission denied; from the record of its monitor:\nno such table\n" in err


SEEN = {"jobs": 2, "stages_done": 1, "stages": 3, "tasks_done": 40, "tasks": 200, "tasks_failed": 1}
APPLICATION = {
    "application_ms": 1_004_000,
    "first_rows_ms": 1_006_500,
    "progress": SEEN | {"rows_read": 70, "rows_written": 60},
}


def test_how_far_a_spark_application_is_and_how_long_it_took_to_get_there_is_shown(trigmon: Trigmon, qm):
    record = {"state": "started", "process_name": "P", "q_name": "WATCHED", "start_ms": 1_000_000}
    record |= {"recorded_ms": 999_400, "directory": "", "monitor": "m"} | APPLICATION
    qm.call(RecordRun(run_id="w1", record=record))
    far = "stages 1/3, tasks 40/200, 1 failed, rows 70 in, 60 out"
    assert far in trigmon("runs", "list", "--queue", "WATCHED").stdout
    shown = trigmon("runs", "show", "w1").stdout
    assert far in shown
    (row,) = objects(trigmon("runs", "show", "w1", "--output", "json"))
    assert (row["submit_s"], row["start_s"], row["first_row_s"]) == (0.6, 4.0, 6.5)
    assert row["progress"] == APPLICATION["progress"]
    qm.call(RecordRun(run_id="w2", record=record | {"state": "exited", "first_get_ms": 1_005_000}))
    (row,) = objects(trigmon("runs", "show", "w2", "--output", "json"))
    assert row["first_row_s"] == 5.0  # its first message is what it was started for
    assert row["progress"] == APPLICATION["progress"]
    for words in (("show", "w2"), ("list", "--queue", "WATCHED", "--state", "exited")):
        assert "stages" not in trigmon("runs", *words).stdout  # they were seen before the end
    watched = trigmon("status", "--watch", "--count", "2", "--every", "0.1").stdout
    assert watched.count(far) == watched.count("q_mgr_name") == 2
    assert far not in trigmon("status").stdout


def recorded(qm, run_id: str, **fields: object) -> None:
    qm.call(RecordRun(run_id=run_id, record={"state": "exited", "exit_status": 0} | fields))


def listed(trigmon: Trigmon, *words: str) -> list[str]:
    return [row["run_id"] for row in objects(trigmon("runs", "list", "--output", "json", *words))]


def test_failed_runs_are_those_that_could_not_start_failed_were_killed_or_ended_unseen(trigmon: Trigmon, qm):
    of = {"q_name": "FAILED.Q"}
    recorded(qm, "f1", **of)
    recorded(qm, "f2", exit_status=1, **of)
    recorded(qm, "f3", exit_status=None, signal=9, **of)
    recorded(qm, "f4", state="failed", exit_status=None, **of)
    recorded(qm, "f5", state="unknown", exit_status=None, **of)
    for number, state in enumerate(("held", "started", "cancelled", "joined"), 6):
        recorded(qm, f"f{number}", state=state, exit_status=None, **of)
    assert listed(trigmon, "--queue", "FAILED.Q", "--failed") == ["f5", "f4", "f3", "f2"]
    assert listed(trigmon, "--queue", "FAILED.Q", "--failed", "--count", "1") == ["f5"]


def test_a_list_that_is_cut_says_so(trigmon: Trigmon, qm):
    for number in range(3):
        recorded(qm, f"cut{number}", q_name="CUT")
    cut = trigmon("runs", "list", "--queue", "CUT", "--count", "2")
    assert cut.stderr == "the newest 2 are shown; more are on record: --count N, or --all\n"
    assert trigmon("runs", "list", "--queue", "CUT", "--count", "3").stderr == ""


def test_logs_follow_no_link_and_wait_for_no_pipe(trigmon: Trigmon, qm, tmp_path: Path):
    (tmp_path / "secret").write_text("a secret")
    (tmp_path / "stdout").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "stderr")
    record = {"state": "exited", "q_name": "LINKS", "directory": str(tmp_path), "stderr_tail": "no room\n"}
    qm.call(RecordRun(run_id="links", record=record))
    for stream in ([], ["--stream", "stdout"], ["--stream", "stderr"]):
        result = trigmon("runs", "logs", "links", *stream)
        assert "a secret" not in result.stdout + result.stderr
        assert "from the record of its monitor" in result.stderr


def test_logs_are_of_the_newest_run_with_a_program_of_a_queue_or_a_process_and_their_end(
    trigmon: Trigmon, qm, tmp_path: Path
):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "stdout").write_text("".join(f"{name} {line}\n" for line in range(5)))
    recorded(qm, "abc1", q_name="LOGS.ONE", process_name="LOGS.P", directory=str(tmp_path / "one"))
    recorded(qm, "abc2", q_name="LOGS.TWO", process_name="LOGS.P", directory=str(tmp_path / "two"))
    recorded(qm, "abd3", q_name="LOGS.TWO", process_name="LOGS.P", state="held", exit_status=None)
    assert trigmon("runs", "logs", "--queue", "LOGS.ONE", "--tail", "2").stdout == "one 3\none 4\n"
    assert trigmon("runs", "logs", "--process", "LOGS.P", "--tail", "1").stdout == "two 4\n"
    assert trigmon("runs", "logs", "abc2", "--tail", "0").stdout == ""
    assert trigmon("runs", "logs", "--queue", "LOGS.ONE", "--tail", "99").stdout.count("\n") == 5
    (shown,) = objects(trigmon("runs", "show", "abd", "--output", "json"))
    assert shown["run_id"] == "abd3"
    several = trigmon("runs", "show", "abc")
    assert (several.exit_code, "several runs begin with abc: abc1 and abc2" in several.stderr) == (2, True)
    assert trigmon("runs", "logs", "abc2", "--queue", "LOGS.TWO").exit_code == 2
    nothing = trigmon("runs", "logs", "--queue", "LOGS.NONE")
    assert (nothing.exit_code, "none is on record of Q_NAME(LOGS.NONE)" in nothing.stderr) == (3, True)


def test_runs_of_a_day_or_a_span_are_those_that_were_recorded_in_it(trigmon: Trigmon, qm):
    for day in (19, 20, 21):
        at = datetime(2025, 11, day, 9, 30, tzinfo=UTC)
        recorded(qm, f"day{day}", q_name="DAYS", recorded_ms=round(at.timestamp() * 1000))
    days = ("--queue", "DAYS")
    assert listed(trigmon, *days, "--since", "2025-11-20") == ["day21", "day20"]
    assert listed(trigmon, *days, "--until", "2025-11-20") == ["day19"]
    assert listed(trigmon, *days, "--since", "2025-11-20T09:30", "--until", "2025-11-20T09:31") == ["day20"]
    assert listed(trigmon, *days, "--since", "2025-11-21T11:30+02:00") == ["day21"]
    assert listed(trigmon, *days, "--since", "yesterday") == listed(trigmon, *days, "--since", "1d") == []
    assert listed(trigmon, *days, "--until", "today") == ["day21", "day20", "day19"]
    wrong = trigmon("runs", "list", "--since", "2025-13-01")
    assert (wrong.exit_code, "is no day or time such as 2026-11-21" in wrong.stderr) == (2, True)
