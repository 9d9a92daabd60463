"""The commands that ask: each makes the calls that a command line makes, and the parameters of one reply an object.

None between pages, and for what a filter leaves out: calls of others may come between.

Source: the manual's pages of the PCF commands and their responses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from trigmon.mq.calls import Call, Display, DisplayHandles, QueueStatus, ResetQueueStatistics
from trigmon.mq.enums import ObjectType, QType
from trigmon.mq.errors import UnknownObjectName
from trigmon.mq.paging import Paged, pages
from trigmon.mq.replies import Listing
from trigmon.pcf.numbers import Parameter, PcfReason
from trigmon.pcf.objects import ALL_Q_TYPES, Q_KINDS, chosen, name_text, object_parameters, times
from trigmon.pcf.request import Answers, Ask, Parameters, Request, filter_fits
from trigmon.pcf.structures import Filter, PcfError

DEFAULT_AUTH_INFO = "SYSTEM.DEFAULT.AUTHINFO.IDPWOS"
"""What CONNAUTH names: see :func:`trigmon.pcf.rights_commands.inquire_authentication`."""
APPL_TAG_LENGTH = 28
USER_LENGTH = 12
MONITORING_LOW = 17
INPUT, OUTPUT, EITHER = 2, 3, 1
"""MQQSOT_*: which handles an inquiry asks for."""


def inquire_queues(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_INQUIRE_Q: a reply a queue of the generic name."""
    name, kind = request.text(Parameter.Q_NAME), queue_kind(request)
    wanted = request.integers(Parameter.Q_ATTRS)
    yield from answered(request, _objects(ask, kind or "queue", name), wanted, 2, name)


def inquire_processes(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_INQUIRE_PROCESS."""
    name, wanted = request.text(Parameter.PROCESS_NAME), request.integers(Parameter.PROCESS_ATTRS)
    yield from answered(request, _objects(ask, "PROCESS", name), wanted, 1, name)


def inquire_namelists(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_INQUIRE_NAMELIST."""
    name, wanted = request.text(Parameter.NAMELIST_NAME), request.integers(Parameter.NAMELIST_ATTRS)
    yield from answered(request, _objects(ask, "NAMELIST", name), wanted, 1, name)


def inquire_queue_manager(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_INQUIRE_Q_MGR."""
    wanted = request.integers(Parameter.Q_MGR_ATTRS)
    rows = _rows(ask, Display(object_type="QMGR", name="*"))
    found = [[*object_parameters(row), (Parameter.CONN_AUTH, name_text(DEFAULT_AUTH_INFO))] for row in rows]
    yield from answered(request, found, wanted, 1, "")


def inquire_queue_names(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_INQUIRE_Q_NAMES: one reply with all names, and the type of each."""
    name, kind = request.text(Parameter.Q_NAME), queue_kind(request)
    request.nothing_more()
    types = {of: int(number) for number, of in Q_KINDS.items()}
    found: list[tuple[str, int]] = []
    for row in paged_rows(ask, Display(object_type=kind or "queue", name=name)):
        if row is None:
            yield None
        else:
            found.append((name_text(row["name"]), types[ObjectType[row["object_type"]]]))
    yield [
        (Parameter.Q_NAMES, tuple(name for name, _ in found)),
        (Parameter.Q_TYPES, tuple(number for _, number in found)),
    ]


def inquire_process_names(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_INQUIRE_PROCESS_NAMES."""
    yield from _names(request, ask, "PROCESS", Parameter.PROCESS_NAME, Parameter.PROCESS_NAMES)


def inquire_namelist_names(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_INQUIRE_NAMELIST_NAMES."""
    yield from _names(request, ask, "NAMELIST", Parameter.NAMELIST_NAME, Parameter.NAMELIST_NAMES)


def _names(request: Request, ask: Ask, object_type: str, named: Parameter, answered: Parameter) -> Answers:
    name = request.text(named)
    request.nothing_more()
    found: list[str] = []
    for row in paged_rows(ask, Display(object_type=object_type, name=name)):
        if row is None:
            yield None
        else:
            found.append(name_text(row["name"]))
    yield [(answered, tuple(found))]


def inquire_queue_status(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_INQUIRE_Q_STATUS: how queues stand, or who has them open."""
    name = request.text(Parameter.Q_NAME)
    kind = request.optional_integer(Parameter.Q_STATUS_TYPE, Parameter.Q_STATUS)
    wanted = request.integers(Parameter.Q_STATUS_ATTRS)
    open_type = request.optional_integer(Parameter.OPEN_TYPE, EITHER)
    if kind == Parameter.Q_STATUS:
        yield from answered(request, _paged(ask, QueueStatus(q_name=name), _status), wanted, 2, name)
    elif kind == Parameter.Q_HANDLE:
        if open_type not in (EITHER, INPUT, OUTPUT):
            raise PcfError(PcfReason.PARM_VALUE_ERROR, f"open type {open_type}", Parameter.OPEN_TYPE)
        # Nobody has it open: an answer without a handle, as long as there is such a queue.
        if not list(_rows(ask, QueueStatus(q_name=name, limit=1))):
            raise UnknownObjectName(name)
        rows = paged_rows(ask, DisplayHandles(q_name=name))
        found = (None if row is None or not _is_opened(row, open_type) else _handle(row) for row in rows)
        yield from answered(request, found, wanted, 2, "")
    else:
        raise PcfError(PcfReason.PARM_VALUE_ERROR, f"status type {kind}", Parameter.Q_STATUS_TYPE)


def reset_queue_statistics(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_RESET_Q_STATS: the figures as they were; they begin again."""
    name = request.text(Parameter.Q_NAME)
    request.nothing_more()
    yield from _some(_paged(ask, ResetQueueStatistics(q_name=name), _statistics), name)


# -- what they have in common -----------------------------------------------------------------------------------


def queue_kind(request: Request) -> str:
    """Returns the kind of queue that Q_TYPE says, blank for every kind. Raises PcfError."""
    asked = request.optional_integer(Parameter.Q_TYPE, ALL_Q_TYPES)
    if asked == ALL_Q_TYPES:
        return ""
    if asked not in QType._value2member_map_:
        raise PcfError(PcfReason.Q_TYPE_ERROR, f"queue type {asked}", Parameter.Q_TYPE)
    return Q_KINDS[QType(asked)].name


def object_there(ask: Ask, object_type: str, name: str) -> dict[str, Any]:
    """Returns the row of one object of this name. Raises UnknownObjectName (2085)."""
    rows = [] if name.endswith("*") else _rows(ask, Display(object_type=object_type, name=name, limit=1))
    if not rows:
        raise UnknownObjectName(name)
    return rows[0]


def _objects(ask: Ask, object_type: str, name: str) -> Iterator[Parameters | None]:
    return _paged(ask, Display(object_type=object_type, name=name), object_parameters)


def _paged(ask: Ask, call: Paged, made: Callable[[dict[str, Any]], Parameters]) -> Iterator[Parameters | None]:
    return (None if row is None else made(row) for row in paged_rows(ask, call))


def paged_rows(ask: Ask, call: Paged) -> Iterator[dict[str, Any] | None]:
    """Yields every row that a call lists, and None between pages."""
    for page in pages(ask, call):
        yield from page.rows
        if page.more:
            yield None


def _rows(ask: Ask, call: Call) -> list[dict[str, Any]]:
    listing = ask(call)
    assert isinstance(listing, Listing)
    return listing.rows


def answered(
    request: Request, found: Iterable[Parameters | None], wanted: tuple[int, ...] | None, always: int, name: str
) -> Answers:
    """Yields what fits the filter, cut down to what is wanted; what a filter looks at is shown with it.

    Raises UnknownObjectName (2085) where there is nothing of the name.
    """
    chooses = request.filter()
    request.nothing_more()
    if chooses is not None:
        number, by = chooses
        wanted = None if wanted is None else (*wanted, number)
        found = (each if each is not None and _fits(by, number, each) else None for each in found)
        # MQ answers a filter that nothing fits as a name that nothing has.
    yield from _some((None if each is None else chosen(each, wanted, always) for each in found), name)


def _fits(by: Filter, number: int, parameters: Parameters) -> bool:
    return filter_fits(by, dict(parameters).get(number))


def _some(found: Iterable[Parameters | None], name: str) -> Answers:
    is_empty = True
    for each in found:
        is_empty = is_empty and each is None
        yield each
    if is_empty and name:
        raise UnknownObjectName(name)


def _statistics(row: dict[str, Any]) -> Parameters:
    """Returns what went through a queue."""
    return [
        (Parameter.Q_NAME, name_text(row["name"])),
        (Parameter.HIGH_Q_DEPTH, row["high_q_depth"]),
        (Parameter.MSG_ENQ_COUNT, row["puts"]),
        (Parameter.MSG_DEQ_COUNT, row["gets"]),
        (Parameter.TIME_SINCE_RESET, row["since_s"]),
    ]


def _status(row: dict[str, Any]) -> Parameters:
    """Returns how a queue stands."""
    oldest = row["oldest_age_s"] if row["current_q_depth"] else -1
    return [
        (Parameter.Q_NAME, name_text(row["name"])),
        (Parameter.Q_STATUS_TYPE, int(Parameter.Q_STATUS)),
        (3, row["current_q_depth"]),
        *times(row["last_get_ms"], (Parameter.LAST_GET_DATE, Parameter.LAST_GET_TIME)),
        *times(row["last_put_ms"], (Parameter.LAST_PUT_DATE, Parameter.LAST_PUT_TIME)),
        (Parameter.OLDEST_MSG_AGE, oldest),
        (Parameter.Q_TIME_INDICATOR, (row["q_time_short_us"], row["q_time_long_us"])),
        (17, row["open_input_count"]),
        (18, row["open_output_count"]),
        (Parameter.MONITORING_Q, MONITORING_LOW),
        (Parameter.UNCOMMITTED_MSGS, row["uncommitted_msgs"]),
    ]


def _is_opened(row: dict[str, Any], open_type: int) -> bool:
    if open_type == INPUT:
        return bool(row["input"] != "no")
    return open_type == EITHER or bool(row["output"])


_INPUT_TYPES = {"no": 0, "shared": 1, "exclusive": 2}


def _handle(row: dict[str, Any]) -> Parameters:
    """Returns how an application has a queue open."""
    ways: list[tuple[int, Callable[[dict[str, Any]], bool]]] = [
        (Parameter.OPEN_BROWSE, lambda of: of["browse"]),
        (Parameter.OPEN_INQUIRE, lambda of: of["inquire"]),
        (Parameter.OPEN_OUTPUT, lambda of: of["output"]),
        (Parameter.OPEN_SET, lambda of: of["set"]),
    ]
    return [
        (Parameter.Q_NAME, name_text(row["name"])),
        (Parameter.Q_STATUS_TYPE, int(Parameter.Q_HANDLE)),
        (Parameter.APPL_TAG, row["application"][:APPL_TAG_LENGTH].ljust(APPL_TAG_LENGTH)),
        (Parameter.HANDLE_STATE, 0),
        *((number, int(bool(way(row)))) for number, way in ways),
        (Parameter.OPEN_INPUT_TYPE, _INPUT_TYPES[row["input"]]),
        (Parameter.PROCESS_ID, row["pid"]),
        (Parameter.USER_IDENTIFIER, row["user"][:USER_LENGTH].ljust(USER_LENGTH)),
    ]
