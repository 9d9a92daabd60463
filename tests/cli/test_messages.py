from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Trigmon, objects, run_cli
from tests.daemons import define


@pytest.fixture
def queue(trigmon: Trigmon, request: pytest.FixtureRequest) -> str:
    """Returns a queue of the test's own."""
    name = f"ME.{request.node.name[:40].upper()}".split("[")[0]
    assert trigmon("queue", "define", name).exit_code == 0
    return name


def test_text_is_put_and_got(trigmon: Trigmon, queue: str):
    put = trigmon("put", queue, "one order", "--priority", "7", "--persistent")
    assert put.stdout.startswith(f"1 message put on {queue}, id 414d5120")
    (shown,) = objects(trigmon("browse", queue, "--output", "json"))
    assert (shown["data"], shown["priority"], shown["persistence"]) == ("one order", 7, "persistent")
    assert (shown["format"], shown["length"]) == ("MQSTR", 9)
    assert trigmon("get", queue).stdout == "one order\n"


def test_standard_input_is_one_message(trigmon: Trigmon, queue: str):
    assert trigmon("put", queue, input="two\nlines\n").exit_code == 0
    assert objects(trigmon("get", queue, "--output", "json"))[0]["data"] == "two\nlines\n"


def test_bytes_that_are_no_text_are_got_as_they_are_and_shown_in_base64(trigmon: Trigmon, queue: str, tmp_path: Path):
    file = tmp_path / "data"
    file.write_bytes(b"\xff\x00")
    trigmon("put", queue, "--file", str(file))
    (shown,) = objects(trigmon("browse", queue, "--output", "json"))
    assert shown["data_base64"] == "/wA="
    assert "data" not in shown
    assert trigmon("get", queue).stdout_bytes == b"\xff\x00\n"


def test_raw_bytes_are_got_without_a_lines_end(trigmon: Trigmon, queue: str, qm):
    qm.put_many(queue, [b"\xff\x00", b"\n", b"end"])
    assert trigmon("get", queue, "--all", "--raw").stdout_bytes == b"\xff\x00\nend"
    assert run_cli("get", queue, "--raw", "--output", "json").exit_code == 2


def test_lines_are_messages_and_empty_ones_left_out(trigmon: Trigmon, queue: str, tmp_path: Path):
    file = tmp_path / "lines"
    file.write_text("".join(f"line {n}\n\n" for n in range(1200)))
    assert trigmon("put", queue, "--lines", str(file)).stdout == f"1200 messages put on {queue}\n"
    got = trigmon("get", queue, "--all").stdout.splitlines()
    assert got == [f"line {n}" for n in range(1200)]


def test_lines_that_do_not_all_fit_are_put_in_part_and_their_number_is_reported(
    trigmon: Trigmon, queue: str, tmp_path: Path
):
    trigmon("queue", "alter", queue, "MAXDEPTH=700")
    file = tmp_path / "lines"
    file.write_text("x\n" * 1200)
    result = trigmon("put", queue, "--lines", str(file))
    assert result.exit_code == 5
    assert f"stopped; 500 messages are put on {queue} and committed" in result.stderr
    assert "MQRC_Q_FULL (2053)" in result.stderr
    assert "MAXDEPTH" in result.stderr
    assert objects(trigmon("queue", "show", queue, "--output", "json"))[0]["current_q_depth"] == 500


def test_one_source_of_data_is_enough():
    result = run_cli("put", "Q", "text", "--file", __file__)
    assert (result.exit_code, "exclude each other" in result.stderr) == (2, True)


def test_an_empty_queue_is_no_message_and_not_an_empty_one(trigmon: Trigmon, queue: str):
    nothing = trigmon("get", queue)
    assert (nothing.exit_code, nothing.stdout) == (1, "")
    assert f"{queue} has no message" in nothing.stderr
    waited = trigmon("get", queue, "--wait", "0.05")
    assert (waited.exit_code, waited.stdout) == (7, "")
    assert "within 0.05 seconds" in waited.stderr


def test_so_many_messages_are_got_as_were_asked_for(trigmon: Trigmon, queue: str, qm):
    qm.put_many(queue, ["a", "b", "c"])
    assert trigmon("get", queue, "--count", "2").stdout == "a\nb\n"
    assert trigmon("get", queue, "--count", "2", "--wait", "0").stdout == "c\n"


def test_a_message_that_could_not_be_printed_is_back_on_the_queue(shared_daemon, queue: str, qm):
    import subprocess
    import sys

    qm.put_many(queue, ["x" * 100_000] * 5)
    argv = [sys.executable, "-m", "trigmon", "get", queue, "--all"]
    reader = subprocess.Popen(argv, env=shared_daemon.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert reader.stdout is not None
    reader.stdout.close()
    assert reader.wait(30) == 1
    assert reader.stderr is not None
    assert b"Traceback" not in reader.stderr.read()
    reader.stderr.close()
    with qm.open(queue, "inquire") as inquired:
        assert inquired.inquire("current_q_depth") == {"current_q_depth": 5}


def test_a_message_that_expires_says_how_long_it_has(trigmon: Trigmon, queue: str):
    trigmon("put", queue, "x", "--expiry", "30", "--correl-id", "C1")
    (shown,) = objects(trigmon("browse", queue, "--output", "json"))
    assert 25 < shown["expiry_s"] <= 30
    assert bytes.fromhex(shown["correl_id"]).rstrip(b"\0") == b"C1"


def test_browsing_shows_the_beginning_of_the_data_and_leaves_it(trigmon: Trigmon, queue: str, qm):
    qm.put(queue, "two\nlines " + "x" * 100)
    head, row = trigmon("browse", queue).stdout.splitlines()
    assert head.split()[-1] == "data"
    assert "two·lines xxxx" in row
    assert row.endswith("…")
    assert trigmon("browse", queue).exit_code == 0
    assert "no message" in trigmon("browse", "SYSTEM.CHANNEL.INITQ").stderr


def test_no_such_queue_is_exit_3_with_the_name(trigmon: Trigmon):
    for command in ("put", "get", "browse", "explain"):
        result = trigmon(command, "ME.NONE", *(["x"] if command == "put" else []))
        assert result.exit_code == 3, command
        assert "MQRC_UNKNOWN_OBJECT_NAME (2085): ME.NONE" in result.stderr


def test_a_queue_closed_for_puts_is_exit_5_with_the_remedy(trigmon: Trigmon, queue: str):
    trigmon("queue", "alter", queue, "PUT=DISABLED")
    result = trigmon("put", queue, "x")
    assert result.exit_code == 5
    assert result.stderr.rstrip().endswith(f"; allow puts: trigmon queue alter {queue} PUT=ENABLED")


def test_the_remedy_of_a_queue_that_triggers_no_more_is_a_command_that_serves_it(trigmon: Trigmon, queue: str, qm):
    trigmon("queue", "define", "ME.STUCK.INITQ")
    trigmon("process", "define", "ME.SERVES", "appl_id=/bin/true")
    trigmon("queue", "alter", queue, "TRIGGER", "PROCESS=ME.SERVES", "INITQ=ME.STUCK.INITQ")
    with qm.open("ME.STUCK.INITQ", "input_shared") as monitor:
        qm.put_many(queue, [b"one", b"two"])
        monitor.get()
        (verdict,) = objects(trigmon("explain", queue, "--output", "json"))
        assert verdict["fails"] == ["3"]
        remedy = next(c["remedy"] for c in verdict["conditions"] if c["number"] == "3")
        words = re.match(r"trigmon (.*?),", remedy)
        assert words
        assert trigmon(*words[1].split()).exit_code == 0
        assert monitor.get().format == "MQTRIG"


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (["put", "ME.NO", "x"], "ME.NO; trigmon queue list shows"),
        (["queue", "show", "ME.NO"], "ME.NO; trigmon queue list shows"),
        (["queue", "move", "ME.NO", "ME.NO2"], "ME.NO; trigmon queue list shows"),
        (["process", "show", "ME.NO"], "PROCESS(ME.NO); trigmon process list shows"),
        (["process", "delete", "ME.NO"], "PROCESS(ME.NO); trigmon process list shows"),
        (["runs", "show", "no"], "RUN(no); trigmon runs list --all shows"),
    ],
)
def test_an_unknown_name_is_answered_with_where_the_names_are(trigmon: Trigmon, words: list[str], where: str):
    result = trigmon(*words)
    assert result.exit_code == 3
    assert result.stderr == f"trigmon: MQRC_UNKNOWN_OBJECT_NAME (2085): {where} what there is\n"


def test_explain_prints_each_condition_with_its_evidence_and_the_remedy(trigmon: Trigmon, queue: str):
    trigmon("queue", "alter", queue, "TRIGGER", "PROCESS=ME.P", "INITQ=SYSTEM.DEFAULT.INITIATION.QUEUE")
    text = trigmon("explain", queue).stdout
    assert "would NOT write a trigger message: 6 and 8 do not hold." in text
    assert "  6  NO              the process is named and defined" in text
    assert "seen PROCESS(ME.P) is not defined; needed a defined process" in text
    assert "remedy: DEFINE PROCESS(ME.P)" in text
    assert "  9  yes             trigger control is on" in text
    assert " 14  does not apply" in text


def test_explain_is_an_object_in_json_and_an_exit_status_when_asked(trigmon: Trigmon, queue: str):
    (verdict,) = objects(trigmon("explain", queue, "--output", "json"))
    assert (verdict["q_name"], verdict["fires"]) == (queue, False)
    assert {"number", "fact", "holds", "seen", "needed", "remedy"} == set(verdict["conditions"][0])
    assert "9" in verdict["fails"]
    assert trigmon("explain", queue).exit_code == 0
    assert trigmon("explain", queue, "--exit-status").exit_code == 10


def test_why_not_shows_the_last_put_its_application_and_what_was_missing(trigmon: Trigmon, queue: str, qm):
    trigmon("queue", "alter", queue, "TRIGGER", "PROCESS=ME.P", "INITQ=SYSTEM.DEFAULT.INITIATION.QUEUE")
    qm.put(queue, b"one")
    qm.put(queue, b"two", priority=4)
    text = trigmon("explain", queue, "--why-not").stdout
    assert "  put by test, pid " in text
    assert "(put), priority 4: NO trigger message, since 6 and 8 do not hold" in text
    assert "seen PROCESS(ME.P) is not defined; needed a defined process" in text
    assert f"A put on {queue} with priority 0 would NOT write" in text.splitlines()[-1]
    (verdict,) = objects(trigmon("explain", queue, "--why-not", "--output", "json"))
    look = next(look for look in verdict["last"] if look["happened"] == "put")
    assert (look["call"], look["application"], look["priority"], look["fires"]) == ("put", "test", 4, False)
    assert look["at_time"] >= look["since_time"] > verdict["values"]["started_time"]
    assert len(look["msg_id"]) == 48


def test_explain_with_attributes_tells_of_the_altered_queue_and_alters_nothing(trigmon: Trigmon, queue: str):
    text = trigmon(
        "explain", queue, "--with", "TRIGTYPE=DEPTH", "--with", "trigger_depth=7", "--with", "TRIGGER"
    ).stdout
    assert text.splitlines()[1] == "The change itself would write no trigger message."
    assert "seen 0 waiting with priority 0 or more; needed exactly 6" in text
    assert "  9  yes             trigger control is on" in text
    assert objects(trigmon("queue", "show", queue, "--output", "json"))[0]["trigger_type"] == "first"
    wrong = trigmon("explain", queue, "--with", "TRIGTIPE=DEPTH")
    assert (wrong.exit_code, "did you mean 'TRIGTYPE'?" in wrong.stderr) == (2, True)
    assert trigmon("explain", queue, "--with", "TRIGDPTH=2", "--why-not").exit_code == 2


def test_why_not_of_a_queue_nothing_happened_to_says_since_when(trigmon: Trigmon):
    trigmon("queue", "define", "ME.QUIET")
    text = trigmon("explain", "ME.QUIET", "--why-not").stdout
    assert re.match(r"Nothing has happened to ME.QUIET since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC \(start\)", text)


def test_the_numbers_that_are_taken_for_one_another_stand_side_by_side(trigmon: Trigmon, queue: str, qm):
    trigmon("queue", "alter", queue, "TRIGMPRI=1")
    qm.put(queue, b"here")
    qm.put(queue, b"taken", priority=2)
    qm.put(queue, b"short", expiry_tenths=1, priority=1)
    with qm.open(queue, "input_shared", "output") as opened:
        opened.get(syncpoint=True)
        opened.put(b"uncommitted", syncpoint=True, priority=1)
        time.sleep(0.15)
        text = trigmon("explain", queue).stdout
        (shown,) = objects(trigmon("queue", "show", queue, "--output", "json"))
        qm.backout()
    assert text.splitlines()[2:7] == [
        "1 available: committed, not got, not expired",
        "1 put and not yet committed",
        "1 got and not yet committed, which no longer count",
        "1 expired and not yet discarded",
        "2 count for the trigger: priority 1 or more, those not yet committed and the expired among them",
    ]
    names = ("available_msgs", "uncommitted_puts", "uncommitted_gets", "expired_msgs", "qualifying_depth")
    assert [shown[name] for name in names] == [1, 1, 1, 1, 2]
    assert shown["expired_is_capped"] is False


def test_explain_says_what_would_fire(trigmon: Trigmon, queue: str, qm):
    trigmon("queue", "define", "ME.INITQ")
    trigmon("process", "define", "ME.FIRES", "appl_id=/bin/true")
    trigmon("queue", "alter", queue, "TRIGGER", "PROCESS=ME.FIRES", "INITQ=ME.INITQ")
    with qm.open("ME.INITQ", "input_shared"):
        fires = trigmon("explain", queue, "--exit-status", "--priority", "5")
    assert fires.exit_code == 0
    assert f"A put on {queue} with priority 5 would write a trigger message (by condition 1)." in fires.stdout


def test_explain_in_json_and_as_text_tell_the_same(trigmon: Trigmon, queue: str):
    text = trigmon("explain", queue).stdout
    (verdict,) = objects(trigmon("explain", queue, "--output", "json"))
    for condition in verdict["conditions"]:
        assert condition["fact"] in text


def test_an_unknown_queue_or_process_is_answered_with_the_nearest_known_name(trigmon, qm):
    define(qm, "ME.ORDERS")
    assert "ME.ORDER; the nearest known one is ME.ORDERS; trigmon queue list" in trigmon("put", "ME.ORDER", "x").stderr
    define(qm, "ME.NEAR", "PROCESS")
    shown = trigmon("process", "show", "ME.NEER").stderr
    assert "PROCESS(ME.NEER); the nearest known one is ME.NEAR; trigmon process list" in shown


def test_lines_go_on_behind_those_that_are_put(trigmon, qm, tmp_path):
    define(qm, "ME.SKIP")
    file = tmp_path / "lines"
    file.write_text("a\n\nb\nc\nd\n")
    assert trigmon("put", "ME.SKIP", "--lines", str(file), "--skip", "2").stdout == "2 messages put on ME.SKIP\n"
    with qm.open("ME.SKIP", "input_shared") as queue:
        assert [queue.get().text for _ in range(2)] == ["c", "d"]
    assert "--skip goes with --lines" in trigmon("put", "ME.SKIP", "x", "--skip", "1").stderr


def test_empty_standard_input_puts_nothing(trigmon, qm):
    define(qm, "ME.EMPTY")
    refused = trigmon("put", "ME.EMPTY", input="")
    assert (refused.exit_code, "standard input is empty" in refused.stderr) == (2, True)
    assert trigmon("put", "ME.EMPTY", "").stdout.startswith("1 message put on ME.EMPTY")
