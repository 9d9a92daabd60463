"""How fast a program is on the MQI's C library beside one on the Python client: one at a time, 1 KiB a message."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.benchmarks.measuring import in_turns, told
from tests.daemons import Daemon, define
from trigmon.mqi import library

BODY = b"x" * 1024
HERE = Path(__file__).parent
TITLES = {"connect": "connections made and ended", "put": "puts", "async_put": "asynchronous puts", "get": "gets"}


def measured(directory: Path, rounds: int, count: int) -> None:
    """Prints rates and ratios; ``count`` calls a turn. The two take turns within one run."""
    lib = library.build(directory / "lib")
    program = directory / "rate"
    flags = ["-O2", f"-I{library.SOURCES}", f"-L{lib}"]
    subprocess.run([library.compiler(), *flags, "-o", program, HERE / "rate.c", "-lmqm_r"], check=True)
    (directory / "home").mkdir()
    one = Daemon(directory / "home").start()
    env = one.env | {"LD_LIBRARY_PATH": str(lib)}
    try:
        with one.connect() as qm:
            define(qm, "RATE", max_q_depth=999_999_999)
        for verb, title in TITLES.items():
            ways = {
                "the C library": partial(_in_c, program, env, verb, count),
                "Python": partial(_in_python, one, verb, count),
            }
            figures = in_turns(rounds, ways, "calls/s")
            print(told(title, figures, against="Python", note="us of the program's CPU a call"), flush=True)
    finally:
        one.end()


def _in_c(program: Path, env: dict[str, str], verb: str, count: int) -> tuple[float, float]:
    done = subprocess.run([program, verb, str(count)], env=env, capture_output=True, text=True, check=True)
    rate, cpu_us = map(float, done.stdout.split())
    return rate, cpu_us


def _in_python(one: Daemon, verb: str, count: int) -> tuple[float, float]:
    if verb == "connect":
        return _timed(lambda: one.connect().disconnect(), count)
    with one.connect() as qm, qm.open("RATE", "output", "input_shared") as queue:
        return _timed(queue.get if verb == "get" else lambda: queue.put(BODY, persistence="not_persistent"), count)


def _timed(call: Callable[[], object], count: int) -> tuple[float, float]:
    """Returns calls a second, and microseconds of this process's CPU for each."""
    began, used = time.perf_counter(), time.process_time()
    for _ in range(count):
        call()
    return count / (time.perf_counter() - began), (time.process_time() - used) / count * 1e6
