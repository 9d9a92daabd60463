"""What a monitor looks at of a queue elsewhere: its trigger type, its depth, its readers, its first message."""

from __future__ import annotations

from typing import Any, Final

from trigmon.bridge.connection import RemoteConnection, RemoteError, ibmmq
from trigmon.mq.run_parts import QueueThere

_TYPES: Final = ("none", "first", "every", "depth")


def look(connection: RemoteConnection, q_name: str) -> QueueThere | None:
    """Returns how a queue stands now; None where the user of the bridge may not inquire it, or it is gone.

    Raises RemoteError where the queue manager is away, BridgeError.
    """
    try:
        return _looked(connection, q_name)
    except RemoteError as error:
        if error.may_pass:
            raise
        return None


def _looked(connection: RemoteConnection, q_name: str) -> QueueThere:
    mq = ibmmq()
    codes = mq.CMQC
    manager = connection.manager()
    try:
        queue = _opened(connection, manager, q_name, codes.MQOO_INQUIRE | codes.MQOO_BROWSE)
        browses = True
    except RemoteError as error:
        if error.may_pass:
            raise
        queue = _opened(connection, manager, q_name, codes.MQOO_INQUIRE)
        browses = False
    try:
        wanted = [codes.MQIA_TRIGGER_TYPE, codes.MQIA_CURRENT_Q_DEPTH, codes.MQIA_OPEN_INPUT_COUNT]
        values = connection.call(f"MQINQ of {q_name}", lambda: queue.inquire(wanted))
        first = _first(connection, queue, q_name) if browses and values[codes.MQIA_CURRENT_Q_DEPTH] else None
    finally:
        if connection.is_connected:
            connection.call(f"MQCLOSE of {q_name}", queue.close)
    number = values[codes.MQIA_TRIGGER_TYPE]
    return QueueThere(
        trigger_type=_TYPES[number] if 0 <= number < len(_TYPES) else "",
        depth=values[codes.MQIA_CURRENT_Q_DEPTH],
        readers=values[codes.MQIA_OPEN_INPUT_COUNT],
        first=first.MsgId.hex() if first is not None else "",
        backouts=first.BackoutCount if first is not None else 0,
    )


def _opened(connection: RemoteConnection, manager: Any, q_name: str, options: int) -> Any:
    mq = ibmmq()
    options |= mq.CMQC.MQOO_FAIL_IF_QUIESCING
    return connection.call(f"MQOPEN of {q_name}", lambda: mq.Queue(manager, q_name, options))


def _first(connection: RemoteConnection, queue: Any, q_name: str) -> Any:
    """Returns the MQMD of the first message; None where there is none that may be read now."""
    mq = ibmmq()
    codes = mq.CMQC
    options = mq.GMO()
    options.Options = codes.MQGMO_BROWSE_FIRST | codes.MQGMO_NO_SYNCPOINT | codes.MQGMO_FAIL_IF_QUIESCING
    options.Options |= codes.MQGMO_ACCEPT_TRUNCATED_MSG
    descriptor = mq.MD()

    def browse() -> bytes:
        try:
            return bytes(queue.get(0, descriptor, options))
        except mq.MQMIError as error:
            if error.reason == codes.MQRC_TRUNCATED_MSG_ACCEPTED:
                return b""
            raise

    try:
        connection.call(f"MQGET of {q_name}", browse)
    except RemoteError as error:
        if error.may_pass:
            raise
        return None
    return descriptor
