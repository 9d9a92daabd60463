"""How fast a queue elsewhere is copied, beside a local loop that gets and puts in units of work: 1 KiB, persistent."""

from __future__ import annotations

import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from tests.benchmarks.measuring import in_turns, told
from tests.daemons import Daemon, define
from trigmon.bridge.copy_protocol import BATCH
from trigmon.mqi import library

BODY = b"x" * 1024
_IBMMQ_LOOP = """
import sys, time
import ibmmq as mq
count, batch = int(sys.argv[1]), int(sys.argv[2])
qmgr = mq.connect("QM9")
queue = mq.Queue(qmgr, "COPIED", mq.CMQC.MQOO_INPUT_EXCLUSIVE)
began = time.perf_counter()
for number in range(count):
    queue.get(65536, mq.MD(), mq.GMO(Options=mq.CMQC.MQGMO_SYNCPOINT))
    if (number + 1) % batch == 0:
        qmgr.commit()
qmgr.commit()
print(count / (time.perf_counter() - began))
qmgr.disconnect()
"""


def measured(directory: Path, rounds: int, count: int) -> None:
    """Prints rates and ratios; ``count`` messages a turn. All take turns within one run."""
    lib = library.build(directory / "lib")
    home = directory / "home"
    home.mkdir()
    config = home / "trigmon.yaml"
    config.write_text("bridges:\n  THERE:\n    queue_manager: QM9\n")
    there = Daemon(home, "QM9").start()
    here = Daemon(home, settings={"config": config}).start()
    env = here.env | {"LD_LIBRARY_PATH": str(lib), "PYTHONWARNINGS": "ignore"}
    try:
        for one in (there, here):
            with one.connect() as qm:
                define(qm, "COPIED", max_q_depth=999_999_999, def_persistence="persistent")
                define(qm, "MOVED", max_q_depth=999_999_999, def_persistence="persistent")
        ways = {
            "a local loop of get and put": partial(_local_loop, there, count),
            "a loop of get alone, by ibmmq": partial(_ibmmq_loop, there, env, count),
            "trigmon bridge copy": partial(_copy, there, here, env, count),
        }
        title = f"messages moved, {BATCH} a unit of work, 1 KiB, persistent"
        print(told(title, in_turns(rounds, ways, "msg/s"), against="a local loop of get and put"), flush=True)
    finally:
        here.end()
        there.end()


def _fill(there: Daemon, count: int) -> None:
    with there.connect() as qm:
        qm.put_many("COPIED", [BODY] * count)


def _local_loop(there: Daemon, count: int) -> tuple[float, float]:
    """Moves messages from one queue to another of the same queue manager, one call at a time."""
    _fill(there, count)
    with there.connect() as qm, qm.open("COPIED", "input_exclusive") as source, qm.open("MOVED", "output") as target:
        began = time.perf_counter()
        for number in range(count):
            message = source.get(syncpoint=True)
            target.put(message.data, syncpoint=True, msg_id=message.msg_id, persistence="persistent")
            if (number + 1) % BATCH == 0:
                qm.commit()
        qm.commit()
        return count / (time.perf_counter() - began), 0.0


def _ibmmq_loop(there: Daemon, env: dict[str, str], count: int) -> tuple[float, float]:
    _fill(there, count)
    argv = [sys.executable, "-c", _IBMMQ_LOOP, str(count), str(BATCH)]
    return float(subprocess.run(argv, env=env, capture_output=True, text=True, check=True).stdout), 0.0


def _copy(there: Daemon, here: Daemon, env: dict[str, str], count: int) -> tuple[float, float]:
    """Copies, and measures from the first message that is seen here to the last: not the start of the command."""
    _fill(there, count)
    argv = [sys.executable, "-m", "trigmon", "bridge", "copy", "COPIED@THERE", "--until-empty"]
    with here.connect() as qm, qm.open("COPIED", "inquire") as queue:
        before = queue.inquire("current_q_depth")["current_q_depth"]
        process = subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL)
        first = last = 0
        began = ended = time.perf_counter()
        while last < count:
            assert process.poll() in (None, 0), process.returncode
            seen, now = queue.inquire("current_q_depth")["current_q_depth"] - before, time.perf_counter()
            if seen and not first:
                first, began = seen, now
            if seen > last:
                last, ended = seen, now
            time.sleep(0.002)
        assert process.wait(60) == 0
    return (last - first) / max(ended - began, 1e-9), 0.0
