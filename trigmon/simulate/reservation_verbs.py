"""The verbs of reservations in a scenario: their arguments, what they do, and what may be seen of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trigmon.mq import calls, replies
from trigmon.mq.replies import Reply
from trigmon.simulate import scenario as act
from trigmon.simulate.mapping import Fields, Place, Reader, count, items, shown, text, truth

ALL = 10_000_000
"""As many as a reservation may have."""


def _reserve(value: Any, place: Place) -> act.Reserve:
    keys = ("queue", "handle", "consumer", "max_messages", "max_bytes", "whole_groups", "token")
    fields = Fields(value, place, "reserve", keys)
    if "handle" not in fields:
        fields.need("queue", text)
    return act.Reserve(
        handle=fields.take("handle", text, "") or fields.need("queue", text),
        consumer=fields.need("consumer", text),
        max_messages=fields.take("max_messages", count, 10_000),
        max_bytes=fields.take("max_bytes", count, 1 << 30),
        whole_groups=fields.take("whole_groups", truth, False),
        token=fields.take("token", text, ""),
    )


def _of(what: str, *more: str) -> Reader[Fields]:
    def read(value: Any, place: Place) -> Fields:
        return Fields(value, place, what, ("consumer", *more))

    return read


def _read_reserved(value: Any, place: Place) -> act.ReadReserved:
    fields = _of("read_reserved", "from", "count")(value, place)
    return act.ReadReserved(
        consumer=fields.need("consumer", text),
        first=fields.take("from", count, 0),
        count=fields.take("count", count, ALL),
    )


def _settle(value: Any, place: Place) -> act.Settle:
    fields = _of("settle", "from", "count")(value, place)
    return act.Settle(
        consumer=fields.need("consumer", text),
        first=fields.take("from", count, 0),
        count=fields.take("count", count, -1),
    )


def _release(value: Any, place: Place) -> act.Release:
    fields = _of("release", "from", "count", "counts")(value, place)
    return act.Release(
        consumer=fields.need("consumer", text),
        first=fields.take("from", count, 0),
        count=fields.take("count", count, -1),
        counts=fields.take("counts", truth, True),
    )


def _attempt(value: Any, place: Place) -> act.Attempt:
    fields = _of("attempt", "from", "count")(value, place)
    return act.Attempt(
        consumer=fields.need("consumer", text),
        first=fields.take("from", count, 0),
        count=fields.take("count", count, 0),
    )


def _reject(value: Any, place: Place) -> act.Reject:
    fields = _of("reject", "ordinal", "why")(value, place)
    return act.Reject(
        consumer=fields.need("consumer", text),
        ordinal=fields.need("ordinal", count),
        why=fields.take("why", text, ""),
    )


ACTS: Mapping[str, Reader[act.Act]] = {
    "reserve": _reserve,
    "read_reserved": _read_reserved,
    "settle": _settle,
    "release": _release,
    "attempt": _attempt,
    "reject": _reject,
}


# -- doing --------------------------------------------------------------------------------------------------


def as_call(done: act.OfReservation, number: int) -> calls.Call:
    """Returns the call of a verb about the reservation of this number."""
    match done:
        case act.ReadReserved(_, first, many):
            return calls.ReadReserved(reservation=number, ordinal=first, count=many)
        case act.Settle(_, first, many):
            return calls.Settle(reservation=number, ordinal=first, count=many)
        case act.Release(_, first, many, counts):
            return calls.Release(reservation=number, ordinal=first, count=many, counts=counts)
        case act.Attempt(_, first, many):
            return calls.Attempt(reservation=number, ordinal=first, count=many)
        case act.Reject(_, ordinal, why):
            return calls.Reject(reservation=number, ordinal=ordinal, why=why)


# -- seeing -------------------------------------------------------------------------------------------------


def _list_of(reader: Reader[Any]) -> Reader[list[Any]]:
    return lambda value, place: [reader(item, where) for item, where in items(value, place)]


_SETTLED: dict[str, Reader[Any]] = {"count": count, "left": count, "already": truth}
RETURNED: dict[str, dict[str, Reader[Any]]] = {
    "reserve": {
        "count": count,
        "left": count,
        "size": count,
        "token": text,
        "again": truth,
        "offers": count,
        "deaths": _list_of(_list_of(count)),
        "settled": count,
    },
    "read_reserved": {"data": _list_of(text), "ordinals": _list_of(count), "backout_count": _list_of(count)},
    "settle": _SETTLED,
    "release": _SETTLED,
    "reject": _SETTLED,
}
"""What ``returns`` may name, by verb."""


def read_returns(verb: str) -> Reader[dict[str, Any]]:
    """Returns a reader of what ``returns`` says beside a verb."""
    readers = RETURNED[verb]

    def read(value: Any, place: Place) -> dict[str, Any]:
        fields = Fields(value, place, "returns", readers)
        return {key: fields.take(key, reader, None) for key, reader in readers.items() if key in fields}

    return read


def returned_otherwise(wanted: Mapping[str, Any], reply: Reply | None) -> list[str]:
    """Returns what of a reply is not as ``returns`` says; nothing of a reply that is not about reservations."""
    if not isinstance(reply, replies.Reserved | replies.WereReserved | replies.Settled):
        return []
    return [
        f"returns: expected {key} {shown(value)}, got {shown(_returned(key, reply))}"
        for key, value in wanted.items()
        if _returned(key, reply) != value
    ]


def _returned(key: str, reply: Reply) -> object:
    if isinstance(reply, replies.WereReserved):
        if key == "data":
            return [message.data.decode(errors="replace") for message in reply.messages]
        if key == "backout_count":
            return [message.descriptor.backout_count for message in reply.messages]
    return getattr(reply, key)
