"""Lives of other kinds than a load's: who waits, who listens for trigger messages, and what they start."""

from __future__ import annotations

from collections.abc import Callable

from tests.proof.clients import SYNCPOINT, Client, Gone, Talk
from tests.proof.history import COMMITTED
from trigmon.mq.calls import Commit, Disconnect, Get, Open, Set
from trigmon.mq.descriptors import unpack_tm
from trigmon.mq.enums import GetOption, OpenOption
from trigmon.mq.replies import Opened, Refused, WasGot

WAITED_ON = "W"
"""A queue of which gets wait."""
FOREVER = -1
DIES = 0.1


def waiting(client: Client, is_calm: Callable[[], bool]) -> Talk:
    """Waits for messages; when all is calm, as long as it takes, so that a wake-up that is lost shows."""
    yield from client.link()
    while client.goes_on():
        try:
            doing = client.begin()
            yield from client.get(doing, WAITED_ON, wait_ms=FOREVER if is_calm() else 2000)
            yield from client.end_somehow(doing)
        except Gone:
            yield from client.recover()


def listening(client: Client, initiation_q: str, start: Callable[[str], None]) -> Talk:
    """A trigger monitor: starts a program for each trigger message it has got and committed."""
    yield from client.link()
    while client.goes_on():
        taken = None
        try:
            handle = yield from _watch(client, initiation_q)
            while client.goes_on():
                taken = None
                options = SYNCPOINT | int(GetOption.WAIT)
                reply = yield Get(handle=handle, options=options, wait_interval_ms=1000, unit=client.unit)
                if isinstance(reply, WasGot):
                    client.begin()
                    taken = unpack_tm(reply.data).q_name
                    yield from _commit(client)
                    start(taken)
        except Gone:
            doing, client.doing = client.doing, None
            yield from client.link()
            if taken and doing is not None and (yield from client.fate(doing)) == COMMITTED:
                start(taken)


def _watch(client: Client, initiation_q: str) -> Talk:
    client.note("watch")
    reply = yield Open(object_name=initiation_q, options=int(OpenOption.INPUT_SHARED))
    if not isinstance(reply, Opened):
        raise AssertionError(f"{client.who}: open {initiation_q} was answered {reply}")
    return reply.handle


def _commit(client: Client) -> Talk:
    reply = yield Commit(unit=client.unit)
    if isinstance(reply, Refused):
        raise AssertionError(f"{client.who}: its commit was answered {reply}")
    client.unit += 1
    client.doing = None


def triggered(client: Client, q_name: str, is_calm: Callable[[], bool]) -> Talk:
    """A program that was started for a queue: opens it, however often it must try, and takes what there is.

    It may die once it has opened; that the queue has lost its reader is then an occasion to start another.
    """
    yield from client.link()
    while True:
        try:
            yield from client.handle(q_name)
            if not is_calm() and client.chance.random() < DIES:
                return
            while (yield from _take_some(client, q_name)):
                pass
            # A DEPTH queue fires once and is switched off: the manual has the program switch it on again.
            control = yield from client.handle(q_name, int(OpenOption.SET))
            yield Set(handle=control, attributes={"trigger_control": "on"})
            yield Disconnect()
        except Gone:
            yield from client.recover()
        else:
            return


def _take_some(client: Client, q_name: str) -> Talk:
    """One unit; whether there was anything, for a unit that was backed out has left it there."""
    doing = client.begin()
    was_something = False
    for _ in range(client.chance.randint(1, 3)):
        got = yield from client.get(doing, q_name, wait_ms=100)
        was_something = was_something or bool(got)
        if not got:
            break
    yield from client.end_somehow(doing)
    return was_something
