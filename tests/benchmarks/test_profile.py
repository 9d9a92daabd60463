"""The profile of a message charges each moment of the daemon's thread to one stage, and every stage is met."""

import re
import subprocess
import sys
import time

import pytest

from tests.benchmarks.call_stages import MESSAGE_OF
from tests.benchmarks.peers.turn_of_clients import GETS
from tests.benchmarks.probed_daemon import STAGES
from tests.benchmarks.probes import REST, Probes, put_in

BUSY_NS = 20_000_000


def spend():
    until = time.thread_time_ns() + BUSY_NS
    while time.thread_time_ns() < until:
        pass


def test_what_a_stage_spends_is_charged_to_it_and_not_to_who_calls_it():
    probes = Probes(["outer", "inner"])
    inner = probes.probed("inner", spend)

    def call_twice():
        inner()
        inner()

    before, began = probes.taken(), time.thread_time_ns()
    probes.probed("outer", call_twice)()
    spend()
    after, ended = probes.taken(), time.thread_time_ns()
    spent = {stage: after["spent"][stage] - before["spent"][stage] for stage in after["spent"]}
    assert after["calls"] == {REST: 0, "outer": 1, "inner": 2}
    assert spent["inner"] >= 2 * BUSY_NS * 0.99
    assert spent[REST] >= BUSY_NS * 0.99
    assert spent["outer"] < BUSY_NS / 2
    charged = sum(spent.values()) + after["probes"] - before["probes"]
    assert charged == pytest.approx(ended - began, abs=BUSY_NS / 4)


def test_an_error_leaves_its_stage():
    probes = Probes(["failing"])
    with pytest.raises(ZeroDivisionError):
        probes.probed("failing", lambda: 1 / 0)()
    before = probes.taken()
    spend()
    assert probes.taken()["spent"]["failing"] == before["spent"]["failing"]


def test_a_function_that_is_not_there_is_an_error():
    with pytest.raises(AttributeError, match="no_such"):
        put_in(Probes(["any"]), {"any": ["trigmon.wire.codec:no_such"]})


LOOK = "store: look for messages"


@pytest.mark.parametrize(
    ("what", "clients", "decoded"),
    [("put", "1,3", "1.00"), ("get", "2", "1.00"), ("confirmed_get", "2", "2.00"), ("unit", "2", "0.02")],
)
def test_the_profile_meets_every_stage(what, clients, decoded):
    argv = ["--profile", what, "--rounds", "1", "--seconds", "0.3", "--clients", clients]
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", *argv], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    title = f"CPU of a {MESSAGE_OF[what]} by stage"
    for table in done.stdout.split(title)[1:]:
        calls = dict(re.findall(r"^  (\S.*?)  +-?[\d.]+ +-?[\d.]+% +(\S+)$", table, re.MULTILINE))
        assert set(STAGES) <= set(calls)
        rare = {"database: commit without a sync", "database: sync and checkpoint"}  # so few may need none
        unmet = {stage for stage in STAGES if calls[stage] == "-"} - rare
        assert unmet == (set() if what in GETS else {LOOK})
        assert calls["decode"] == decoded
        assert re.search(r"a daemon without probes, from /proc, in turns +[1-9]", table)
    assert done.stdout.count(title) == clients.count(",") + 1
