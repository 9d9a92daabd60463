"""MQGMO_MARK_SKIP_BACKOUT: a message that an application's backout does not give back (seed 002).

The backout ends the unit of work without it and begins the next, in which its get is a plain one: the application
commits that unit and the message is gone, or backs it out and the message is there again, counted once. Only an
application's own backout is skipped; whatever else ends a unit gives the message back as if it were not marked.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from trigmon.mq.enums import GetOption
from trigmon.mq.errors import OptionsError, SecondMarkNotAllowed
from trigmon.rules.model.changes import AnyChange, BeginUnit, CarryOver
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.group_position import Side
from trigmon.rules.model.handle_changes import SetPlace
from trigmon.rules.model.handles import Marked, UnitFacts
from trigmon.rules.model.stored_messages import StoredMessage

LARGEST_UNIT = 2**63 - 1
_SYNCPOINT = GetOption.SYNCPOINT.value


def check_mark(options: int, unit: int, facts: Facts) -> None:
    """Raises OptionsError for a mark without syncpoint, SecondMarkNotAllowed when the unit has its marked message."""
    if not options & _SYNCPOINT:
        raise OptionsError("mark_skip_backout needs syncpoint")
    if unit >= LARGEST_UNIT:
        raise OptionsError("mark_skip_backout needs a number for the unit of work that follows a backout")
    if facts.unit is not None and facts.unit.marked is not None:
        raise SecondMarkNotAllowed("a message is marked already in this unit of work")


def marked_by(message: StoredMessage, facts: Facts, moves: Iterable[AnyChange]) -> Marked:
    """Returns the message as its unit is to remember it; ``moves`` are where the get leaves its handle in a group."""
    marked = Marked(message.number, message.q_name, message.priority, message.is_persistent, message.is_own)
    places = facts.unit.places if facts.unit is not None else {}
    for move in moves:
        # After other gets of the unit its backout leads back before them: the backout gives those messages back.
        if isinstance(move, SetPlace) and (move.handle, move.side) not in places:
            marked = replace(marked, handle=move.handle, place=move.place)
    return marked


def without_marked(unit: UnitFacts) -> UnitFacts:
    """Returns the unit as its backout sees it: as if it had not got the marked message."""
    marked = unit.marked
    if marked is None:
        return unit
    key = (marked.q_name, marked.priority)
    left = {**unit.gets, key: unit.gets[key] - 1}
    return replace(unit, gets={k: count for k, count in left.items() if count}, count=unit.count - 1, marked=None)


def carried_over(marked: Marked, ended: Decision, facts: Facts, now: int, ids: Ids) -> Decision:
    """Returns the backout and what follows it: the next unit of work, which begins with the marked message's get.

    Its handle stands in the group behind the marked message again, and before it when that unit is backed out as well.
    """
    connection = facts.connection
    unit_id = ids.unit()
    number = connection.unit_number + 1
    begins = BeginUnit(connection.connection, unit_id, number, connection.client_id, now, marked)
    changes: list[AnyChange] = [CarryOver(marked, unit_id), *ended.changes, begins]
    if marked.handle in connection.handles:
        changes.append(SetPlace(marked.handle, Side.GET, marked.place, unit_id))
    return replace(ended, changes=changes)
