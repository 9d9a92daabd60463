"""What stands is what a count of the rows gives: queues, units of work, reservations, locks."""

from __future__ import annotations

from collections import Counter

from trigmon.store.memory.store import MemoryStore


def check_counts(store) -> None:
    """What stands is what a count of the rows gives, wherever rows can be counted by themselves."""
    if not isinstance(store, MemoryStore):
        return
    standing, rows = store.standing, list(store._rows.all())
    lies, puts, gets, of_units = Counter(), Counter(), Counter(), Counter()
    for row in [row for row in rows if row.message.ordinal < 0]:
        place = (row.message.q_name, row.message.priority)
        lies[place] += not row.taken_by
        puts[place[0]] += bool(row.put_by)
        gets[place[0]] += bool(row.taken_by)
        of_units[row.put_by, "puts", place] += 1
        of_units[row.taken_by, "gets", place] += 1
    held = check_reservations(standing, [row for row in rows if row.message.ordinal >= 0], lies)
    for name, queue in standing.queues.items():
        assert queue.reserved == held[name]
        assert queue.depths == tuple(lies[name, priority] for priority in range(10))
        assert (queue.uncommitted_puts, queue.uncommitted_gets) == (puts[name], gets[name])
    there = {key: count for key, count in of_units.items() if key[0]}
    told = {
        (unit.unit_id, kind, place): count
        for unit in standing.units.values()
        for kind in ("puts", "gets")
        for place, count in getattr(unit, kind).items()
    }
    assert told == there
    for unit in standing.units.values():
        assert unit.count == sum(unit.puts.values()) + sum(unit.gets.values())
        assert unit.marked is None or any(row.taken_by == unit.unit_id for row in rows)
    assert standing.locks == {number: h.handle for h in standing.handles.values() for number in h.locked}


def check_reservations(standing, rows, lies) -> Counter:
    """Counts by queue the rows that somebody stands behind, and among ``lies`` those that wait or come back."""
    held: Counter = Counter()
    left = {r.number: {n for a, b in r.stretches for n in range(a, b)} for r in standing.reservations.values()}
    for row in rows:
        reservation = standing.reservations[row.taken_by]
        is_left = row.message.ordinal in left[reservation.number]
        due = [due for due in reservation.due if due.first <= row.message.ordinal < due.end]
        assert is_left or due
        held[row.message.q_name] += is_left and bool(reservation.behind)
        waits = not reservation.behind if is_left else due[0].returns
        lies[row.message.q_name, row.message.priority] += waits
    assert {r.number: r.left for r in standing.reservations.values()} == {n: len(of) for n, of in left.items()}
    behind = {(c.connection, n) for c in standing.connections.values() for n in c.reservations}
    assert behind == {(c, r.number) for r in standing.reservations.values() for c in r.behind}
    return held
