"""``dmpmqcfg``, ``setmqaut`` and ``dspmqaut`` by their names."""

from __future__ import annotations

import pytest

from tests.cli.mq_programs import MqPrograms
from trigmon.mq.compatibility import COMMAND_LEVEL


@pytest.fixture(scope="module")
def mq(shared_daemon, tmp_path_factory) -> MqPrograms:
    made = MqPrograms(shared_daemon, tmp_path_factory.mktemp("links"))
    script = "DEF QL(D.ONE) MAXDEPTH(7) DESCR('it''s one')\nDEF PROCESS(D.PROC) APPLICID('/bin/true')\nDEF QL(D.TWO)\n"
    assert made("runmqsc", "QM1", stdin=script).returncode == 0
    return made


# -- dmpmqcfg -------------------------------------------------------------------------------------------------


def test_dmpmqcfg_writes_a_script_that_another_queue_manager_loads(mq: MqPrograms, daemon):
    told = mq.lines("dmpmqcfg", "-m", "QM1", "-a")
    assert told[0] == told[7] == "*" * 79
    assert told[1].startswith("* Script generated on 20")
    assert told[3:7] == [
        "* Queue manager name: QM1",
        "* Queue manager platform: UNIX",
        f"* Queue manager command level: ({COMMAND_LEVEL}/{COMMAND_LEVEL})",
        "* Command issued: dmpmqcfg -m QM1 -a",
    ]
    assert told[8] == "ALTER QMGR +"
    assert "DEFINE QLOCAL('SYSTEM.DEFAULT.LOCAL.QUEUE') +" in told
    other = MqPrograms(daemon("QM2"), mq.directory)
    assert other("runmqsc", "QM2", stdin="\n".join(told)).returncode == 0
    again = other.lines("dmpmqcfg", "-mQM2", "-a")
    assert [line for line in again if line[:1] != "*"] == [line for line in told if line[:1] != "*"]


def test_dmpmqcfg_without_a_writes_what_differs_and_chooses_by_name_and_type(mq: MqPrograms):
    assert mq.lines("dmpmqcfg", "-m", "QM1", "-n", "D.*", "-t", "queue", "-o", "1line")[8:] == [
        "DEFINE QLOCAL('D.ONE') DESCR('it''s one') MAXDEPTH(7) REPLACE",
        "DEFINE QLOCAL('D.TWO') REPLACE",
    ]
    assert mq.lines("dmpmqcfg", "-m", "QM1", "-n", "D.*", "-x", "object", "-t", "prcs")[8:] == [
        "DEFINE PROCESS('D.PROC') +",
        "   APPLICID('/bin/true') +",
        "   REPLACE",
    ]
    assert mq.lines("dmpmqcfg", "-m", "QM1", "-x", "chlauth")[8:] == []
    assert mq.lines("dmpmqcfg", "-m", "QM1", "-t", "channel")[8:] == []


def test_dmpmqcfg_refuses_what_it_has_not_and_a_queue_manager_that_is_not_there(mq: MqPrograms):
    assert mq("dmpmqcfg", "-t", "nonsense").returncode == 10
    assert mq("dmpmqcfg", "-r", "QM2").returncode == 10
    refused = mq("dmpmqcfg", "-m", "NOBODY", "-a")
    assert (refused.returncode, refused.stdout, "AMQ8146E" in refused.stderr) == (20, "", True)


# -- setmqaut and dspmqaut ------------------------------------------------------------------------------------


def test_setmqaut_gives_and_takes_rights_from_the_left_and_dspmqaut_shows_them(daemon, mq: MqPrograms):
    one = MqPrograms(daemon("QM3"), mq.directory)
    assert one("runmqsc", "QM3", stdin="DEF QL(A.ONE)\n").returncode == 0
    about = ("-m", "QM3", "-t", "q", "-n")
    done = one("setmqaut", *about, "A.**", "-g", "etl", "-p", "alice", "+put", "+get", "+connect")
    assert (done.returncode, done.stdout) == (0, "The setmqaut command completed successfully.\n")
    assert "CONNECT" in done.stderr
    assert "this was the first authority record" in done.stderr
    shown = ["Entity etl has the following authorizations for object A.ONE:", "\tget", "\tput"]
    assert one.lines("dspmqaut", *about, "A.ONE", "-g", "etl") == shown
    again = one("setmqaut", *about, "A.ONE", "-p", "alice", "-all", "+browse", "+inq", "-inq", "+dsp")
    assert (again.returncode, "first" in again.stderr) == (0, False)
    assert one.lines("dspmqaut", *about, "A.ONE", "-p", "alice")[1:] == ["\tbrowse", "\tdsp"]
    assert one("setmqaut", *about, "A.ONE", "-p", "alice", "-remove").returncode == 0
    assert one.lines("dspmqaut", *about, "A.ONE", "-p", "alice")[1:] == ["\tget", "\tput"]
    assert one("setmqaut", "-m", "QM3", "-t", "qmgr", "-g", "etl", "+inq").returncode == 0
    assert one.lines("dspmqaut", "-m", "QM3", "-t", "qmgr", "-g", "etl") == [
        "Entity etl has the following authorizations for object QM3:",
        "\tinq",
    ]
    assert one.lines("dmpmqcfg", "-m", "QM3", "-o", "setmqaut")[8:] == [
        "setmqaut -m QM3 -t qmgr -g 'etl' +inq",
        "setmqaut -m QM3 -n 'A.**' -t queue -g 'etl' +put +get",
        "setmqaut -m QM3 -n 'A.**' -t queue -p 'alice' +put +get",
    ]


@pytest.mark.parametrize(
    ("status", "arguments"),
    [
        (36, "-t q -n D.ONE -g etl put"),
        (133, ""),
        (145, "-t qmgr -n D.ONE -g etl +put"),
        (146, "-t q -g etl +put"),
        (147, "-n D.ONE -g etl +put"),
        (148, "-t thing -n D.ONE -g etl +put"),
        (149, "-t q -n D.ONE +put"),
        (150, "-t q -n D.ONE -g etl"),
        (151, "-t q -n D.ONE -g etl +fly"),
    ],
)
def test_a_wrong_command_line_ends_with_mqs_status(mq: MqPrograms, status: int, arguments: str):
    if status == 133:
        assert mq("dspmqaut", "-m", "QM1", "-t", "q", "-n", "D.NONE", "-g", "etl").returncode == status
        return
    refused = mq("setmqaut", "-m", "QM1", *arguments.split())
    assert (refused.returncode, refused.stdout) == (status, "")


def test_a_namelist_has_rights_and_stands_in_a_dump(mq: MqPrograms):
    assert mq("runmqsc", "QM1", stdin="DEF NAMELIST(D.LIST) NAMES(D.ONE,D.TWO)\n").returncode == 0
    dumped = mq.lines("dmpmqcfg", "-m", "QM1", "-t", "nl", "-n", "D.LIST", "-o", "1line")[8:]
    assert dumped == ["DEFINE NAMELIST('D.LIST') NAMES('D.ONE','D.TWO') REPLACE"]
    assert mq.lines("dspmqaut", "-m", "QM1", "-t", "nl", "-n", "D.LIST", "-g", "etl") == [
        "Entity etl has the following authorizations for object D.LIST:"
    ]


def test_a_topic_is_named_and_skipped(mq: MqPrograms):
    done = mq("setmqaut", "-m", "QM1", "-t", "topic", "-n", "T", "-g", "etl", "+pub")
    assert (done.returncode, "skipped: SET AUTHREC OBJTYPE(TOPIC)" in done.stderr) == (0, True)
    assert mq("setmqaut", "-m", "NOBODY", "-t", "q", "-n", "D.ONE", "-g", "etl", "+put").returncode == 40
