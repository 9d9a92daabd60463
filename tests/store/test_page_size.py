"""The pages of SQLite's database: large in a new one, and each database keeps its own."""

import pytest

from tests.worlds import World
from trigmon.mq.calls import Get
from trigmon.mq.enums import OpenOption
from trigmon.store.sqlite import connection
from trigmon.store.sqlite.turn_log import CHECKPOINT_BYTES, SHORT_BYTES

SIZES = (4096, connection.PAGE_SIZE)


@pytest.fixture(params=SIZES)
def sized(request, tmp_path, monkeypatch):
    """A queue manager on a database that was made with pages of this size, in bytes, and the size."""
    monkeypatch.setattr(connection, "PAGE_SIZE", request.param)
    world = World("sqlite", tmp_path)
    world.define("Q", def_persistence="persistent")
    monkeypatch.undo()
    yield world, request.param
    world.end()


def page_size(world):
    return world.store._db.pragma("page_size")


def test_a_new_database_has_pages_of_16_kib(tmp_path):
    world = World("sqlite", tmp_path)
    assert page_size(world) == 16384
    world.end()


def test_a_database_keeps_its_pages_and_its_messages_over_starts_and_crashes(sized):
    world, size = sized
    bodies = [b"%d" % number * 500 for number in range(50)]
    for number, body in enumerate(bodies):
        world.put("Q", body)
        if number % 20 == 10:
            world.crash()
        elif number % 20 == 19:
            world.restart()
    assert page_size(world) == size
    handle = world.open("Q", OpenOption.INPUT_SHARED)
    assert [world.did(Get(handle=handle)).data for _ in bodies] == bodies


@pytest.mark.parametrize(("is_disk_nearly_full", "most"), [(False, CHECKPOINT_BYTES), (True, SHORT_BYTES)])
def test_the_log_is_long_at_the_same_bytes_whatever_its_pages(sized, is_disk_nearly_full, most):
    world, size = sized
    log = world.store._log
    log.pages = most // size - 1
    assert not log.is_long(is_disk_nearly_full)
    log.pages += 1
    assert log.is_long(is_disk_nearly_full)
