"""The table of commands: by number, what a command does and what it answers. A command that is not here has no answer.

A reply is a set of messages, of which the last has MQCFC_LAST; a refusal is one message with MQ's reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from trigmon.mq.errors import MQError
from trigmon.mq.reasons import CompCode, Reason
from trigmon.pcf import absent_objects, connections, inquiries, object_commands, queue_manager_acts, rights_commands
from trigmon.pcf.numbers import Parameter, PcfCommand, PcfReason, StructureType
from trigmon.pcf.request import Answers, Ask, CommandFailedError, Parameters, Request
from trigmon.pcf.structures import LAST, NOT_LAST, PcfError, PcfMessage
from trigmon.pcf.structures import Parameter as NumberAndValue

Handler = Callable[[Request, Ask], Answers]
Refused = Callable[[int, str], None]
"""Called with the reason of a refusal, as a number and as a text."""

COMMANDS: Final[dict[PcfCommand, Handler]] = {
    PcfCommand.CHANGE_Q_MGR: object_commands.change_queue_manager,
    PcfCommand.INQUIRE_Q_MGR: inquiries.inquire_queue_manager,
    PcfCommand.CHANGE_PROCESS: partial(object_commands.change, object_commands.PROCESS),
    PcfCommand.COPY_PROCESS: partial(object_commands.copy, object_commands.PROCESS),
    PcfCommand.CREATE_PROCESS: partial(object_commands.create, object_commands.PROCESS),
    PcfCommand.DELETE_PROCESS: partial(object_commands.delete, object_commands.PROCESS),
    PcfCommand.INQUIRE_PROCESS: inquiries.inquire_processes,
    PcfCommand.CHANGE_Q: object_commands.change_queue,
    PcfCommand.CLEAR_Q: object_commands.clear_queue,
    PcfCommand.COPY_Q: object_commands.copy_queue,
    PcfCommand.CREATE_Q: object_commands.create_queue,
    PcfCommand.DELETE_Q: object_commands.delete_queue,
    PcfCommand.INQUIRE_Q: inquiries.inquire_queues,
    PcfCommand.REFRESH_Q_MGR: queue_manager_acts.refresh,
    PcfCommand.RESET_Q_STATS: inquiries.reset_queue_statistics,
    PcfCommand.INQUIRE_Q_NAMES: inquiries.inquire_queue_names,
    PcfCommand.INQUIRE_PROCESS_NAMES: inquiries.inquire_process_names,
    PcfCommand.CHANGE_NAMELIST: partial(object_commands.change, object_commands.NAMELIST),
    PcfCommand.COPY_NAMELIST: partial(object_commands.copy, object_commands.NAMELIST),
    PcfCommand.CREATE_NAMELIST: partial(object_commands.create, object_commands.NAMELIST),
    PcfCommand.DELETE_NAMELIST: partial(object_commands.delete, object_commands.NAMELIST),
    PcfCommand.INQUIRE_NAMELIST: inquiries.inquire_namelists,
    PcfCommand.INQUIRE_NAMELIST_NAMES: inquiries.inquire_namelist_names,
    PcfCommand.PING_Q_MGR: object_commands.ping,
    PcfCommand.INQUIRE_Q_STATUS: inquiries.inquire_queue_status,
    PcfCommand.REFRESH_SECURITY: queue_manager_acts.refresh_security,
    PcfCommand.INQUIRE_AUTH_INFO: rights_commands.inquire_authentication,
    PcfCommand.INQUIRE_AUTH_INFO_NAMES: rights_commands.inquire_authentication_names,
    PcfCommand.INQUIRE_CONNECTION: connections.inquire_connections,
    PcfCommand.STOP_CONNECTION: connections.stop_connection,
    PcfCommand.INQUIRE_AUTH_RECS: rights_commands.inquire_records,
    PcfCommand.INQUIRE_ENTITY_AUTH: rights_commands.inquire_entity,
    PcfCommand.DELETE_AUTH_REC: rights_commands.delete_record,
    PcfCommand.SET_AUTH_REC: rights_commands.set_record,
    PcfCommand.RESET_Q_MGR: queue_manager_acts.reset,
    PcfCommand.INQUIRE_Q_MGR_STATUS: connections.inquire_queue_manager_status,
    **{asks: absent_objects.none_found(reason) for asks, reason in absent_objects.REASONS.items()},
    **{asks: absent_objects.empty_list(number) for asks, number in absent_objects.LISTS.items()},
}

_REASONS: Final = {
    Reason.OBJECT_ALREADY_EXISTS: PcfReason.OBJECT_ALREADY_EXISTS,
    Reason.OBJECT_IN_USE: PcfReason.OBJECT_OPEN,
    Reason.OBJECT_NAME_ERROR: PcfReason.OBJECT_NAME_ERROR,
    Reason.UNEXPECTED_ERROR: PcfReason.UNEXPECTED_ERROR,
}
"""The reasons for which a command has one of its own."""


def reason_of(error: MQError) -> int:
    """Returns the reason that a reply has for a call that was refused."""
    return int(_REASONS.get(error.reason, error.reason))


def check_header(message: PcfMessage) -> None:
    """Raises PcfError where a PCF message is no command, or one of several."""
    if message.kind not in (StructureType.COMMAND, StructureType.COMMAND_XR):
        raise PcfError(PcfReason.CFH_TYPE_ERROR, f"type {message.kind} is no command")
    if message.sequence != 1:
        raise PcfError(PcfReason.CFH_MSG_SEQ_NUMBER_ERR, f"message {message.sequence} of a command")
    if message.control != LAST:
        raise PcfError(PcfReason.CFH_CONTROL_ERROR, f"control {message.control}")


def replies(message: PcfMessage, ask: Ask, escape: Handler, refused: Refused) -> Iterator[PcfMessage | None]:
    """Yields the messages of a reply; None where a slice of the work is done, and calls may come between.

    ``escape`` is the handler of MQCMD_ESCAPE. Raises nothing but what is a bug.
    """
    sequence, held = 0, None
    try:
        check_header(message)
        table = COMMANDS | {PcfCommand.ESCAPE: escape}
        if message.command not in table:
            raise PcfError(PcfReason.CFH_COMMAND_ERROR, f"command {message.command}")
        for parameters in table[PcfCommand(message.command)](Request(message), ask):
            if parameters is None:
                yield None
                continue
            if held is not None:
                sequence += 1
                yield _reply(message.command, held, sequence, NOT_LAST)
            held = parameters
    except PcfError as error:
        refused(int(error.reason), str(error))
        yield _refused(message.command, sequence, int(error.reason), error.parameter)
    except MQError as error:
        refused(reason_of(error), str(error))
        yield _refused(message.command, sequence, reason_of(error))
    except CommandFailedError as failed:
        if failed.why:
            refused(failed.reason, failed.why)
        yield _refused(message.command, sequence, failed.reason, parameters=tuple(held or ()))
    else:
        yield _reply(message.command, held or [], sequence + 1, LAST)


def _reply(command: int, parameters: Parameters, sequence: int, control: int) -> PcfMessage:
    found = tuple(parameters)
    return PcfMessage(StructureType.RESPONSE, command, CompCode.OK, 0, found, sequence, control)


def _refused(
    command: int, sequence: int, reason: int, parameter: int = 0, parameters: tuple[NumberAndValue, ...] = ()
) -> PcfMessage:
    """Returns the last message of a command that failed. What was found before and not sent yet is left out."""
    about = ((int(Parameter.PARAMETER_ID), parameter),) if parameter else parameters
    return PcfMessage(StructureType.RESPONSE, command, CompCode.FAILED, reason, about, sequence + 1, LAST)


def refusal(command: int, error: PcfError | MQError) -> PcfMessage:
    """Returns the reply to a message that cannot be read as a command, or is not to be performed."""
    return _refused(command, 0, int(error.reason), error.parameter if isinstance(error, PcfError) else 0)
