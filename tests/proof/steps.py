"""What clients do, as a table: one piece of work a line. Whoever adds a kind of call adds a line."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from msgspec.structs import replace

from tests.proof.clients import BATCHED, CUT, GROUPED, POISONED, PRIORITIES, QUEUES, Client, Doing, Gone, Pause, Talk
from trigmon.mq.calls import (
    Alter,
    Attempt,
    Backout,
    ChangeRun,
    Commit,
    Define,
    Delete,
    Disconnect,
    Get,
    PutMany,
    ReadReserved,
    RecordRun,
    Release,
    Reserve,
    Settle,
)
from trigmon.mq.enums import GetOption, MsgFlag, OpenOption, PutOption
from trigmon.mq.replies import Done, Refused, WasGot

NOT_STARTED = 2232
NONE_OR_TAKEN = (2033, 2042)
OF_A_BATCH = 5


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
    """A put that expires soon, or not for a day, and then is reported."""
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


def put_group(client: Client) -> Talk:
    """A group, in a unit of work and in logical order."""
    handle = yield from client.handle(GROUPED, int(OpenOption.OUTPUT))
    doing, priority = client.begin(), client.chance.choice(PRIORITIES)
    flags = [MsgFlag.MSG_IN_GROUP] * client.chance.randint(0, 3) + [MsgFlag.LAST_MSG_IN_GROUP]
    for flag in flags:
        body, call = client.a_put(doing, GROUPED, priority=priority)
        descriptor = replace(call.descriptor, msg_flags=int(flag))
        options = call.options | int(PutOption.LOGICAL_ORDER)
        reply = yield replace(call, q_name="", handle=handle, descriptor=descriptor, options=options)
        client.heard_put(doing, body, reply)
        if isinstance(reply, Refused):
            yield from client.end(doing, Backout)
            return
    yield from client.end_somehow(doing)


def get_group(client: Client) -> Talk:
    """A group, got whole: once its first message was got, every other is there."""
    doing, more = client.begin(), int(GetOption.LOGICAL_ORDER | GetOption.ALL_MSGS_AVAILABLE)
    due = 1
    while got := (yield from client.get(doing, GROUPED, more=more)):
        descriptor = got[0].descriptor
        if descriptor.msg_seq_number != due:
            raise AssertionError(f"{client.who}: {got[0].data!r} is number {descriptor.msg_seq_number}, not {due}")
        due += 1
        if descriptor.msg_flags & MsgFlag.LAST_MSG_IN_GROUP:
            break
    if due > 1 and not got:
        raise AssertionError(f"{client.who}: number {due} of a group is missing")
    yield from client.end_somehow(doing)


def get_marked(client: Client) -> Talk:
    """A message that its unit's backout carries into the next unit, beside one that comes back."""
    doing = client.begin()
    marked = yield from client.get(doing, "A", more=int(GetOption.MARK_SKIP_BACKOUT))
    yield from client.get(doing, "B")
    yield from client.end(doing, Backout)
    if marked:
        following = client.begin()
        client.note("carried", work=following.name, source=doing.name, body=marked[0].data.decode())
        if client.chance.random() < 0.5:
            yield from client.put(following, "B")
        yield from client.end_somehow(following)


def get_poison(client: Client) -> Talk:
    """A message that is mostly backed out."""
    doing = client.begin()
    yield from client.get(doing, POISONED, wait_ms=20)
    yield from client.end(doing, Commit if client.chance.random() < 0.2 else Backout)


def batch(client: Client) -> Talk:
    """A reservation, read and settled, given back, or left to the next link of the same consumer.

    What is left of it then is offered again, the very same, and counts as having come once more.
    """
    handle = yield from client.handle(BATCHED)
    doing = client.begin()
    doing.unit = 0
    client.note("asks", work=doing.name, queue=BATCHED, n=OF_A_BATCH)
    reserved = yield Reserve(handle=handle, consumer=client.who, max_messages=client.chance.randint(1, OF_A_BATCH))
    if isinstance(reserved, Refused):
        if reserved.reason not in NONE_OR_TAKEN:
            raise AssertionError(f"{client.who}: reserve was answered {reserved}")
        client.note("heard", work=doing.name)
        client.finish(doing, reserved)
        return
    number, left = reserved.reservation, {}
    for first, end in reserved.left_ordinals:
        read = yield ReadReserved(reservation=number, ordinal=first, count=end - first)
        left |= dict(zip(read.ordinals, read.messages, strict=True))
    for message in left.values():
        client.saw(doing.name, BATCHED, message)
    client.note("heard", work=doing.name)
    bodies = {ordinal: message.data.decode() for ordinal, message in left.items()}
    if client.batches.setdefault(number, bodies) != bodies or len(bodies) != reserved.left:
        raise AssertionError(f"{client.who}: batch {number} is {bodies}, and was {client.batches[number]}")
    if sum(times for _, _, times in reserved.deaths) < client.attempts[number]:
        raise AssertionError(f"{client.who}: batch {number} knows of {reserved.deaths}, not {client.attempts[number]}")
    if client.chance.random() < 0.3:
        reply = yield Attempt(reservation=number, count=1)
        if isinstance(reply, Refused):
            raise AssertionError(f"{client.who}: attempt was answered {reply}")
        client.attempts[number] += 1
    yield from _end_batch(client, doing, number)


def _end_batch(client: Client, doing: Doing, number: int) -> Talk:
    end = client.chance.random()
    if end < 0.2:
        yield CUT
    if end < 0.4:
        del client.batches[number]  # whether it is given back is not known where the link is lost
        reply = yield Release(reservation=number)
        if isinstance(reply, Refused):
            raise AssertionError(f"{client.who}: release was answered {reply}")
        client.asks_end(doing)
        client.doing = None
        client.ended(doing, "backed out")
        return
    client.asks_end(doing)
    client.doing = None
    while True:
        try:
            reply = yield Settle(reservation=number)
        except Gone:
            yield from client.link()  # whatever became of it, it is as good twice
        else:
            break
    if isinstance(reply, Refused):
        raise AssertionError(f"{client.who}: settle was answered {reply}")
    client.finish(doing, reply)
    del client.batches[number]


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
    client.write(doing, run_id, "started")
    client.asks_end(doing)
    record = {"run_id": run_id, "state": "started", "q_name": "A"}
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
    Step("put expiring", 4, put_expiring),
    Step("get alone", 9, get_alone, is_calm=True),
    Step("get in a unit", 14, get_unit, is_calm=True),
    Step("put a group", 4, put_group),
    Step("get a group", 5, get_group, is_calm=True),
    Step("get marked", 4, get_marked),
    Step("get poison", 5, get_poison, is_calm=True),
    Step("batch", 6, batch, is_calm=True),
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
