"""State transitions of handles and connections; see :mod:`trigmon.rules.model.transitions`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from trigmon.mq.enums import OpenOption
from trigmon.rules.model.changes import AnyChange
from trigmon.rules.model.handle_changes import (
    CloseHandle,
    Connect,
    DropConnection,
    KeepPutPlan,
    LockMessage,
    MoveCursor,
    OpenHandle,
    SaveContext,
    SetPlace,
    UnlockMessage,
)
from trigmon.rules.model.handles import ConnectionFacts, HandleFacts, with_place
from trigmon.rules.model.run_facts import Serving

if TYPE_CHECKING:
    from trigmon.rules.model.state import Standing

_INPUT = OpenOption.INPUT_SHARED.value | OpenOption.INPUT_EXCLUSIVE.value
_EXCLUSIVE = OpenOption.INPUT_EXCLUSIVE.value
_OUTPUT = OpenOption.OUTPUT.value


def _open_handle(standing: Standing, change: OpenHandle) -> None:
    handle = change.handle
    standing.write(standing.handles, handle.handle, handle)
    connection = standing.connections[handle.connection]
    standing.write(
        standing.connections,
        handle.connection,
        replace(connection, handles=(*connection.handles, handle.handle)),
    )
    _opened(standing, handle, 1)


def _close_handle(standing: Standing, change: CloseHandle) -> None:
    handle = standing.handles[change.handle]
    standing.drop(standing.handles, change.handle)
    connection = standing.connections[handle.connection]
    left = tuple(h for h in connection.handles if h != change.handle)
    standing.write(standing.connections, handle.connection, replace(connection, handles=left))
    _opened(standing, handle, -1)


def _opened(standing: Standing, handle: HandleFacts, by: int) -> None:
    queue = standing.queues.get(handle.q_name)
    if queue is None:
        return
    options = handle.options
    opened = replace(
        queue,
        open_input_count=queue.open_input_count + (by if options & _INPUT else 0),
        open_exclusive=(by > 0) if options & _EXCLUSIVE else queue.open_exclusive,
        open_output_count=queue.open_output_count + (by if options & _OUTPUT else 0),
        open_count=queue.open_count + by,
    )
    standing.write(standing.queues, handle.q_name, opened)


def _move_cursor(standing: Standing, change: MoveCursor) -> None:
    standing.write(standing.handles, change.handle, replace(standing.handles[change.handle], cursor=change.cursor))


def _lock_message(standing: Standing, change: LockMessage) -> None:
    for number in change.numbers:
        standing.write(standing.locks, number, change.handle)
    standing.write(standing.handles, change.handle, replace(standing.handles[change.handle], locked=change.numbers))


def _unlock_message(standing: Standing, change: UnlockMessage) -> None:
    for number in standing.handles[change.handle].locked:
        forget_lock(standing, number)


def forget_lock(standing: Standing, number: int) -> None:
    """Takes a message that is gone out of the locks, and out of its handle's."""
    handle = standing.locks.get(number)
    if handle is not None:
        standing.drop(standing.locks, number)
        left = tuple(each for each in standing.handles[handle].locked if each != number)
        standing.write(standing.handles, handle, replace(standing.handles[handle], locked=left))


def _set_place(standing: Standing, change: SetPlace) -> None:
    handle = standing.handles[change.handle]
    if change.unit_id:
        unit = standing.units[change.unit_id]
        key = (change.handle, change.side)
        if key not in unit.places:
            before = {**unit.places, key: handle.place(change.side)}
            standing.write(standing.units, unit.unit_id, replace(unit, places=before))
    standing.write(standing.handles, change.handle, with_place(handle, change.side, change.place))


def _save_context(standing: Standing, change: SaveContext) -> None:
    standing.write(standing.handles, change.handle, replace(standing.handles[change.handle], context=change.context))


def _keep_put_plan(standing: Standing, change: KeepPutPlan) -> None:
    standing.write(standing.handles, change.handle, replace(standing.handles[change.handle], put_plan=change.plan))


def _connect(standing: Standing, change: Connect) -> None:
    """Adds a connection. It is of its run's program from the start to its end, or never, so that counts agree."""
    connection = change.connection
    serving = standing.running.get(connection.run_id)
    if serving is None or not may_speak_for(connection, serving):
        connection = replace(connection, run_id="")
    standing.write(standing.connections, connection.connection, connection)
    _connected(standing, connection.run_id, 1)


def may_speak_for(connection: ConnectionFacts, serving: Serving) -> bool:
    """Returns whether a connection that names a run may be its program's.

    Another user's is not. One without a user came over TCP, where users are not known: it is a worker of a cluster.
    """
    if not connection.user:
        return serving.is_elsewhere or not serving.user
    return connection.user in ("root", serving.user) or not serving.user


def _drop_connection(standing: Standing, change: DropConnection) -> None:
    run_id = standing.connections[change.connection].run_id
    standing.drop(standing.connections, change.connection)
    _connected(standing, run_id, -1)


def _connected(standing: Standing, run_id: str, by: int) -> None:
    if run_id:
        add_count(standing, standing.connected, run_id, by)


def add_count(standing: Standing, table: dict[Any, int], key: Any, by: int) -> None:
    """Adds to a count of a table; a count of 0 leaves the table."""
    count = table.get(key, 0) + by
    if count:
        standing.write(table, key, count)
    elif key in table:
        standing.drop(table, key)


FOLLOW_HANDLES: dict[type[AnyChange], Any] = {
    OpenHandle: _open_handle,
    CloseHandle: _close_handle,
    MoveCursor: _move_cursor,
    LockMessage: _lock_message,
    UnlockMessage: _unlock_message,
    SetPlace: _set_place,
    SaveContext: _save_context,
    KeepPutPlan: _keep_put_plan,
    Connect: _connect,
    DropConnection: _drop_connection,
}
