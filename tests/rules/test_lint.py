"""Each rule finds what it is about and nothing else, and its remedy ends the finding."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest
from hypothesis import given

from tests.any_objects import commands
from tests.in_process import InProcess
from trigmon.mq.errors import MQError
from trigmon.mqsc.commands import read_script
from trigmon.mqsc.script import run
from trigmon.rules.lint import RULES, definitions, lint, name_of

NAMES = [name_of(rule) for rule in RULES]

# What every rule is content with.
SOUND = """
DEFINE PROCESS(P) APPLICID('program') INSTANCES(2)
DEFINE QLOCAL(ASIDE) DEFPSIST(YES)
DEFINE QLOCAL(Q) TRIGGER TRIGTYPE(FIRST) PROCESS(P) INITQ(SYSTEM.DEFAULT.INITIATION.QUEUE) DEFPSIST(YES) +
    BOTHRESH(3) BOQNAME(ASIDE)
DEFINE QALIAS(A) TARGET(Q)
ALTER QMGR TRIGINT(1000) DEADQ(SYSTEM.DEAD.LETTER.QUEUE)
"""

# A shared queue that every rule is content with.
OF_GROUP = """
DEFINE QLOCAL(S.ASIDE) QSGDISP(SHARED) DEFPSIST(YES)
DEFINE QLOCAL(S) QSGDISP(SHARED) LIKE(Q) BOQNAME(S.ASIDE)
ALTER QLOCAL(S)"""

# For each rule, what breaks it and nothing else; on which object it is found, and what is said to be there.
BROKEN = {
    "trigger-without-process": [
        ("ALTER QLOCAL(Q) PROCESS(' ')", "QLOCAL Q", "PROCESS is blank"),
        ("ALTER QLOCAL(Q) PROCESS(p.none)", "QLOCAL Q", "PROCESS(P.NONE) is not defined"),
        ("ALTER QLOCAL(Q) PROCESS('p/lower%')", "QLOCAL Q", "PROCESS(p/lower%) is not defined"),
    ],
    "trigger-without-initiation-queue": [
        ("ALTER QLOCAL(Q) INITQ(' ')", "QLOCAL Q", "INITQ is blank"),
        ("ALTER QLOCAL(Q) INITQ(NO.INITQ)", "QLOCAL Q", "INITQ(NO.INITQ) is no local queue"),
        ("ALTER QLOCAL(Q) INITQ(A)", "QLOCAL Q", "INITQ(A) is no local queue"),
        ("DEFINE QLOCAL(X) USAGE(XMITQ)\nALTER QLOCAL(Q) INITQ(X)", "QLOCAL Q", "INITQ(X) has USAGE(XMITQ)"),
    ],
    "priority-never-reached": [
        (
            "ALTER QLOCAL(Q) MSGDLVSQ(FIFO) TRIGMPRI(4) DEFPRTY(3)",
            "QLOCAL Q",
            "MSGDLVSQ(FIFO) DEFPRTY(3) TRIGMPRI(4)",
        ),
    ],
    "first-without-interval": [
        ("ALTER QMGR TRIGINT(999999999)", "QMGR QM1", "TRIGINT(999999999), and TRIGTYPE(FIRST) on Q"),
    ],
    "every-without-cap": [
        (
            "ALTER QLOCAL(Q) TRIGTYPE(EVERY)\nALTER PROCESS(P) INSTANCES(0)",
            "PROCESS P",
            "INSTANCES(0), and TRIGTYPE(EVERY) on Q",
        ),
    ],
    "depth-without-rearming": [
        ("ALTER QLOCAL(Q) TRIGTYPE(DEPTH) TRIGDPTH(7)", "QLOCAL Q", "TRIGTYPE(DEPTH) TRIGDPTH(7) REARM(MQ)"),
        ("ALTER QLOCAL(Q) TRIGTYPE(DEPTH) NOTRIGGER", "QLOCAL Q", "TRIGTYPE(DEPTH) TRIGDPTH(1) REARM(MQ)"),
    ],
    "extension-without-effect": [
        ("ALTER QLOCAL(Q) REARM(AUTO)", "QLOCAL Q", "TRIGTYPE(FIRST) REARM(AUTO)"),
        ("ALTER QLOCAL(Q) TRIGTYPE(EVERY) BACKSTOP(5)", "QLOCAL Q", "TRIGTYPE(EVERY) BACKSTOP(5)"),
        (
            "ALTER QLOCAL(Q) TRIGTYPE(EVERY) BACKSTOP(5) REARM(AUTO)",
            "QLOCAL Q",
            "TRIGTYPE(EVERY) REARM(AUTO) BACKSTOP(5)",
        ),
    ],
    "initiation-queue-too-small": [
        (
            "DEFINE QLOCAL('small') MAXMSGL(683)\nALTER QLOCAL(Q) INITQ('small')",
            "QLOCAL small",
            "MAXMSGL(683)",
        ),
    ],
    "triggered-work-not-persistent": [("ALTER QLOCAL(Q) DEFPSIST(NO)", "QLOCAL Q", "DEFPSIST(NO)")],
    "no-dead-letter-queue": [
        ("ALTER QMGR DEADQ(' ')", "QMGR QM1", "DEADQ is blank"),
        ("ALTER QMGR DEADQ(NO.DEADQ)", "QMGR QM1", "DEADQ(NO.DEADQ) is no local queue"),
        ("ALTER QMGR DEADQ(A)", "QMGR QM1", "DEADQ(A) is no local queue"),
    ],
    "no-backout-threshold": [
        ("ALTER QLOCAL(Q) BOTHRESH(0)", "QLOCAL Q", "BOTHRESH(0)"),
        ("ALTER QLOCAL(Q) BOTHRESH(0) BOQNAME(' ')", "QLOCAL Q", "BOTHRESH(0)"),
        ("ALTER QLOCAL(Q) BOTHRESH(5) BOQNAME(' ')", "QLOCAL Q", "BOTHRESH(5) and BOQNAME is blank"),
        ("ALTER QLOCAL(Q) BOTHRESH(5) BOQNAME(NOWHERE)", "QLOCAL Q", "BOTHRESH(5) and BOQNAME(NOWHERE) is no queue"),
    ],
    "backout-requeue-without-threshold": [
        ("ALTER QLOCAL(Q) BOREQ(QMGR) BOTHRESH(0)", "QLOCAL Q", "BOREQ(QMGR) BOTHRESH(0)"),
        ("DEFINE QLOCAL(PLAIN) BOREQ(QMGR)", "QLOCAL PLAIN", "BOREQ(QMGR) BOTHRESH(0)"),
    ],
    "backout-requeue-to-nothing": [
        ("ALTER QLOCAL(Q) BOREQ(QMGR) BOQNAME(NOWHERE)", "QLOCAL Q", "BOQNAME(NOWHERE) is not defined"),
        ("ALTER QLOCAL(Q) BOREQ(QMGR) BOQNAME(Q)", "QLOCAL Q", "BOQNAME(Q) is the queue itself"),
        ("ALTER QLOCAL(Q) BOREQ(QMGR) BOQNAME(A)", "QLOCAL Q", "BOQNAME(A) is the queue itself"),
        ("DEFINE QMODEL(M)\nALTER QLOCAL(Q) BOREQ(QMGR) BOQNAME(M)", "QLOCAL Q", "BOQNAME(M) is a model"),
        (
            "DEFINE QLOCAL(PLAIN) BOTHRESH(1) BOREQ(QMGR)\nALTER QMGR DEADQ(PLAIN)",
            "QLOCAL PLAIN",
            "BOQNAME is blank and DEADQ(PLAIN) is no other queue",
        ),
        (
            "DEFINE QLOCAL(PLAIN) BOTHRESH(1) BOREQ(QMGR)\nALTER QLOCAL(Q) NOTRIGGER\nALTER QMGR DEADQ(' ')",
            "QLOCAL PLAIN",
            "BOQNAME and DEADQ are blank",
        ),
    ],
    "every-by-private-initiation-queues": [
        (
            f"{OF_GROUP} TRIGTYPE(EVERY)",
            "QLOCAL S",
            "QSGDISP(SHARED) TRIGTYPE(EVERY), and INITQ(SYSTEM.DEFAULT.INITIATION.QUEUE) is each member's own",
        ),
    ],
    "private-queue-by-shared-initiation-queue": [
        (
            "DEFINE QLOCAL(I) QSGDISP(SHARED)\nALTER QLOCAL(Q) INITQ(I)",
            "QLOCAL Q",
            "INITQ(I) is shared, and the queue is not",
        ),
    ],
    "shared-backout-queue-of-one-member": [
        (
            f"{OF_GROUP} BOQNAME(ASIDE)",
            "QLOCAL S",
            "QSGDISP(SHARED), and BOQNAME(ASIDE) is each member's own",
        ),
    ],
    "alias-to-nothing": [
        ("ALTER QALIAS(A) TARGET(' ')", "QALIAS A", "TARGET is blank"),
        ("ALTER QALIAS(A) TARGET(NOTHING)", "QALIAS A", "TARGET(NOTHING) is not defined"),
        ("DEFINE QALIAS(B) TARGET(A)", "QALIAS B", "TARGET(A) is an alias itself"),
        ("DEFINE QMODEL(M)\nDEFINE QALIAS(B) TARGET(M)", "QALIAS B", "TARGET(M) is a model"),
    ],
    "trailing-ampersand": [
        ("ALTER PROCESS(P) ENVRDATA('say ''it is'' &  ')", "PROCESS P", "ENVRDATA('say ''it is'' &')"),
        ("ALTER PROCESS(P) APPLICID('run &') ENVRDATA('&')", "PROCESS P", "APPLICID('run &') ENVRDATA('&')"),
    ],
    "needs-a-shell": [
        ("ALTER PROCESS(P) ENVRDATA('>> /var/log/x 2>&1')", "PROCESS P", ">>"),
        ("ALTER PROCESS(P) APPLICID('cd /opt/app; ./run.sh $HOME')", "PROCESS P", ";"),
        ("ALTER PROCESS(P) APPLICID('PATH=/x:$PATH prog')", "PROCESS P", "PATH="),
        ("ALTER PROCESS(P) APPLICID('a | b --of {queue}')", "PROCESS P", "|"),
    ],
    "placeholder-in-a-path": [
        (
            "ALTER PROCESS(P) APPLICID('load --to=/srv/{queue}.csv -v') ENVRDATA('{trigdata}/x {queue} /srv/{run}')",
            "PROCESS P",
            "APPLICID('load ''--to=/srv/{queue}.csv'' -v') ENVRDATA('''{trigdata}/x'' ''{queue}'' ''/srv/{run}''')",
        ),
        (
            "DEFINE PROCESS(J) APPLTYPE(SPARK) APPLICID('job.py') SPKARGS('/srv//{queue}') INSTANCES(1)",
            "PROCESS J",
            "SPKARGS('''/srv//{queue}''')",
        ),
    ],
    "warm-interpreter-without-effect": [
        ("ALTER PROCESS(P) APPLICID('python x.py') WARM(YES) RUNAS('load')", "PROCESS P", "WARM(YES) RUNAS(load)"),
        ("ALTER PROCESS(P) WARMMODS('pandas json')", "PROCESS P", "WARM(NO) WARMMODS('pandas json')"),
    ],
    "spark-driver-open": [
        (
            "ALTER PROCESS(P) APPLTYPE(SPARK) SPKCONF('spark.a=1 spark.driver.bindAddress=0.0.0.0')",
            "PROCESS P",
            "SPKCONF(spark.driver.bindAddress=0.0.0.0)",
        ),
        (
            "ALTER PROCESS(P) APPLTYPE(SPARK) SPKCONF('spark.authenticate=false')\n"
            "ALTER PROCESS(P) SPKENV('A=''b c'' SPARK_LOCAL_IP=::')",
            "PROCESS P",
            "SPKENV(SPARK_LOCAL_IP=::) SPKCONF(spark.authenticate=false)",
        ),
        (
            "ALTER PROCESS(P) APPLTYPE(SPARK) SPKMASTER('spark://m:7077') SPKCONF('spark.driver.host=h')",
            "PROCESS P",
            "SPKMASTER(spark://m:7077) without spark.authenticate=true",
        ),
        (
            "ALTER PROCESS(P) APPLTYPE(SPARK) SPKMASTER('yarn') SPKCONF('spark.authenticate=no')",
            "PROCESS P",
            "SPKCONF(spark.authenticate=no)",
        ),
    ],
    "schedule-without-effect": [
        ("DEFINE SCHEDULE(N) EVERY(60) QUEUE(NONE)", "SCHEDULE N", "QUEUE(NONE) is no local queue"),
        ("DEFINE SCHEDULE(N) EVERY(60) PROCESS(NONE)", "SCHEDULE N", "PROCESS(NONE) is not defined"),
        (
            "DEFINE QLOCAL(S) INITQ(SYSTEM.DEFAULT.INITIATION.QUEUE)\nDEFINE SCHEDULE(N) EVERY(60) QUEUE(S)",
            "SCHEDULE N",
            "S has a blank PROCESS",
        ),
        (
            "DEFINE QLOCAL(S) PROCESS(P)\nDEFINE SCHEDULE(N) EVERY(60) QUEUE(S)",
            "SCHEDULE N",
            "INITQ is blank",
        ),
        ("DEFINE SCHEDULE(N) EVERY(60) PROCESS(P) INITQ(X)", "SCHEDULE N", "INITQ(X) is no local queue"),
        (
            "DEFINE QLOCAL(S) QSGDISP(SHARED) PROCESS(P) INITQ(SYSTEM.DEFAULT.INITIATION.QUEUE)\n"
            "DEFINE SCHEDULE(N) EVERY(60) QUEUE(S)",
            "SCHEDULE N",
            "S is shared, and its INITQ(SYSTEM.DEFAULT.INITIATION.QUEUE) is not",
        ),
    ],
    "schedules-of-one-moment": [
        (
            "DEFINE SCHEDULE(N1) EVERY(15m) QUEUE(Q)\nDEFINE SCHEDULE(N2) CRON('0 2 * * *') QUEUE(Q)",
            "SCHEDULE N2",
            "it and N1 both start Q at the same moments, such as one at 02:00:00 UTC",
        ),
    ],
    "schedule-in-a-skipped-hour": [
        (
            "DEFINE SCHEDULE(N) CRON('30 2 * * *') TIMEZONE('Europe/Berlin') QUEUE(Q)",
            "SCHEDULE N",
            "CRON(30 2 * * *) Europe/Berlin: 2026-03-29 has no 02:30, its clocks go from 02:00 to 03:00",
        ),
        (
            "DEFINE SCHEDULE(N) CRON('15 2 * * *') TIMEZONE('Australia/Lord_Howe') PROCESS(P)",
            "SCHEDULE N",
            "CRON(15 2 * * *) Australia/Lord_Howe: 2026-10-04 has no 02:15, its clocks go from 02:00 to 02:30",
        ),
    ],
    "watch-to-nothing": [
        ("DEFINE WATCH(W) DIRECTORY('/in') QUEUE(NONE)", "WATCH W", "QUEUE(NONE) is not defined"),
    ],
    "watches-of-the-same-files": [
        (
            "DEFINE WATCH(W) DIRECTORY('/in') QUEUE(A) PATTERN('*.csv')\n"
            "DEFINE WATCH(V) DIRECTORY('/in/') QUEUE(Q) PATTERN('a*')",
            "WATCH W",
            "DIRECTORY(/in) PATTERN(*.csv), and PATTERN(a*) on V",
        ),
    ],
    "watch-of-moved-files": [
        ("DEFINE WATCH(W) DIRECTORY('/in') QUEUE(Q) DONE('/in/.')", "WATCH W", "DONE(/in/.) is watched"),
        ("DEFINE WATCH(W) DIRECTORY('/in') QUEUE(Q) FAILED('/in')", "WATCH W", "FAILED(/in) is watched"),
    ],
}
CASES = [(rule, *case) for rule, cases in BROKEN.items() for case in cases]


def did(qm, text):
    said = []
    assert run(text.splitlines(), qm, said.append, "QM1") == 0, said


def found(qm):
    return lint(definitions(qm.rows()))


@pytest.fixture
def sound():
    qm = InProcess(in_group=True)
    did(qm, SOUND)
    return qm


def page():
    return files("trigmon.rules").joinpath("LINT.md").read_text()


def test_code_document_and_tests_have_the_same_rules_in_the_same_order():
    assert NAMES == re.findall(r"^## (.*)$", page(), re.M) == list(BROKEN)


def test_the_document_tells_each_risk_and_a_remedy_that_mqsc_can_read():
    sections = page().split("\n## ")[1:]
    for section, risk in zip(sections, RULES.values(), strict=True):
        assert f"Risk: {risk}" in " ".join(section.split())
        remedy = re.findall(r"^    (.*)$", section, re.M)
        assert remedy
        kinds = "QLOCAL|QALIAS|PROCESS|QMGR|SCHEDULE|WATCH"
        assert all(re.match(rf"(DEFINE|ALTER|DELETE) ({kinds})\b", line) for line in remedy)


def test_what_is_sound_has_no_finding(sound):
    assert found(sound) == []


def test_a_sound_shared_queue_has_no_finding(sound):
    did(
        sound, f"{OF_GROUP} TRIGTYPE(FIRST)\nDEFINE QLOCAL(I) QSGDISP(SHARED)\nALTER QLOCAL(S) TRIGTYPE(EVERY) INITQ(I)"
    )
    assert found(sound) == []


@pytest.mark.parametrize(
    "schedules",
    [
        "DEFINE SCHEDULE(N) CRON('0 4 * * *') TIMEZONE('Europe/Berlin') QUEUE(Q)",
        "DEFINE SCHEDULE(N) CRON('30 * * * *') TIMEZONE('Europe/Berlin') QUEUE(Q)",
        "DEFINE SCHEDULE(N) CRON('0 2 1 12 *') TIMEZONE('Europe/Berlin') QUEUE(Q)",
        "DEFINE SCHEDULE(N1) CRON('0 4 * * 1-5') QUEUE(Q)\nDEFINE SCHEDULE(N2) CRON('0 4 * * 6,7') QUEUE(Q)",
        "DEFINE SCHEDULE(N1) CRON('0 4 * * *') QUEUE(Q)\nDEFINE SCHEDULE(N2) CRON('0 4 * * *') PROCESS(P)",
    ],
)
def test_sound_schedules_have_no_finding(sound, schedules):
    did(sound, schedules)
    assert found(sound) == []


def test_a_new_queue_manager_has_no_finding():
    assert found(InProcess()) == []


@pytest.mark.parametrize(("rule", "breaks", "where", "said"), CASES, ids=lambda value: str(value)[:40])
def test_a_rule_finds_what_it_is_about_and_no_other_rule_does(sound, rule, breaks, where, said):
    did(sound, breaks)
    (one,) = found(sound)
    assert (one.rule, f"{one.object_type} {one.name}", one.found) == (rule, where, said)
    assert one.risk == dict(zip(NAMES, RULES.values(), strict=True))[rule]


@pytest.mark.parametrize(("rule", "breaks", "where", "said"), CASES, ids=lambda value: str(value)[:40])
def test_a_remedy_pasted_ends_the_finding_and_makes_no_other(sound, rule, breaks, where, said):
    did(sound, breaks)
    (one,) = found(sound)
    did(sound, one.remedy)
    assert found(sound) == []


def test_with_the_queue_manager_at_work_the_dead_letter_queue_will_do(sound):
    did(sound, "ALTER QLOCAL(Q) BOREQ(QMGR) BOQNAME(' ')")
    assert found(sound) == []


def test_what_does_not_trigger_is_nobodys_worry(sound):
    did(sound, "ALTER QLOCAL(Q) NOTRIGGER DEFPSIST(NO) BOTHRESH(0) PROCESS(' ')\nALTER QMGR DEADQ(' ')")
    did(sound, "DEFINE QLOCAL(N) TRIGGER TRIGTYPE(NONE) DEFPSIST(NO)\nDEFINE QLOCAL(D) TRIGTYPE(DEPTH)")
    assert found(sound) == []


def test_a_transmission_queue_may_do_without_a_process(sound):
    did(sound, "ALTER QLOCAL(Q) PROCESS(' ') USAGE(XMITQ)")
    assert found(sound) == []


def test_a_remote_queue_is_something_for_an_alias_to_point_at(sound):
    did(sound, "DEFINE QREMOTE(FAR) RNAME(Q) RQMNAME(QM2)\nALTER QALIAS(A) TARGET(FAR)")
    assert found(sound) == []


def test_trigint_is_no_worry_without_a_queue_of_type_first(sound):
    did(sound, "ALTER QMGR TRIGINT(999999999)\nALTER QLOCAL(Q) TRIGTYPE(EVERY)")
    assert found(sound) == []


@pytest.mark.parametrize("ours", ["BACKSTOP(60)", "MAXWAIT(60)"])
def test_trigint_is_no_worry_where_time_itself_triggers_again(sound, ours):
    did(sound, f"ALTER QMGR TRIGINT(999999999)\nALTER QLOCAL(Q) {ours}")
    assert found(sound) == []


def test_a_process_is_named_once_however_many_queues_start_it(sound):
    did(sound, "ALTER PROCESS(P) INSTANCES(0)\nALTER QLOCAL(Q) TRIGTYPE(EVERY)\nDEFINE QLOCAL(R) LIKE(Q)")
    assert [(one.rule, one.name) for one in found(sound)] == [("every-without-cap", "P")]


def test_many_queues_are_not_all_listed(sound):
    did(sound, "ALTER QMGR TRIGINT(999999999)\n" + "\n".join(f"DEFINE QLOCAL(R{n}) LIKE(Q)" for n in range(4)))
    assert [one.found for one in found(sound)] == ["TRIGINT(999999999), and TRIGTYPE(FIRST) on Q, R0, R1 and 2 more"]


def test_a_name_of_full_length_has_a_backout_queue_of_legal_length(sound):
    name = "N" * 48
    did(sound, f"DEFINE QLOCAL({name}) LIKE(Q) BOTHRESH(0) BOQNAME(' ')")
    (one,) = found(sound)
    did(sound, one.remedy)
    assert found(sound) == []


def test_an_attribute_or_a_kind_of_a_later_release_is_passed_over(sound):
    rows = [row | {"invented": 1} for row in sound.rows()]
    assert lint(definitions([*rows, {"object_type": "QINVENTED", "name": "X"}])) == []


@given(commands)
def test_whatever_is_defined_can_be_linted_and_every_remedy_be_read(given_commands):
    qm = InProcess()
    for command in given_commands:
        try:
            qm(command)
        except MQError:
            continue
    for one in found(qm):
        for command in read_script(one.remedy):
            assert command.error is None, one


def test_watches_with_patterns_that_no_name_matches_both_are_no_worry(sound):
    did(sound, "DEFINE WATCH(V) DIRECTORY('/in') QUEUE(Q) PATTERN('*.csv')")
    did(sound, "DEFINE WATCH(W) DIRECTORY('/in') QUEUE(Q) PATTERN('*.txt')")
    assert found(sound) == []
