"""Freed memory is kept for the next buffers, which cost no page faults then; garbage is looked for seldom and found."""

from __future__ import annotations

import subprocess
import sys
from resource import getpagesize

from tests.daemons import define
from tests.processes import stat_of

PAGES = 8_000_000 // getpagesize()
"""Those of eight megabytes."""
FRAMES = """
import resource
from trigmon.process_memory import keep_freed_memory
{keep}
def frame():
    bodies = [bytes(2 << 20) for _ in range(4)]
    b"".join(bodies)
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
frame()
before = faults()
for _ in range(10):
    frame()
print(faults() - before)
"""
"""Prints the page faults of ten frames of 16 MiB behind the first."""


LEFT = """
from pathlib import Path
from trigmon.process_memory import give_back_freed_memory, keep_freed_memory
keep_freed_memory()
blocks, kept = [], []
for _ in range(60):
    blocks.append(b"x" * (4 << 20))
    kept.append(b"x" * 20_000)
blocks.clear()
{then}
print(int(Path("/proc/self/statm").read_text().split()[1]))
"""
"""Prints how many pages are resident behind 240 MiB that were freed between blocks in use."""


def printed(program):
    """Returns the number that a program of its own process prints."""
    argv = [sys.executable, "-c", program]
    return int(subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60).stdout)


def test_frames_behind_the_first_cost_no_page_faults():
    assert printed(FRAMES.format(keep="pass")) > 10 * PAGES
    assert printed(FRAMES.format(keep="assert keep_freed_memory()")) < 2 * PAGES


def test_memory_below_a_block_that_is_in_use_is_given_back():
    assert printed(LEFT.format(then="pass")) > 20 * PAGES
    assert printed(LEFT.format(then="give_back_freed_memory()")) < 10 * PAGES


def faults_of(pid):
    """The page faults of a process that needed no disk."""
    return int(stat_of(pid)[7])


def test_a_reservation_that_is_read_again_costs_the_queue_manager_few_page_faults(shared_daemon, qm):
    define(qm, "Q", def_persistence="persistent", max_q_depth=10_000)
    for _ in range(8):
        qm.put_many("Q", [bytes(1024)] * 1000)
    with qm.open("Q", "input_shared") as queue:
        reservation = queue.reserve("reader", max_messages=8000)
        for _ in range(3):
            before = faults_of(shared_daemon.process.pid)
            assert sum(len(message.data) for _, message in reservation.read()) == 8000 * 1024
        assert faults_of(shared_daemon.process.pid) - before < PAGES // 4


COLLECTED = """
import gc
from trigmon.process_memory import YOUNG_OBJECTS, tune_for_server
looks, ends = [], []
gc.callbacks.append(lambda phase, _: looks.append(phase))
{tune}
class Cycle:
    def __init__(self):
        self.own = self
    def __del__(self):
        ends.append(self)
Cycle()
rows = [(n,) for n in range(YOUNG_OBJECTS - 5_000)]
before = len(looks)
more = [[n] for n in range(10_000)]
print({what})
"""


def test_rows_by_the_thousand_are_not_looked_at_and_garbage_ends_all_the_same():
    assert printed(COLLECTED.format(tune="pass", what="before")) > 10
    assert printed(COLLECTED.format(tune="tune_for_server()", what="before")) == 0
    assert printed(COLLECTED.format(tune="tune_for_server()", what="len(ends)")) == 1
