"""The most famous loop (seed 004): a poisonous message, a program that backs it out, a close that triggers again.

The breaker stops it and says in words what it met; BOTHRESH with BOREQ(QMGR) cures it.
"""

from __future__ import annotations

import json
import sys
import time

from tests.waiting import until
from trigmon.mq.calls import Runs

QUEUES = """\
DEFINE QLOCAL(ORDERS.FAILED)
DEFINE PROCESS(ORDERS.TOTAL) APPLICID('{python} {program}') RETRYWAIT(1)
DEFINE QLOCAL(ORDERS) DEFPSIST(YES) TRIGGER TRIGTYPE(FIRST) PROCESS(ORDERS.TOTAL) +
  INITQ(SYSTEM.DEFAULT.INITIATION.QUEUE)
"""
CURE = "ALTER QLOCAL(ORDERS) BOTHRESH(3) BOREQ(QMGR) BOQNAME(ORDERS.FAILED)"
PROGRAM = """\
import json, trigmon
with trigmon.connect() as qm, qm.open(trigmon.triggered().q_name, "input_shared") as orders:
    while True:
        order = orders.get(syncpoint=True, wait_interval_ms=200)
        print("price", json.loads(order.data)["price"], flush=True)
        qm.commit()
"""
WAIT_S = 600


def test_the_loop_of_a_poisonous_message_is_stopped_diagnosed_in_words_and_cured(daemon, tmp_path):
    program = tmp_path / "total.py"
    # NoMsgAvailable ends a queue's block quietly; JSON that is none does not.
    program.write_text(PROGRAM)
    queue_manager = daemon(with_monitor=True)
    said = queue_manager.trigmon("mqsc", input=QUEUES.format(python=sys.executable, program=program))
    assert said.returncode == 0, said.stdout
    for text in ('{"price": 1}', "poison", '{"price": 2}'):
        assert queue_manager.trigmon("put", "ORDERS", text).returncode == 0

    def shown():
        return json.loads(queue_manager.trigmon("queue", "show", "ORDERS", "--output", "json").stdout)

    stopped = until(lambda: shown()["paused"], WAIT_S)
    assert "held since" in stopped
    assert "does not drain: 4 runs of ORDERS.TOTAL in a row removed no message, the last ended with status 1" in stopped
    assert "and no threshold is set (BOTHRESH(0)): BOTHRESH with BOREQ(QMGR) would put it aside" in stopped
    for command in (["status"], ["explain", "ORDERS"], ["runs", "list", "--state", "held"]):
        assert "does not drain" in queue_manager.trigmon(*command).stdout
    with queue_manager.connect() as qm:
        before = len(qm.call(Runs()).rows)
        time.sleep(3)
        assert len(qm.call(Runs()).rows) == before  # it is stopped

    assert queue_manager.trigmon("mqsc", input=CURE).returncode == 0
    assert queue_manager.trigmon("queue", "resume", "ORDERS").returncode == 0
    until(lambda: shown()["current_q_depth"] == 0, WAIT_S)
    assert shown()["paused"] == ""
    aside = json.loads(queue_manager.trigmon("browse", "ORDERS.FAILED", "--output", "json").stdout)
    assert aside["data"] == "poison"
    with queue_manager.connect() as qm:
        until(lambda: not qm.call(Runs(where={"state": "held"})).rows, WAIT_S)
        last = until(lambda: [run for run in qm.call(Runs()).rows if run.get("put_aside")], WAIT_S)
    assert last[0]["put_aside"] == 1
