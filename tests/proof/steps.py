"""What clients do, as a table: one piece of work a line. Whoever adds a kind of call adds a line."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tests.proof.clients import CUT, PRIORITIES, QUEUES, Client, Pause, Talk
from trigmon.mq.calls import (
    Alter,
    ChangeRun,
    Commit,
    Define,
    Delete,
    Disconnect,
    Done,
    Get,
    PutMany,
    RecordRun,
    Refused,
    WasGot,
)
from trigmon.mq.enums import GetOption

NOT_STARTED = 2232


def put_alone(client: Client) -> Talk:
    """A put outside any unit."""
    doing = client.alone()
    client.finish(doing, (yield from client.put(doing, client.chance.choice(client.puts_to))))


def put_unit(client: Client) -> Talk:
    """Puts in a unit of work, on any queues."""
    doing = client.begin()
    for _ in range(client.chance.randint(1, 5)):
        yield from client.put(doing, client.chance.choice(client.puts_to))
    yield from client.end_somehow(doing)


def put_ahead(client: Client) -> Talk:
    """Puts and their commit, sent without waiting for replies."""
    doing = client.begin()
    puts = [client.a_put(doing, client.chance.choice(QUEUES)) for _ in range(client.chance.randint(1, 4))]
    client.asks_end(doing)
    *replies, last = yield [*(call for _, call in puts), Commit(unit=doing.unit)]
    for (body, _), reply in zip(puts, replies, strict=True):
        client.heard_put(doing, body, reply)
    client.settle(doing, Commit, last)


def put_many(client: Client) -> Talk:
    """Several puts in one call outside any unit: all or nothing."""
    doing = client.alone()
    priority = client.chance.choice(PRIORITIES)
    puts = [client.a_put(doing, "A", priority=priority) for _ in range(client.chance.randint(2, 5))]
    descriptor = puts[0][1].descriptor
    reply = yield PutMany(q_name="A", bodies=[call.data for _, call in puts], descriptor=descriptor)
    for body, _ in puts:
        client.heard_put(doing, body, reply)
    client.finish(doing, reply)


def put_volatile(client: Client) -> Talk:
    """A put that a crash takes with it."""
    doing = client.alone()
    client.finish(doing, (yield from client.put(doing, client.chance.choice(QUEUES), kind="volatile")))


def put_expiring(client: Client) -> Talk:
    """A put that expires soon, or not for a day."""
    doing = client.alone()
    expiry_ms = client.chance.choice((200, 2_000, 86_400_000))
    client.finish(doing, (yield from client.put(doing, client.chance.choice(QUEUES), expiry_ms=expiry_ms)))


def get_alone(client: Client) -> Talk:
    """A get outside any unit."""
    q_name, wait_ms = client.chance.choice(client.gets_from), client.chance.choice((0, 0, 50))
    yield from client.handle(q_name)
    doing = client.alone()
    yield from client.get(doing, q_name, wait_ms=wait_ms)
    client.finish(doing, Done())


def get_unit(client: Client) -> Talk:
    """Gets in a unit of work."""
    doing = client.begin()
    q_name = client.chance.choice(client.gets_from)
    for _ in range(client.chance.randint(1, 4)):
        if not (yield from client.get(doing, q_name, n=client.chance.choice((0, 0, 3)), wait_ms=50)):
            break
    yield from client.end_somehow(doing)


def move_on(client: Client) -> Talk:
    """One message got and its successor put, in one unit."""
    doing = client.begin()
    if (yield from client.get(doing, "A")):
        yield from client.put(doing, "B")
    yield from client.end_somehow(doing)


def browse(client: Client) -> Talk:
    """A look without taking."""
    q_name = client.chance.choice(QUEUES)
    handle = yield from client.handle(q_name)
    for option in (GetOption.BROWSE_FIRST, GetOption.BROWSE_NEXT):
        reply = yield Get(handle=handle, options=int(option))
        if isinstance(reply, WasGot):
            client.saw("", q_name, reply)


def commit_again(client: Client) -> Talk:
    """A commit that comes a second time, and must settle nothing: not the unit that has begun meanwhile."""
    doing = client.begin()
    yield from client.put(doing, "A")
    if doing.unit > 1:
        reply = yield Commit(unit=doing.unit - 1)
        if not isinstance(reply, Refused) or reply.reason != NOT_STARTED:
            raise AssertionError(f"{client.who}: a late commit was answered {reply}")
    yield from client.end_somehow(doing)


def alter(client: Client) -> Talk:
    """A definition changes."""
    doing, value = client.alone(), client.new_value()
    client.write(doing, f"ALTER.{client.who}", value)
    reply = yield Alter(object_type="QLOCAL", name=f"ALTER.{client.who}", attributes={"description": value})
    client.finish(doing, reply)


def define_or_delete(client: Client) -> Talk:
    """A queue of the client's own comes or goes."""
    name = f"MADE.{client.who}"
    doing, is_made = client.alone(), client.chance.random() < 0.5
    client.write(doing, name, "made" if is_made else None)
    define = Define(object_type="QLOCAL", name=name, attributes={"description": "made"})
    reply = yield define if is_made else Delete(object_type="QLOCAL", name=name)
    client.finish(doing, reply)


def record_run(client: Client) -> Talk:
    """A run's record, committed with a get in one."""
    doing = client.begin()
    if not (yield from client.get(doing, "A")):
        yield from client.end(doing, Commit)
        return
    run_id = f"RUN.{doing.name}"
    client.write(doing, run_id, "due")
    client.asks_end(doing)
    record = {"run_id": run_id, "state": "due", "q_name": "A"}
    reply = yield RecordRun(run_id=run_id, record=record, unit=doing.unit)
    client.settle(doing, RecordRun, reply)
    client.runs.append(run_id)


def change_run(client: Client) -> Talk:
    """A run's record is written anew."""
    if not client.runs:
        return
    doing, run_id, value = client.alone(), client.chance.choice(client.runs), client.new_value()
    client.write(doing, run_id, value)
    client.finish(doing, (yield ChangeRun(run_id=run_id, fields={"state": value})))


def die(client: Client) -> Talk:
    """The link is cut, and whatever was going on with it."""
    yield CUT


def leave(client: Client) -> Talk:
    """An orderly end, which commits, and another connection."""
    doing = client.begin()
    yield from client.put(doing, "A")
    client.asks_end(doing)
    yield Disconnect()
    client.doing = None
    client.ended(doing, "committed")
    yield from client.link()


def rest(client: Client) -> Talk:
    """Nothing for a while."""
    yield Pause(client.chance.randint(1, 100))


class Step(NamedTuple):
    """``weight``: how often, against the others. ``is_calm``: it brings no messages and cuts no link."""

    name: str
    weight: int
    play: Callable[[Client], Talk]
    is_calm: bool = False


STEPS = (
    Step("put alone", 10, put_alone),
    Step("put in a unit", 8, put_unit),
    Step("put ahead", 5, put_ahead),
    Step("put many", 3, put_many),
    Step("put volatile", 2, put_volatile),
    Step("put expiring", 2, put_expiring),
    Step("get alone", 9, get_alone, is_calm=True),
    Step("get in a unit", 14, get_unit, is_calm=True),
    Step("move on", 5, move_on),
    Step("browse", 2, browse, is_calm=True),
    Step("commit again", 2, commit_again),
    Step("alter", 2, alter, is_calm=True),
    Step("define or delete", 2, define_or_delete, is_calm=True),
    Step("record a run", 3, record_run, is_calm=True),
    Step("change a run", 2, change_run, is_calm=True),
    Step("die", 1, die),
    Step("leave", 1, leave),
    Step("rest", 4, rest, is_calm=True),
)
