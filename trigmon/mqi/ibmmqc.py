"""What IBM's Python package ``ibmmq`` calls in its C module, over the client of trigmon.

The names, the arguments and the tuples are the C module's: structures are bytes in and out, a call's last two values
are its completion code and its reason. ``import trigmon.mqi.replace_ibmmqc`` before ``import ibmmq`` puts this module
in the place of the other.
"""

from __future__ import annotations

from typing import Final

from trigmon.mq.calls import Inquire, Set
from trigmon.mq.compatibility import COMMAND_LEVEL
from trigmon.mq.errors import BackedOut, QMgrNotAvailable
from trigmon.mq.replies import Done
from trigmon.mq.replies import Values as Attributes
from trigmon.mqi import selectors as selector_table
from trigmon.mqi.answers import LOG, Answer, answering, characters, check, error
from trigmon.mqi.connection_handles import SESSIONS, UNUSABLE, AsyncPuts
from trigmon.mqi.consumers import Callback, Consumers
from trigmon.mqi.layout import Values
from trigmon.mqi.md import number, text
from trigmon.mqi.memory import read_text
from trigmon.mqi.message_calls import close_object, get_message, open_object, put_message, queue_named, read
from trigmon.mqi.mqcsp import Credentials
from trigmon.mqi.mqi_numbers import MqiError, MqiReason, ObjectKind, StatType
from trigmon.mqi.property_calls import MQCRTMH, MQDLTMH, MQDLTMP, MQINQMP, MQSETMP
from trigmon.mqi.queue_manager_address import place_of
from trigmon.mqi.structures import (
    MQCBD,
    MQCD,
    MQCNO,
    MQCTLO,
    MQGMO,
    MQMD,
    MQOD,
    MQPMO,
    MQSD,
    MQSRO,
    MQSTS,
    STRUCTURES,
)

__all__ = [
    "MQBACK",
    "MQBEGIN",
    "MQCB",
    "MQCBINIT",
    "MQCLOSE",
    "MQCMIT",
    "MQCONN",
    "MQCONNX",
    "MQCRTMH",
    "MQCTL",
    "MQDISC",
    "MQDLTMH",
    "MQDLTMP",
    "MQGET",
    "MQINQ",
    "MQINQMP",
    "MQLOGCF",
    "MQOPEN",
    "MQPUT",
    "MQPUT1",
    "MQSET",
    "MQSETMP",
    "MQSTAT",
    "MQSUB",
    "MQSUBRQ",
    "error",
]

__version__ = "2.1.2"
"""The release of IBM's package whose C module this has the functions of."""
__cmdlevel__ = COMMAND_LEVEL
__mqbuild__ = "common"
__strucversions__: Final = {name[2:].lower(): one.current_version for name, one in STRUCTURES.items()} | {"tmc": 2}

_consumers: dict[int, Consumers] = {}
_callbacks: list[Callback] = []


def MQLOGCF(options: int, filename: str = "") -> int:
    """Turns the log of failed calls on or off."""
    LOG.set(is_on=bool(options), file=filename)
    return 0


# -- connections --------------------------------------------------------------------------------------------


@answering(lambda *_: (UNUSABLE,))
def MQCONN(name: str | bytes) -> Answer:
    """Connects: handle, completion code, reason."""
    return _connected(characters(name), MQCNO.defaults, "", "", None), 0


@answering(lambda *_: (UNUSABLE,))
def MQCONNX(
    name: bytes | str,
    cno: bytes | None,
    cd: bytes | None = None,
    csp: bytes | None = None,
    sco: bytes | None = None,
    bno: bytes | None = None,
) -> Answer:
    """Connects with options: handle, completion code, reason."""
    options = MQCNO.defaults if cno is None else read(MQCNO, cno, MqiReason.CNO_ERROR)
    url = read_text(number(options["CCDTUrlPtr"]), number(options["CCDTUrlLength"]))
    return _connected(characters(name), options, _connection_name(cd) if cd else "", url, csp), 0


@answering()
def MQDISC(hconn: int) -> Answer:
    """Commits, closes and disconnects."""
    session = SESSIONS.of(hconn)
    session.close_to_others()
    try:
        if hconn in _consumers:
            _consumers[hconn].stop()
        with session.used() as connection:
            connection.disconnect()
    finally:
        if session.connection.alive:
            session.close_to_others(closes=False)
        else:
            _consumers.pop(hconn, None)
            SESSIONS.end(session)
    return (0,)


def _connection_name(cd: bytes) -> str:
    if len(cd) < MQCD.lengths[2]:
        raise MqiError(MqiReason.CD_ERROR, f"an MQCD of {len(cd)} bytes")
    return text(MQCD.unpack(cd)["ConnectionName"])


def _connected(name: str, cno: Values, connection_name: str, ccdt_url: str, csp: bytes | None) -> int:
    place = place_of(name, connection_name, ccdt_url)
    try:
        connection = Credentials(csp).connect(place.addresses, text(cno["ApplName"]) or None)
    except QMgrNotAvailable as error:
        if not place.has_host:
            raise
        raise MqiError(MqiReason.HOST_NOT_AVAILABLE, error.about) from None
    if place.q_mgr_name not in ("", connection.q_mgr_name):
        answers = connection.q_mgr_name
        connection.disconnect()
        raise MqiError(MqiReason.Q_MGR_NAME_ERROR, f"{answers} answers, not {place.q_mgr_name}")
    return SESSIONS.begin(connection, number(cno["Options"])).number


# -- objects ------------------------------------------------------------------------------------------------


@answering(lambda hconn, od, options: (UNUSABLE, od))
def MQOPEN(hconn: int, od: bytes, options: int) -> Answer:
    """Opens an object: handle, MQOD, completion code, reason."""
    check(od, MQOD)
    return *open_object(SESSIONS.of(hconn), od, options), 0


@answering()
def MQCLOSE(hconn: int, hobj: int, options: int) -> Answer:
    """Closes an object."""
    close_object(SESSIONS.of(hconn), hobj, options)
    if hconn in _consumers:
        _consumers[hconn].forget(hobj)
    return (0,)


@answering(lambda *arguments: (arguments[3], b""))
def MQINQ(
    hconn: int, hobj: int, selectors: list[int], integers: list[int], int_count: int, char_count: int, char_length: int
) -> Answer:
    """Inquires: integers (appended to the list that was given), characters, completion code, reason."""
    if not isinstance(selectors, list) or not isinstance(integers, list):
        raise error("Arg is not a list")
    session = SESSIONS.of(hconn)
    opened = session.opened(hobj)
    asked = selector_table.asked_of(selectors)
    with session.used() as connection:
        reply = connection.ask(Inquire(handle=opened.handle, names=asked), Attributes)
    row = reply.values
    if opened.kind is ObjectKind.Q_MGR:
        row = row | {"name": session.connection.q_mgr_name}
    found, chars = selector_table.answered(selectors, row)
    reason = reply.warning
    if len(found) > int_count:
        reason = reason or int(MqiReason.INT_ATTR_COUNT_TOO_SMALL)
    if len(chars) > char_length:
        reason = reason or int(MqiReason.CHAR_ATTRS_TOO_SHORT)
    integers.extend(found[: max(0, int_count)])
    return integers, chars[: max(0, char_length)].ljust(char_length), reason


@answering()
def MQSET(hconn: int, hobj: int, selectors: list[int], integers: list[int], chars: bytes) -> Answer:
    """Sets attributes."""
    if not isinstance(selectors, list) or not isinstance(integers, list):
        raise error("Selectors and IntAttrs are lists")
    session = SESSIONS.of(hconn)
    opened = session.opened(hobj)
    values = selector_table.to_set(selectors, integers, chars)
    with session.used() as connection:
        connection.ask(Set(handle=opened.handle, attributes=values), Done)
    return (0,)


# -- messages -----------------------------------------------------------------------------------------------


@answering(lambda hconn, hobj, md, pmo, data: (md, pmo))
def MQPUT(hconn: int, hobj: int, md: bytes, pmo: bytes, data: bytes) -> Answer:
    """Puts a message: MQMD, MQPMO, completion code, reason."""
    check(md, MQMD)
    check(pmo, MQPMO)
    session = SESSIONS.of(hconn)
    return put_message(session, session.opened(hobj), "", md, pmo, bytes(data))


@answering(lambda hconn, od, md, pmo, data: (md, pmo))
def MQPUT1(hconn: int, od: bytes, md: bytes, pmo: bytes, data: bytes) -> Answer:
    """Puts a message to a queue that need not be open: MQMD, MQPMO, completion code, reason."""
    for given, structure in ((od, MQOD), (md, MQMD), (pmo, MQPMO)):
        check(given, structure)
    session = SESSIONS.of(hconn)
    return put_message(session, None, queue_named(session, od), md, pmo, bytes(data))


@answering(lambda hconn, hobj, md, gmo, max_length: (b"", md, gmo, 0))
def MQGET(hconn: int, hobj: int, md: bytes, gmo: bytes, max_length: int) -> Answer:
    """Gets a message: data, MQMD, MQGMO, the data's full length, completion code, reason."""
    check(md, MQMD)
    check(gmo, MQGMO)
    session = SESSIONS.of(hconn)
    got = get_message(session, session.opened(hobj), md, gmo, max_length)
    return got.data, got.md, got.gmo, got.length, got.reason


# -- units of work ------------------------------------------------------------------------------------------


@answering()
def MQBEGIN(hconn: int) -> Answer:
    """Begins a global unit of work: there is no other resource manager, which is the warning 2121."""
    with SESSIONS.of(hconn).used():
        return (int(MqiReason.NO_EXTERNAL_PARTICIPANTS),)


@answering()
def MQCMIT(hconn: int) -> Answer:
    """Commits, but a unit of work with an asynchronous put that failed is backed out instead (2003)."""
    session = SESSIONS.of(hconn)
    with session.used() as connection:
        if session.async_puts.unit_failed:
            session.async_puts.unit_failed = False
            connection.backout()
            raise BackedOut("an asynchronous put of this unit of work failed")
        connection.commit()
    return (0,)


@answering()
def MQBACK(hconn: int) -> Answer:
    """Backs out."""
    session = SESSIONS.of(hconn)
    with session.used() as connection:
        session.async_puts.unit_failed = False
        connection.backout()
    return (0,)


@answering(lambda hconn, stat_type, sts: (sts,))
def MQSTAT(hconn: int, stat_type: int, sts: bytes) -> Answer:
    """Tells what became of asynchronous puts: MQSTS, completion code, reason. Nothing is known of reconnections."""
    check(sts, MQSTS)
    session = SESSIONS.of(hconn)
    given = read(MQSTS, sts, MqiReason.STS_ERROR)
    if stat_type not in StatType._value2member_map_:
        raise MqiError(MqiReason.STAT_TYPE_ERROR, f"status type {stat_type}")
    with session.used():
        puts = session.async_puts if stat_type == StatType.ASYNC_ERROR else AsyncPuts()
        return MQSTS.pack(given | puts.result(session.connection.q_mgr_name)), 0


# -- publish/subscribe, which is not here -------------------------------------------------------------------


@answering(lambda hconn, sd, hobj: (sd, hobj, UNUSABLE))
def MQSUB(hconn: int, sd: bytes, hobj: int) -> Answer:
    """Refuses a subscription (2298): MQSD, object handle, subscription handle, completion code, reason."""
    check(sd, MQSD)
    SESSIONS.of(hconn)
    raise MqiError(MqiReason.FUNCTION_NOT_SUPPORTED, "publish/subscribe is not here")


@answering(lambda hconn, hsub, action, sro: (sro,))
def MQSUBRQ(hconn: int, hsub: int, action: int, sro: bytes) -> Answer:
    """Refuses a request of a subscription (2298): MQSRO, completion code, reason."""
    check(sro, MQSRO)
    SESSIONS.of(hconn)
    raise MqiError(MqiReason.FUNCTION_NOT_SUPPORTED, "publish/subscribe is not here")


# -- callbacks ----------------------------------------------------------------------------------------------


def MQCBINIT(callback: Callback) -> None:
    """Says which function is called for every callback."""
    if not callable(callback):
        raise error("Need a callable object.")
    _callbacks[:] = [callback]


@answering()
def MQCB(hconn: int, operation: int, cbd: bytes, hobj: int, md: bytes, gmo: bytes) -> Answer:
    """Registers a callback for a queue's messages or a connection's events, or does what the operation says."""
    for given, structure in ((gmo, MQGMO), (md, MQMD), (cbd, MQCBD)):
        check(given, structure)
    _consumers_of(hconn).operate(operation, hobj, read(MQCBD, cbd, MqiReason.CBD_ERROR), md, gmo)
    return (0,)


@answering()
def MQCTL(hconn: int, operation: int, ctlo: bytes) -> Answer:
    """Starts, stops, suspends or resumes a connection's callbacks."""
    check(ctlo, MQCTLO)
    read(MQCTLO, ctlo, MqiReason.CTLO_ERROR)
    _consumers_of(hconn).control(operation)
    return (0,)


def _consumers_of(hconn: int) -> Consumers:
    session = SESSIONS.of(hconn)
    if hconn not in _consumers:
        _consumers[hconn] = Consumers(session, lambda *arguments: _callbacks and _callbacks[0](*arguments))
    return _consumers[hconn]
