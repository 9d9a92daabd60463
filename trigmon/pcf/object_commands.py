"""The commands that change something: each makes the call that a command line makes. Nothing but success is answered.

Source: the manual's pages of the PCF commands.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from trigmon.mq.calls import Alter, Call, Clear, Define, Delete, Ping
from trigmon.mq.enums import ObjectType
from trigmon.mq.replies import Counted
from trigmon.pcf.inquiries import object_there, queue_kind
from trigmon.pcf.numbers import Parameter, PcfReason
from trigmon.pcf.objects import read_attributes
from trigmon.pcf.request import Answers, Ask, Request
from trigmon.pcf.structures import PcfError


class Numbered(NamedTuple):
    """A kind of object with the numbers of its parameters: its name, and of a copy the names of the two objects."""

    kind: ObjectType
    name: Parameter
    source: Parameter
    target: Parameter


PROCESS: Final = Numbered(
    ObjectType.PROCESS, Parameter.PROCESS_NAME, Parameter.FROM_PROCESS_NAME, Parameter.TO_PROCESS_NAME
)
NAMELIST: Final = Numbered(
    ObjectType.NAMELIST, Parameter.NAMELIST_NAME, Parameter.FROM_NAMELIST_NAME, Parameter.TO_NAMELIST_NAME
)


def create(of: Numbered, request: Request, ask: Ask) -> Answers:
    """Answers the commands MQCMD_CREATE_..."""
    name, again = request.text(of.name), request.flag(Parameter.REPLACE)
    given = _attributes(request, of.kind)
    yield from _done(ask, Define(object_type=of.kind.name, name=name, attributes=given, replace=again))


def change(of: Numbered, request: Request, ask: Ask) -> Answers:
    """Answers the commands MQCMD_CHANGE_..."""
    name = request.text(of.name)
    yield from _done(ask, Alter(object_type=of.kind.name, name=name, attributes=_attributes(request, of.kind)))


def copy(of: Numbered, request: Request, ask: Ask) -> Answers:
    """Answers the commands MQCMD_COPY_...: a new object with another's attributes, but for those that are given."""
    like, name, again = request.text(of.source), request.text(of.target), request.flag(Parameter.REPLACE)
    given = _attributes(request, of.kind)
    yield from _done(ask, Define(object_type=of.kind.name, name=name, attributes=given, replace=again, like=like))


def delete(of: Numbered, request: Request, ask: Ask) -> Answers:
    """Answers the commands MQCMD_DELETE_..."""
    name = request.text(of.name)
    request.optional_integer(Parameter.REMOVE_AUTHREC, 0)
    request.nothing_more()
    yield from _done(ask, Delete(object_type=of.kind.name, name=name))


def create_queue(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_CREATE_Q."""
    yield from create(_queue_of_one_kind(request), request, ask)


def change_queue(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_CHANGE_Q."""
    yield from change(_queue_of_one_kind(request), request, ask)


def copy_queue(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_COPY_Q."""
    yield from copy(_queue_of_one_kind(request), request, ask)


def delete_queue(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_DELETE_Q: without a type, of whatever kind the queue is."""
    name, kind, purge = request.text(Parameter.Q_NAME), queue_kind(request), request.flag(Parameter.PURGE)
    request.optional_integer(Parameter.REMOVE_AUTHREC, 0)
    request.nothing_more()
    kind = kind or str(object_there(ask, "queue", name)["object_type"])
    ask(Delete(object_type=kind, name=name, purge=purge))
    yield from ()


def clear_queue(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_CLEAR_Q, slice by slice."""
    call = Clear(q_name=request.text(Parameter.Q_NAME))
    request.nothing_more()
    while isinstance(reply := ask(call), Counted) and reply.more:
        yield None


def change_queue_manager(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_CHANGE_Q_MGR."""
    request.optional_integer(Parameter.FORCE, 0)
    yield from _done(ask, Alter(object_type="QMGR", name="", attributes=_attributes(request, ObjectType.QMGR)))


def ping(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_PING_Q_MGR."""
    request.nothing_more()
    yield from _done(ask, Ping())


# -- what they have in common -----------------------------------------------------------------------------------


def _done(ask: Ask, call: Call) -> Answers:
    ask(call)
    yield from ()


def _queue_of_one_kind(request: Request) -> Numbered:
    """Returns the kind of queue that a definition is of; it must be given. Raises PcfError."""
    if Parameter.Q_TYPE not in request.rest:
        raise PcfError(PcfReason.PARM_COUNT_TOO_SMALL, "the type of the queue is missing", Parameter.Q_TYPE)
    kind = queue_kind(request)
    if not kind:
        raise PcfError(PcfReason.Q_TYPE_ERROR, "every type is no type of one queue", Parameter.Q_TYPE)
    return Numbered(ObjectType[kind], Parameter.Q_NAME, Parameter.FROM_Q_NAME, Parameter.TO_Q_NAME)


def _attributes(request: Request, kind: ObjectType) -> dict[str, Any]:
    """Returns what is left of a command, as attributes."""
    if request.rest.get(Parameter.COMMAND_SCOPE) == "":
        del request.rest[Parameter.COMMAND_SCOPE]
    given, request.rest = request.rest, {}
    request.nothing_more()
    return read_attributes(kind, given)
