"""Connections and the state of the queue manager as PCF has them.

A connection identifier has 24 bytes: sixteen that are the same for all, as MQ has the name of the queue manager there,
and the number of the connection, most significant byte first. MQSC's CONN is the last eight in hexadecimal.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from trigmon.mq.calls import DisplayConnections, EndConnection, Status
from trigmon.mq.errors import HconnError
from trigmon.mq.replies import Values
from trigmon.pcf.inquiries import APPL_TAG_LENGTH, USER_LENGTH, answered, paged_rows
from trigmon.pcf.numbers import Parameter, PcfReason
from trigmon.pcf.objects import name_text, times
from trigmon.pcf.request import Answers, Ask, Parameters, Request
from trigmon.pcf.structures import PcfError

OF_EVERY: Final = b"AMQCtrigmon".ljust(16)
APPL_TYPE_USER: Final = 25
"""MQAT_USER: an application that connected by itself."""
RUNNING: Final = 2
"""MQQMSTA_RUNNING, MQSVC_STATUS_RUNNING."""
STOPPED: Final = 0
"""MQSVC_STATUS_STOPPED: there are no channels to initiate."""
_CHANNEL_LENGTH, _ADDRESS_LENGTH = 20, 264


def inquire_connections(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_INQUIRE_CONNECTION: a reply a connection and, where asked for, one an open object."""
    wanted_id = _identifier(request)
    wanted = request.integers(Parameter.CONNECTION_ATTRS)
    kind = request.optional_integer(Parameter.CONN_INFO_TYPE, Parameter.CONN_INFO_CONN)
    if kind not in (Parameter.CONN_INFO_CONN, Parameter.CONN_INFO_HANDLE, Parameter.CONN_INFO_ALL):
        raise PcfError(PcfReason.PARM_VALUE_ERROR, f"type {kind}", Parameter.CONN_INFO_TYPE)
    yield from answered(request, _of_connections(ask, wanted_id, kind), wanted, 2, "")


def stop_connection(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_STOP_CONNECTION: the connection is cut, and its unit of work backed out."""
    wanted = request.rest.pop(Parameter.CONNECTION_ID, b"")
    request.nothing_more()
    number = int.from_bytes(wanted[16:]) if isinstance(wanted, bytes) and wanted.startswith(OF_EVERY) else 0
    try:
        ask(EndConnection(connection=number))
    except HconnError as error:
        raise PcfError(PcfReason.CONNECTION_ID_ERROR, error.about, Parameter.CONNECTION_ID) from None
    yield from ()


def inquire_queue_manager_status(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_INQUIRE_Q_MGR_STATUS."""
    wanted = request.integers(Parameter.Q_MGR_STATUS_ATTRS)
    status = ask(Status())
    assert isinstance(status, Values)
    values = status.values
    found: Parameters = [
        (Parameter.Q_MGR_NAME, name_text(values["q_mgr_name"])),
        (Parameter.Q_MGR_STATUS, RUNNING),
        (Parameter.CONNECTION_COUNT, values["connections"]),
        (Parameter.CHINIT_STATUS, STOPPED),
        (Parameter.CMD_SERVER_STATUS, RUNNING),
        *times(values["started_ms"], (Parameter.Q_MGR_START_DATE, Parameter.Q_MGR_START_TIME)),
    ]
    yield from answered(request, [found], wanted, 2, "")


def _identifier(request: Request) -> bytes:
    """Returns the bytes with which the identifiers begin that are asked for; none: all."""
    for number in (Parameter.CONNECTION_ID, Parameter.GENERIC_CONNECTION_ID):
        value = request.rest.pop(number, None)
        if isinstance(value, bytes):
            return value.rstrip(b"\0") if number == Parameter.GENERIC_CONNECTION_ID else value
        if value is not None:
            raise PcfError(PcfReason.CFBS_PARM_ID_ERROR, "an identifier is a byte string", number)
    raise PcfError(PcfReason.PARM_COUNT_TOO_SMALL, "the identifier is missing", Parameter.CONNECTION_ID)


def _id_of(row: dict[str, Any]) -> bytes:
    return OF_EVERY + int(row["connection"]).to_bytes(8)


def _of_connections(ask: Ask, wanted_id: bytes, kind: int) -> Iterator[Parameters | None]:
    """Yields the connections and their open objects. Raises PcfError where no connection has the identifier."""
    is_there = False
    for row in paged_rows(ask, DisplayConnections()):
        if row is None or not _id_of(row).startswith(wanted_id):
            yield None
            continue
        is_there = True
        head: Parameters = [(Parameter.CONNECTION_ID, _id_of(row))]
        if kind != Parameter.CONN_INFO_HANDLE:
            yield [*head, (Parameter.CONN_INFO_TYPE, int(Parameter.CONN_INFO_CONN)), *_connection(row)]
        if kind != Parameter.CONN_INFO_CONN:
            for name in row["open"]:
                of_handle = (Parameter.CONN_INFO_TYPE, int(Parameter.CONN_INFO_HANDLE))
                yield [*head, of_handle, (Parameter.OBJECT_NAME, name_text(name))]
    if not is_there:
        raise PcfError(PcfReason.CONNECTION_ID_ERROR, "there is no such connection", Parameter.CONNECTION_ID)


def _connection(row: dict[str, Any]) -> Parameters:
    return [
        (Parameter.APPL_TAG, row["application"][:APPL_TAG_LENGTH].ljust(APPL_TAG_LENGTH)),
        (Parameter.APPL_TYPE, APPL_TYPE_USER),
        # There are no channels here.
        (Parameter.CHANNEL_NAME, " " * _CHANNEL_LENGTH),
        (Parameter.CONNECTION_NAME, " " * _ADDRESS_LENGTH),
        (Parameter.PROCESS_ID, row["pid"]),
        (Parameter.UOW_STATE, int(row["in_unit"])),
        (Parameter.USER_IDENTIFIER, row["user"][:USER_LENGTH].ljust(USER_LENGTH)),
    ]
