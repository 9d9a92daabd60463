"""Random scripts of calls give the same replies, the same triggers and the same state on all stores.

The world begins armed and watched (a monitor listens, queues of every type), so that scripts reach triggering; what
a wrong rule does alike on both stores is the scenarios' business. A second property needs no other store: what was
put and committed is got once, and the depth is the number of messages. After every step what stands is what a count
of the rows gives.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.qmgr.script_steps import IN, batches, large_ends, long_scripts, scripts, traffic
from tests.qmgr.store_script import Script, body_of
from trigmon.mq.calls import (
    Alter,
    Display,
    Get,
    Release,
    Reservations,
)
from trigmon.mq.enums import ApplType, MsgType
from trigmon.mq.replies import Reserved, Settled, WasGot
from trigmon.store.sql import read_ahead
from trigmon.store.sql.leftovers import Leftovers
from trigmon.store.sql.reserved_ranges import ReservedRanges
from trigmon.store.sqlite import first_rows


def check_that_stores_agree(script, store):
    with tempfile.TemporaryDirectory() as directory:
        memory, other = Script("memory", Path(directory)), Script(store, Path(directory))
        memory.play(script)
        other.play(script)
        for mine, its in zip(memory.seen, other.seen, strict=True):
            assert mine == its
        memory.world.end()
        other.world.end()


ON_SQLITE, ON_POSTGRES = (partial(check_that_stores_agree, store=store) for store in ("sqlite", "postgres"))


def check_that_large_ends_agree(script, store):
    """The same where a unit of more than one message is a large one, and a slice one row."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Leftovers, "at_once", 1)
        check_that_stores_agree(script, store)


LARGE_ON_SQLITE, LARGE_ON_POSTGRES = (
    partial(check_that_large_ends_agree, store=store) for store in ("sqlite", "postgres")
)


def check_that_small_windows_agree(script):
    """The same where SQLite reads three messages ahead, and knows four of a queue."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(first_rows, "MOST_ROWS", 3)
        patched.setattr(read_ahead, "MOST_ROWS", 4)
        patched.setattr(read_ahead, "MOST_OF_A_UNIT", 3)
        patched.setattr(ReservedRanges, "least", 1)
        check_that_stores_agree(script, "sqlite")


def check_that_nothing_is_lost_or_doubled(script):
    with tempfile.TemporaryDirectory() as directory:
        played = Script("memory", Path(directory))
        played.play(script)
        world = played.world
        world.restart()
        for row in world.did(Reservations(), "operator").rows:
            world.did(Release(reservation=row["reservation"]), "operator")
        while world.qm.housekeeping.is_scanning:  # what was given back returns by slices
            world.qm.housekeeping.scan()
        for q_name in ("F", "E", "D", "B", "INITQ"):
            # What is poison is to be counted where it lies.
            plain = {"inhibit_get": "allowed", "backout_requeue": "appl"}
            world.did(Alter(object_type="QLOCAL", name=q_name, attributes=plain), "operator")
            handle = world.open(q_name, IN, as_="last")
            row = next(r for r in world.did(Display(object_type="QLOCAL", name=q_name)).rows)
            left = []
            while isinstance(reply := world.do(Get(handle=handle), "last"), WasGot):
                # A get and a close may themselves give rise to a report or a trigger message.
                if reply.descriptor.msg_type != MsgType.REPORT and reply.descriptor.put_appl_type != ApplType.QMGR:
                    left.append(body_of(reply))
            assert len(left) <= row["current_q_depth"]  # the rest were expired and not yet discarded
            played.got.update(left)
        lasting = {body: played.got[body] for body in played.committed}
        assert lasting == dict(played.committed)
        world.end()


@settings(max_examples=150)
@given(scripts)
def test_both_stores_give_the_same_replies_triggers_and_state(script):
    check_that_stores_agree(script, "sqlite")


@settings(max_examples=40)
@given(scripts)
def test_postgresql_gives_the_same_as_well(script):
    check_that_stores_agree(script, "postgres")


@settings(max_examples=100)
@given(scripts)
def test_it_is_so_where_units_end_slice_by_slice(script):
    check_that_large_ends_agree(script, "sqlite")


@pytest.mark.parametrize("seed", range(20))
def test_large_units_end_alike(seed):
    check_that_large_ends_agree(large_ends(seed), "sqlite")
    check_that_large_ends_agree(large_ends(seed), "postgres")


@settings(max_examples=150)
@given(scripts)
def test_what_was_committed_is_got_once_and_nothing_else(script):
    check_that_nothing_is_lost_or_doubled(script)


@settings(max_examples=150)
@given(scripts)
def test_it_is_so_where_little_is_read_ahead(script):
    check_that_small_windows_agree(script)


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_numbers_behind_a_restart_are_the_same_though_a_call_was_undone_before(store):
    undone = [("fail", "one", "B", False, True), ("fail", "one", "B", False, False), ("fail", "one", "B", True, False)]
    undone += [("put_many", "two", "E", False, 4), ("retry", "E")]
    check_that_stores_agree([*undone, ("restart",), ("monitor", True)], store)


@pytest.mark.parametrize("seed", range(20))
def test_all_stores_keep_marks_and_locks_alike(seed):
    check_that_small_windows_agree(traffic(seed))
    check_that_stores_agree(traffic(seed), "sqlite")
    check_that_stores_agree(traffic(seed), "postgres")
    check_that_nothing_is_lost_or_doubled(traffic(seed))


@pytest.mark.parametrize("seed", range(20))
def test_all_stores_keep_reservations_alike(seed):
    check_that_stores_agree(batches(seed), "sqlite")
    check_that_stores_agree(batches(seed), "postgres")
    check_that_nothing_is_lost_or_doubled(batches(seed))


def test_those_scripts_come_to_batches_that_are_offered_again_given_back_and_settled():
    with tempfile.TemporaryDirectory() as directory:
        seen = []
        for seed in range(20):
            played = Script("memory", Path(directory))
            played.play(batches(seed))
            seen += [reply for reply in played.seen if isinstance(reply, Reserved | Settled)]
        assert any(reply.offers > 1 for reply in seen if isinstance(reply, Reserved))
        assert any(reply.deaths for reply in seen if isinstance(reply, Reserved))
        assert sum(reply.count > 1 for reply in seen if isinstance(reply, Reserved)) > 50
        assert sum(reply.count > 0 for reply in seen if isinstance(reply, Settled)) > 50


@pytest.mark.slow
@pytest.mark.parametrize(
    "check",
    [
        ON_SQLITE,
        ON_POSTGRES,
        LARGE_ON_SQLITE,
        LARGE_ON_POSTGRES,
        check_that_small_windows_agree,
        check_that_nothing_is_lost_or_doubled,
    ],
)
@settings(max_examples=700, suppress_health_check=list(HealthCheck))
@given(script=long_scripts)
def test_it_holds_for_many_long_scripts(check, script):
    check(script)
