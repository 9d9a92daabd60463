"""Expectations: reading them, and saying of what was seen whether it is what was expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trigmon.mq.errors import MQError
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Explained, Reply, WasGot
from trigmon.simulate.mapping import Fields, Place, Reader, items, nearest, shown, text, truth, worded
from trigmon.simulate.message_fields import appl_type, read_returns, returned, shown_value
from trigmon.simulate.reservation_verbs import RETURNED, returned_otherwise
from trigmon.simulate.reservation_verbs import read_returns as read_returns_of
from trigmon.simulate.scenario import Expected
from trigmon.simulate.stage import Available

EXPECTATIONS = ("triggers", "returns", "reason", "warning", "fires", "fails")
CONDITIONS = (*map(str, range(2, 11)), "14")
_ONLY_OF = {"returns": ("get", *RETURNED), "fires": ("explain",), "fails": ("explain",)}
_TRIGGER: dict[str, Reader[Any]] = {
    "q_name": text,
    "process_name": text,
    "trigger_data": text,
    "appl_type": appl_type,
    "appl_id": text,
    "env_data": text,
    "user_data": text,
}


# -- reading ------------------------------------------------------------------------------------------------


def read_expected(fields: Fields, verb: str, q_mgr: Reader[str]) -> Expected:
    """Returns the expectations beside a verb; ``q_mgr`` reads the name of a queue manager."""
    for key, only in _ONLY_OF.items():
        if key in fields and verb not in only:
            raise fields.place.at(key).error(f"{key} is an expectation of {', '.join(only)}, not of {verb}")
    if "reason" in fields and "warning" in fields:
        raise fields.place.at("warning").error("a call has a reason or a warning, not both")
    return Expected(
        triggers=fields.take("triggers", _triggers(q_mgr), None),
        returns=fields.take("returns", read_returns_of(verb) if verb in RETURNED else read_returns, None),
        reason=fields.take("reason", _reason, Reason.NONE),
        warning=fields.take("warning", _reason, Reason.NONE),
        fires=fields.take("fires", truth, None),
        fails=fields.take("fails", _conditions, None),
    )


def _triggers(q_mgr: Reader[str]) -> Reader[tuple[Mapping[str, Any], ...]]:
    def one(value: Any, place: Place) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            return {"q_name": text(value, place)}
        readers = {**_TRIGGER, "on": q_mgr}
        fields = Fields(value, place, "a trigger message", readers)
        return {key: fields.take(key, reader, None) for key, reader in readers.items() if key in fields}

    def read(value: Any, place: Place) -> tuple[Mapping[str, Any], ...]:
        return tuple(one(item, where) for item, where in items(value, place))

    return read


def _reason(value: Any, place: Place) -> Reason:
    if isinstance(value, str):
        name = value.upper().removeprefix("MQRC_").removeprefix("MQRCCF_")
        if name in Reason.__members__ and name != "NONE":
            return Reason[name]
    elif isinstance(value, int) and value in Reason._value2member_map_ and value:
        return Reason(value)
    known = [name for name in Reason.__members__ if name != "NONE"]
    raise place.error(f"{place.path[-1]} does not know {worded(value)}{nearest(value, known)}")


def _conditions(value: Any, place: Place) -> frozenset[str]:
    numbers = [(text(item, where), where) for item, where in items(value, place)]
    for number, where in numbers:
        if number not in CONDITIONS:
            raise where.error(f"fails: {worded(number)} is none of the conditions {', '.join(CONDITIONS)}")
    return frozenset(number for number, _ in numbers)


# -- comparing ----------------------------------------------------------------------------------------------


def differences(
    expected: Expected, reply: Reply | None, error: MQError | None, triggers: Sequence[Available]
) -> list[str]:
    """Returns what of a step was not as expected, in words; nothing when every expectation held."""
    found = _ended_otherwise(expected, reply, error)
    if expected.returns is not None and isinstance(reply, WasGot):
        found += _returned_otherwise(expected.returns, reply)
    if expected.returns is not None:
        found += returned_otherwise(expected.returns, reply)
    if isinstance(reply, Explained):
        found += _explained_otherwise(expected, reply)
    if expected.triggers is not None and not _fit(expected.triggers, triggers):
        found.append(f"triggers: expected {_list(map(_wanted, expected.triggers))}, seen {_list(map(str, triggers))}")
    return found


def _ended_otherwise(expected: Expected, reply: Reply | None, error: MQError | None) -> list[str]:
    if error is not None:
        if error.reason is expected.reason:
            return []
        wanted = expected.reason or expected.warning
        return [f"{f'expected {_named(wanted)}, but ' if wanted else ''}it failed: {error}"]
    if expected.reason:
        return [f"reason: expected {_named(expected.reason)}, but it completed"]
    warning = reply.warning if reply else 0
    if warning == expected.warning:
        return []
    seen = f"completed with {_named(warning)}" if warning else "completed without a warning"
    return [f"warning: expected {_named(expected.warning)}, but it {seen}"] if expected.warning else [f"it {seen}"]


def _named(reason: int) -> str:
    return f"{Reason(reason).name} ({int(reason)})" if reason in list(Reason) else str(reason)


def _returned_otherwise(wanted: Mapping[str, Any], message: WasGot) -> list[str]:
    return [
        f"returns: expected {key} {shown_value(value)}, got {shown_value(returned(key, message))}"
        for key, value in wanted.items()
        if returned(key, message) != value
    ]


def _explained_otherwise(expected: Expected, verdict: Explained) -> list[str]:
    found = []
    if expected.fires is not None and verdict.fires is not expected.fires:
        found.append(f"fires: expected {_truth(expected.fires)}, explained {_truth(verdict.fires)}")
    if expected.fails is not None and frozenset(verdict.fails) != expected.fails:
        found.append(f"fails: expected {in_order(expected.fails)}, explained {in_order(verdict.fails)}")
    return found


def _truth(value: bool) -> str:
    return "true" if value else "false"


def in_order(conditions: Sequence[str] | frozenset[str]) -> str:
    """Returns conditions in numeric order, as text."""
    return _list(sorted(conditions, key=int))


def _fit(wanted: Sequence[Mapping[str, Any]], seen: Sequence[Available]) -> bool:
    """Returns whether every trigger message seen can be paired with one wanted, and none is left on either side."""
    if len(wanted) != len(seen):
        return False
    if not wanted:
        return True
    first, rest = wanted[0], wanted[1:]
    return any(_fit(rest, [*seen[:index], *seen[index + 1 :]]) for index, one in enumerate(seen) if _is_as(first, one))


def _is_as(wanted: Mapping[str, Any], seen: Available) -> bool:
    fields = seen.fields()
    return all(fields[key] == value for key, value in wanted.items())


def _wanted(item: Mapping[str, Any]) -> str:
    others = ", ".join(f"{key}={shown(value)}" for key, value in item.items() if key != "q_name")
    return str(item.get("q_name", "any queue")) + (f" ({others})" if others else "")


def _list(parts: Any) -> str:
    found = list(parts)
    return ", ".join(found) if found else "none"
