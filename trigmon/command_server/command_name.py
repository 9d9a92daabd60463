"""What a command is called in the log: of one in PCF the name of its number, of an Escape the command of MQSC."""

from __future__ import annotations

from typing import Final

from trigmon.mqsc.commands import each_command
from trigmon.pcf.numbers import Parameter, PcfCommand
from trigmon.pcf.structures import PcfMessage

_NAMES: Final = frozenset(
    {
        *(Parameter.Q_NAME, Parameter.PROCESS_NAME, Parameter.NAMELIST_NAME, Parameter.AUTH_PROFILE_NAME),
        *(Parameter.TO_Q_NAME, Parameter.TO_PROCESS_NAME, Parameter.TO_NAMELIST_NAME, Parameter.OBJECT_NAME),
    }
)
"""The parameters that name the object of a command."""


def command_name(message: PcfMessage) -> tuple[str, str]:
    """Returns a command and the object that it names, blank where it names none: ``CREATE_Q``, ``ORDERS``."""
    texts = {number: value for number, value in message.parameters if isinstance(value, str)}
    if message.command == PcfCommand.ESCAPE:
        first = next(each_command(texts.get(Parameter.ESCAPE_TEXT, "")), None)
        if first is not None and first.noun:
            return f"{first.verb} {first.noun}", first.name
    known = message.command in PcfCommand._value2member_map_
    name = next((value for number, value in texts.items() if number in _NAMES), "")
    return PcfCommand(message.command).name if known else str(message.command), name.rstrip(" \0")
