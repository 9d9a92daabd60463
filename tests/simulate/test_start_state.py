"""A scenario that begins as real queues are: no trigger message is written on the way, whatever the queue is like."""

from __future__ import annotations

import pytest

from trigmon.bridge.displayed_queue import displayed_queues
from trigmon.simulate.in_process import InProcess
from trigmon.simulate.player import play
from trigmon.simulate.scenario_files import read_scenarios
from trigmon.simulate.start_state import MOST_MESSAGES, CannotStartError, beginning_with

TEXT = """\
AMQ8409I: Display Queue details.
   QUEUE(PAY)                              TYPE(QLOCAL)
   CURDEPTH(3)                             DEFPRTY(4)
   GET(ENABLED)                            PUT(ENABLED)
   INITQ(PAY.INIT)                         IPPROCS(0)
   MAXDEPTH(3)                             MSGDLVSQ(PRIORITY)
   PROCESS(PAY.LOAD)                       TRIGGER
   TRIGDPTH(2)                             TRIGMPRI(0)
   TRIGTYPE(FIRST)                         USAGE(NORMAL)
AMQ8409I: Display Queue details.
   QUEUE(PAY.INIT)                         TYPE(QLOCAL)
   CURDEPTH(0)                             GET(ENABLED)
   IPPROCS(1)                              PUT(ENABLED)
   USAGE(NORMAL)
AMQ8407I: Display Process details.
   PROCESS(PAY.LOAD)                       APPLICID(/bin/true)
AMQ8408I: Display Queue Manager details.
   QMNAME(QM2)                             TRIGINT(60000)
"""
SCENARIO = """\
scenario: it begins so
steps:
- check: {{queue: PAY, CURDEPTH: 3, IPPROCS: {readers}, DEFPRTY: 4, TRIGGER: yes}}
  triggers: []
- explain: {{queue: PAY}}
  fails: [{fails}]
"""


def played(text, readers=0, fails=""):
    (scenario,) = read_scenarios(SCENARIO.format(readers=readers, fails=fails), "begin.yaml")
    result = play(beginning_with(scenario, displayed_queues(text)), InProcess(("QM1",), "memory"))
    assert result.passed, [step.failure for step in result.steps]


@pytest.mark.parametrize(
    ("old", "new", "readers", "fails"),
    [
        ("", "", 0, ""),
        ("TRIGTYPE(FIRST)", "TRIGTYPE(EVERY)", 0, ""),
        ("TRIGTYPE(FIRST)", "TRIGTYPE(DEPTH)", 0, ""),
        ("PROCESS(PAY.LOAD) ", "PROCESS( ) ", 0, "'6'"),
        ("PROCESS(PAY.LOAD)                       TRIGGER\n", "PROCESS( )   TRIGGER   USAGE(XMITQ)\n", 0, ""),
        ("PUT(ENABLED)\n   INITQ(PAY.INIT)", "PUT(DISABLED)\n   INITQ(PAY.INIT)", 0, ""),
        ("IPPROCS(0)\n   MAXDEPTH", "IPPROCS(2)\n   MAXDEPTH", 2, "'4'"),
        ("IPPROCS(1) ", "IPPROCS(0) ", 0, "'8'"),
        ("DEFPRTY(4)\n", "DEFPRTY(4) NOSHARE\n", 0, ""),
    ],
)
def test_it_begins_as_the_queue_is(old, new, readers, fails):
    text = (
        TEXT.replace("TRIGTYPE(FIRST)                         USAGE(NORMAL)\n", "TRIGTYPE(FIRST)\n")
        if "XMITQ" in new
        else TEXT
    )
    assert old in text
    played(text.replace(old, new, 1), readers, fails)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("CURDEPTH(3)", f"CURDEPTH({MOST_MESSAGES + 1})", "at most"),
        ("IPPROCS(0)\n   MAXDEPTH", "IPPROCS(1001)\n   MAXDEPTH", "more than 1000"),
        ("PROCESS(PAY.LOAD)                       APPL", "PROCESS(OTHER)   APPL", r"DISPLAY PROCESS\(PAY.LOAD\) ALL"),
        ("CURDEPTH(3)  ", "", "how many messages wait"),
    ],
)
def test_what_cannot_be_made_is_refused_with_the_reason(old, new, why):
    (scenario,) = read_scenarios(SCENARIO.format(readers=0, fails=""), "begin.yaml")
    assert old in TEXT
    with pytest.raises(CannotStartError, match=why):
        beginning_with(scenario, displayed_queues(TEXT.replace(old, new, 1)))
