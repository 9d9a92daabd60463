"""A real queue manager's own time: deadlines stand over restarts and jumps of the wall clock, and it says so."""

import json
import time

import apsw
import pytest

from tests.daemons import Daemon
from tests.server.discarding import depths_while_it_discards
from trigmon.mq.calls import Define
from trigmon.store.sqlite.store import FILE_NAME

DAY_MS = 86_400_000


@pytest.fixture
def daemon(tmp_path):
    made = Daemon(tmp_path)
    yield made.start()
    if made.process.poll() is None:
        made.stop()


def shift_own_time(daemon, ms):
    """What the store of a stopped queue manager would hold had the wall clock jumped back by so much since."""
    db = apsw.Connection(str(daemon.data / FILE_NAME))
    ((reported,),) = db.execute("SELECT value FROM meta WHERE key = 'own_time'").fetchall()
    kept = json.loads(reported)
    db.execute(
        "UPDATE meta SET value = ?, sum = NULL WHERE key = 'own_time'",
        (json.dumps({**kept, "ahead_ms": kept["ahead_ms"] + ms, "own_ms": kept["own_ms"] + ms}),),
    )
    # A row without a checksum is believed, as one that an earlier version wrote.
    db.execute("UPDATE message SET header = NULL, expires_ms = expires_ms + ? WHERE expires_ms > 0", (ms,))
    db.close()


@pytest.mark.parametrize(("end", "jump_ms"), [("stop", 0), ("kill", 0), ("stop", 3 * DAY_MS), ("stop", -3 * DAY_MS)])
def test_a_deadline_moves_by_less_than_a_second_over_a_restart_and_a_jump_of_days(daemon, end, jump_ms):
    with daemon.connect() as qm:
        qm.call(Define(object_type="QLOCAL", name="Q", attributes={"def_persistence": "persistent"}))
        qm.put("Q", b"m", expiry=600)
    began = time.monotonic()
    getattr(daemon, end)()
    if jump_ms:
        shift_own_time(daemon, jump_ms)
    daemon.start()
    with daemon.connect() as qm, qm.open("Q", "input_shared") as queue:
        left = queue.get().expiry_tenths
    assert abs(left - (600 - 10 * (time.monotonic() - began))) <= 10
    off = daemon.events("the wall clock is not where the queue manager's own time is")
    assert [round(event["own_time_ahead_ms"] / DAY_MS) for event in off] == ([jump_ms // DAY_MS] if jump_ms else [])


def test_a_start_answers_before_it_has_discarded_what_expired_meanwhile(daemon):
    depths = depths_while_it_discards(daemon)
    assert depths[0] > 0
    assert depths == sorted(depths, reverse=True)
