"""``trigmon mq-commands``, ``runmqsc`` and ``dspmq``: real processes by their names, beside a real queue manager."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import objects, run_cli
from tests.cli.mq_programs import MqPrograms
from trigmon.cli.mq_commands.command_table import MQ_COMMANDS

NO_MQ = {"PATH": "/usr/bin:/bin"}
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "from-ibm-mq.md"


@pytest.fixture(scope="module")
def mq(shared_daemon, tmp_path_factory) -> MqPrograms:
    return MqPrograms(shared_daemon, tmp_path_factory.mktemp("links"))


# -- the directory --------------------------------------------------------------------------------------------


def test_each_command_of_the_table_is_made_and_tells_its_options(mq: MqPrograms):
    assert sorted(path.name for path in mq.directory.iterdir()) == sorted(MQ_COMMANDS)
    assert mq.lines("runmqsc", "--help")[0] == f"Usage: runmqsc {MQ_COMMANDS['runmqsc'].options}"


def test_every_function_of_the_table_is_there():
    assert all(callable(command.loaded()) for command in MQ_COMMANDS.values())


def test_the_page_lists_the_commands_of_the_table():
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert rows == [
        f"| `{name} {each.options.replace('|', chr(92) + '|')}` | {each.means} | {each.statuses} |"
        for name, each in MQ_COMMANDS.items()
    ]


def test_without_a_directory_they_are_listed():
    listed = objects(run_cli("mq-commands", "--output", "json"))
    assert [row["command"] for row in listed] == list(MQ_COMMANDS)


def test_they_are_made_again_and_removed_and_nothing_else_is(tmp_path: Path):
    other = tmp_path / "other"
    other.write_text("mine")
    for _ in range(2):
        assert run_cli("mq-commands", str(tmp_path), env=NO_MQ).exit_code == 0
    assert run_cli("mq-commands", str(tmp_path), "--remove").exit_code == 0
    assert list(tmp_path.iterdir()) == [other]


def test_a_command_that_is_there_already_is_not_replaced(tmp_path: Path):
    (tmp_path / "dspmq").write_text("#!/bin/sh\necho IBM\n")
    refused = run_cli("mq-commands", str(tmp_path), env=NO_MQ)
    assert (refused.exit_code, f"{tmp_path}/dspmq is not made by trigmon" in refused.stderr) == (1, True)
    assert [path.name for path in tmp_path.iterdir()] == ["dspmq"]
    assert run_cli("mq-commands", str(tmp_path), "--remove").exit_code == 0
    assert (tmp_path / "dspmq").read_text().endswith("IBM\n")


def test_an_mq_in_path_is_shadowed_only_by_who_says_so_and_then_named(tmp_path: Path):
    theirs, ours = tmp_path / "mqm", tmp_path / "ours"
    theirs.mkdir()
    (theirs / "runmqsc").write_text("#!/bin/sh\n")
    (theirs / "runmqsc").chmod(0o755)
    path = {"PATH": f"/usr/bin:{theirs}"}
    refused = run_cli("mq-commands", str(ours), env=path)
    assert (refused.exit_code, f"{theirs}/runmqsc is on this machine" in refused.stderr) == (1, True)
    assert not ours.exists()
    made = run_cli("mq-commands", str(ours), "--beside-mq", env=path)
    assert (made.exit_code, f"{theirs}/runmqsc is shadowed" in made.stderr) == (0, True)


# -- runmqsc --------------------------------------------------------------------------------------------------


def test_runmqsc_answers_a_pipe_as_in_a_recorded_session(mq: MqPrograms):
    script = "* queues\ndefine qlocal(RM.ONE) +\n  maxdepth(7)\nDIS QL(RM.ONE) MAXDEPTH\nend\n"
    assert mq.lines("runmqsc", "QM1", stdin=script) == [
        "trigmon, MQ's commands.",
        "Starting MQSC for queue manager QM1.",
        "",
        "",
        "       : * queues",
        "     1 : define qlocal(RM.ONE) +",
        "       :   maxdepth(7)",
        "AMQ8006I: trigmon queue created.",
        "     2 : DIS QL(RM.ONE) MAXDEPTH",
        "AMQ8409I: Display Queue details.",
        "   QUEUE(RM.ONE)                           TYPE(QLOCAL)",
        "   MAXDEPTH(7)",
        "     3 : end",
        "2 MQSC commands read.",
        "No commands have a syntax error.",
        "All valid MQSC commands were processed.",
    ]


def test_runmqsc_reads_a_file_without_echo_and_the_name_may_stand_behind(mq: MqPrograms, tmp_path: Path):
    script = tmp_path / "f.mqsc"
    script.write_text("* a comment\nPING QMGR\nDEL QL(RM.NONE)\n")
    assert mq.lines("runmqsc", "-e", "-f", str(script), "QM1", status=10) == [
        *("trigmon, MQ's commands.", "Starting MQSC for queue manager QM1.", "", ""),
        "AMQ8415I: Ping trigmon Queue Manager command complete.",
        "AMQ8147E: trigmon object RM.NONE not found.",
        "   MQRC_UNKNOWN_OBJECT_NAME (2085): QLOCAL(RM.NONE)",
        "2 MQSC commands read.",
        "No commands have a syntax error.",
        "One valid MQSC command could not be processed.",
    ]


def test_runmqsc_verifies_without_doing_and_without_a_queue_manager(mq: MqPrograms):
    told = mq.lines("runmqsc", "-v", "-e", "NOBODY", stdin="DEF QL(RM.V)\nDEFN QL(A)\n", status=10)
    assert told[1] == "Starting MQSC for queue manager NOBODY."
    assert told[-2:] == ["2 MQSC commands read.", "One command has a syntax error."]
    assert mq("runmqsc", "-v", "QM1", stdin="DEF QL(RM.V)\n").returncode == 0
    assert mq("runmqsc", "QM1", stdin="DIS QL(RM.V)\n").returncode == 10


def test_runmqsc_ends_with_20_without_a_queue_manager_and_for_wrong_options(mq: MqPrograms):
    told = mq.lines("runmqsc", "-w", "5", "NOBODY", stdin="PING QMGR\n", status=20)
    assert told[2] == "AMQ8146E: trigmon queue manager not available."
    assert told[-3:] == [
        "No MQSC commands read.",
        "No commands have a syntax error.",
        "All valid MQSC commands were processed.",
    ]
    for wrong in (["-Z"], ["QM1", "QM2"], ["-f", "/nowhere", "QM1"], ["-u", "user", "QM1"], ["-w", "x", "QM1"]):
        refused = mq("runmqsc", *wrong, stdin="secret\n")
        assert (refused.returncode, refused.stdout) == (20, "")
        assert "Usage: runmqsc " in refused.stderr


def test_a_program_of_a_monitor_means_its_own_queue_manager_by_the_name(mq: MqPrograms, tmp_path: Path):
    elsewhere = {"TRIGMON_HOME": str(tmp_path)}
    assert mq("runmqsc", "QM1", stdin="PING QMGR\n", **elsewhere).returncode == 20
    by_address = elsewhere | {"TRIGMON_QMGR": mq.daemon.address}
    assert mq("runmqsc", "QM1", stdin="PING QMGR\n", **by_address).returncode == 0
    assert mq("runmqsc", "QM2", stdin="PING QMGR\n", **by_address).returncode == 20


# -- dspmq ----------------------------------------------------------------------------------------------------


def test_dspmq_lists_what_runs_and_what_has_ended(mq: MqPrograms, daemon):
    other = daemon("QM.TWO")
    mine = MqPrograms(other, mq.directory)
    column = f"{'QMNAME(QM.TWO)':<58}"
    assert mine.lines("dspmq") == [f"{column}STATUS(Running)"]
    assert mine.lines("dspmq", "-a", status=5) == [f"{column}STATUS(Running)"]
    assert mine.lines("dspmq", "-m", "QM.TWO", "-o", "status", "-o", "default") == [
        f"{column}STATUS(Running) DEFAULT(no)"
    ]
    other.stop()
    assert mine.lines("dspmq", "-mQM.TWO") == [f"{column}STATUS(Ended normally)"]
    assert mine.lines("dspmq", "-a", status=5) == []
    other.start().kill()
    assert mine.lines("dspmq") == [f"{column}STATUS(Ended unexpectedly)"]


def test_dspmq_ends_with_72_for_an_unknown_name_and_36_for_wrong_options(mq: MqPrograms):
    assert mq.lines("dspmq", "-m", "NOBODY", status=72) == []
    assert mq("dspmq", "-o", "nothing").returncode == 36
    assert mq("dspmq", "QM1").returncode == 36
