"""The commands that change something: each makes the call that a command line makes. Nothing but success is answered.

Source: the manual's pages of the PCF commands.
"""

from __future__ import annotations

from typing import Any

from trigmon.mq.calls import Alter, Call, Clear, Define, Delete, Display, Ping
from trigmon.mq.enums import ObjectType
from trigmon.mq.errors import UnknownObjectName
from trigmon.mq.replies import Counted, Listing
from trigmon.pcf.inquiries import queue_kind
from trigmon.pcf.numbers import Parameter, PcfReason
from trigmon.pcf.objects import read_attributes
from trigmon.pcf.request import Answers, Ask, Request
from trigmon.pcf.structures import PcfError


def create_queue(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_CREATE_Q."""
    yield from _create(request, ask, Parameter.Q_NAME, _of_one_kind(request))


def change_queue(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_CHANGE_Q."""
    yield from _change(request, ask, Parameter.Q_NAME, _of_one_kind(request))


def copy_queue(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_COPY_Q: a new queue with the attributes of another, but for those that are given."""
    yield from _copy(request, ask, Parameter.FROM_Q_NAME, Parameter.TO_Q_NAME, _of_one_kind(request))


def delete_queue(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_DELETE_Q: without a type, of whatever kind the queue is."""
    name, kind, purge = request.text(Parameter.Q_NAME), queue_kind(request), request.flag(Parameter.PURGE)
    request.optional_integer(Parameter.REMOVE_AUTHREC, 0)
    request.nothing_more()
    ask(Delete(object_type=kind or _kind_there(ask, name), name=name, purge=purge))
    yield from ()


def clear_queue(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_CLEAR_Q, slice by slice."""
    call = Clear(q_name=request.text(Parameter.Q_NAME))
    request.nothing_more()
    while isinstance(reply := ask(call), Counted) and reply.more:
        yield None


def create_process(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_CREATE_PROCESS."""
    yield from _create(request, ask, Parameter.PROCESS_NAME, ObjectType.PROCESS)


def change_process(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_CHANGE_PROCESS."""
    yield from _change(request, ask, Parameter.PROCESS_NAME, ObjectType.PROCESS)


def copy_process(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_COPY_PROCESS."""
    yield from _copy(request, ask, Parameter.FROM_PROCESS_NAME, Parameter.TO_PROCESS_NAME, ObjectType.PROCESS)


def delete_process(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_DELETE_PROCESS."""
    yield from _delete(request, ask, Parameter.PROCESS_NAME, ObjectType.PROCESS)


def create_namelist(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_CREATE_NAMELIST."""
    yield from _create(request, ask, Parameter.NAMELIST_NAME, ObjectType.NAMELIST)


def change_namelist(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_CHANGE_NAMELIST."""
    yield from _change(request, ask, Parameter.NAMELIST_NAME, ObjectType.NAMELIST)


def copy_namelist(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_COPY_NAMELIST."""
    yield from _copy(request, ask, Parameter.FROM_NAMELIST_NAME, Parameter.TO_NAMELIST_NAME, ObjectType.NAMELIST)


def delete_namelist(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_DELETE_NAMELIST."""
    yield from _delete(request, ask, Parameter.NAMELIST_NAME, ObjectType.NAMELIST)


def change_queue_manager(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_CHANGE_Q_MGR."""
    request.optional_integer(Parameter.FORCE, 0)
    yield from _done(ask, Alter(object_type="QMGR", name="", attributes=_attributes(request, ObjectType.QMGR)))


def ping(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_PING_Q_MGR."""
    request.nothing_more()
    yield from _done(ask, Ping())


# -- what they have in common -----------------------------------------------------------------------------------


def _create(request: Request, ask: Ask, named: Parameter, kind: ObjectType) -> Answers:
    name, again = request.text(named), request.flag(Parameter.REPLACE)
    yield from _done(
        ask, Define(object_type=kind.name, name=name, attributes=_attributes(request, kind), replace=again)
    )


def _change(request: Request, ask: Ask, named: Parameter, kind: ObjectType) -> Answers:
    yield from _done(ask, Alter(object_type=kind.name, name=request.text(named), attributes=_attributes(request, kind)))


def _copy(request: Request, ask: Ask, source: Parameter, target: Parameter, kind: ObjectType) -> Answers:
    like, name, again = request.text(source), request.text(target), request.flag(Parameter.REPLACE)
    given = _attributes(request, kind)
    yield from _done(ask, Define(object_type=kind.name, name=name, attributes=given, replace=again, like=like))


def _delete(request: Request, ask: Ask, named: Parameter, kind: ObjectType) -> Answers:
    name = request.text(named)
    request.optional_integer(Parameter.REMOVE_AUTHREC, 0)
    request.nothing_more()
    yield from _done(ask, Delete(object_type=kind.name, name=name))


def _done(ask: Ask, call: Call) -> Answers:
    ask(call)
    yield from ()


def _of_one_kind(request: Request) -> ObjectType:
    """Returns the kind of queue that a definition is of; it must be given."""
    if Parameter.Q_TYPE not in request.rest:
        raise PcfError(PcfReason.PARM_COUNT_TOO_SMALL, "the type of the queue is missing", Parameter.Q_TYPE)
    kind = queue_kind(request)
    if not kind:
        raise PcfError(PcfReason.Q_TYPE_ERROR, "every type is no type of one queue", Parameter.Q_TYPE)
    return ObjectType[kind]


def _attributes(request: Request, kind: ObjectType) -> dict[str, Any]:
    """Returns what is left of a command, as attributes."""
    if request.rest.get(Parameter.COMMAND_SCOPE) == "":
        del request.rest[Parameter.COMMAND_SCOPE]
    given, request.rest = request.rest, {}
    request.nothing_more()
    return read_attributes(kind, given)


def _kind_there(ask: Ask, name: str) -> str:
    """Returns of what kind the queue of this name is. Raises UnknownObjectName (2085)."""
    listing = ask(Display(object_type="queue", name=name, limit=1))
    rows = listing.rows if isinstance(listing, Listing) and not name.endswith("*") else []
    if not rows:
        raise UnknownObjectName(name)
    return str(rows[0]["object_type"])
