"""The turns of a member of a group: what arrives while it waits to enter the group belongs to the same turn."""

from __future__ import annotations

import contextlib
import fcntl
import statistics
import struct
import termios

import psycopg
import pytest
from psycopg import sql

from tests.members import members, sees, settings, share
from tests.postgres import shared
from tests.waiting import until
from trigmon.mq.calls import Put
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.replies import WasPut
from trigmon.store.postgres import group_sql

PUT = Put(q_name="Q", data=b"m", descriptor=MessageDescriptor(persistence=1))
TRIES = 9


@pytest.fixture
def chosen():
    return settings(lease_s=60)


@pytest.fixture
def group(chosen):
    made = Group(chosen)
    yield made
    made.asking.close()


@pytest.fixture
def member(daemon, chosen):
    """One member with a shared queue Q."""
    (made,) = members(daemon, "QM1", chosen=chosen)
    share(made, "Q")
    sees(made, q_name="Q")
    return made


class Group:
    """The group's rows, as another session sees them."""

    def __init__(self, chosen):
        self._schema = chosen["group.postgres_schema"]
        self.asking = psycopg.connect(shared().dsn, autocommit=True)

    @property
    def version(self):
        """One more with every turn that changes something shared."""
        return self.asking.execute(sql.SQL("SELECT version FROM {}").format(self._of("turn"))).fetchone()[0]

    @property
    def is_waited_for(self):
        """Whether the member's session waits for a lock."""
        waits = "SELECT FROM pg_stat_activity a JOIN {} m ON m.backend = a.pid WHERE a.wait_event_type = 'Lock'"
        return self.asking.execute(sql.SQL(waits).format(self._of("member"))).fetchone() is not None

    @contextlib.contextmanager
    def held(self):
        """Another member has its turn."""
        with psycopg.connect(shared().dsn) as other:
            other.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(self._schema)))
            other.execute(group_sql.LOCK)
            yield

    def _of(self, table):
        return sql.Identifier(self._schema, table)


def is_read(qm):
    """Whether the member has read all that was sent to it."""
    unread = fcntl.ioctl(qm._transport._link.fileno(), termios.TIOCOUTQ, bytes(4))
    return struct.unpack("i", unread) == (0,)


def send(*some):
    """Sends a put through each of these connections, and returns when the member has read them."""
    sent = [(qm, qm._transport.send(PUT)) for qm in some]
    until(lambda: all(map(is_read, some)))
    return sent


def turns_of(group, first, *more):
    """In how many turns calls are performed of which the first waits for another member when the others arrive."""
    before = group.version
    with group.held():
        sent = send(first)
        until(lambda: group.is_waited_for)
        sent += send(*more)
    for qm, number in sent:
        assert isinstance(qm._transport.receive(number), WasPut)
    return group.version - before


def mostly(turns):
    """The most frequent of many tries: a member looks at its group once a second, which may come between."""
    return statistics.mode(turns() for _ in range(TRIES))


@pytest.mark.parametrize("before", [1, 3])
def test_calls_that_arrive_while_the_group_is_entered_belong_to_the_turn(member, group, before):
    with member.connect() as one, member.connect() as two, member.connect() as three:

        def behind_another_turn():
            turns_of(group, *[one, two, three][:before])
            return turns_of(group, one, two, three)

        assert mostly(behind_another_turn) == 1
