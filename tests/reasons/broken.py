"""Stories of a world that breaks: no queue manager, no link to it any more, no room, no disk.

Each makes its own queue manager by ``make`` (see tests.daemons.queue_managers) and breaks what is around it for real.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable

import apsw

from tests.daemons import Daemon, Raw, define
from tests.members import members, settings
from tests.postgres import Server
from tests.reasons.stories import Stories
from tests.waiting import until
from trigmon.mq.calls import Get, Open, Ping, Status
from trigmon.mq.enums import GetOption, OpenOption
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Reply
from trigmon.wire.codec import Welcome

STORIES = Stories()
Make = Callable[..., Daemon]
Q = "SYSTEM.DEFAULT.LOCAL.QUEUE"


@STORIES.of(Reason.Q_MGR_NOT_AVAILABLE)
def nobody_listens(make: Make) -> None:
    make(start=False).connect()


@STORIES.of(Reason.CONNECTION_BROKEN)
def the_queue_manager_is_killed(make: Make) -> None:
    one = make()
    qm = one.connect()
    one.kill()
    try:
        qm.call(Ping())
    finally:
        qm.drop()


@STORIES.of(Reason.CF_NOT_AVAILABLE)
def a_member_of_a_group_has_lost_its_database(make: Make) -> None:
    server = Server()
    try:
        (one,) = members(make, "QM1", chosen=settings(server.dsn))
        server.kill()
        one.wait_for_event("the group's database is lost; it comes back with that")
        one.connect()
    finally:
        server.end()


@STORIES.of(Reason.ALREADY_CONNECTED)
def a_second_connection_says_that_it_is_the_first(make: Make) -> Welcome | Reply:
    one = make()
    with Raw(one, client_id="0" * 32), Raw(one, client_id="0" * 32) as second:
        return second.welcome


@STORIES.of(Reason.MAX_CONNS_LIMIT_REACHED)
def more_come_than_there_are_places(make: Make) -> None:
    one = make(settings={"server.max_connections": 1})
    with contextlib.ExitStack() as harness:
        for _ in range(20):
            harness.callback(one.connect().drop)


@STORIES.of(Reason.Q_MGR_STOPPING)
def the_queue_manager_is_stopped_while_a_get_waits(make: Make) -> Reply:
    one = make()
    with Raw(one) as client:
        client.calls([Open(object_name=Q, options=OpenOption.INPUT_SHARED.value)])
        handle = client.reply()[1].handle
        client.calls([Get(handle=handle, options=GetOption.WAIT.value, wait_interval_ms=-1)], 2)
        with one.connect() as qm:
            while not qm.call(Status()).values["waiting_gets"]:
                time.sleep(0.01)
        assert one.stop() == 0
        return client.reply()[1]


@STORIES.of(Reason.STORAGE_MEDIUM_FULL)
def the_disk_has_less_room_than_is_kept_in_reserve(make: Make) -> None:
    with make(settings={"store.disk_reserve": 10**18}).connect() as qm:
        qm.put(Q, b"m")


@STORIES.of(Reason.UNEXPECTED_ERROR)
def the_directory_of_the_data_is_gone(make: Make) -> None:
    one = make()
    qm = one.connect()
    define(qm, "Q")
    shutil.rmtree(one.data)
    try:
        until(lambda: qm.put("Q", b"m") is None)  # the daemon looks at the disk at times, not at each turn
    finally:
        qm.drop()
        one.kill()
        # That it was met as a bug is this story's point: the fixture is not to be told of it.
        one.log.unlink()


@STORIES.of(Reason.OBJECT_DAMAGED)
def a_reserved_message_is_not_what_was_written(make: Make) -> None:
    one = make()
    with one.connect() as qm, qm.open(Q, "input_shared") as q:
        qm.put(Q, b"reserved", persistence="persistent")
        batch = q.reserve("JOB")
    assert one.stop() == 0
    with contextlib.closing(apsw.Connection(str(one.data / "qm.db"))) as db:
        db.execute("UPDATE message SET data = x'00'")
    one.start()
    with one.connect() as qm:
        list(qm.read_reserved(batch.number))
