"""Splits the texts of a definition into argument words as a shell would, and fills their placeholders. Pure.

A word is split from the definition first and filled afterwards. So the value of a placeholder is never split, quoted or
expanded: the content of TRIGDATA stays inside one element.
"""

from __future__ import annotations

from collections.abc import Callable

from trigmon.launch.launch_plan import LaunchError, Order
from trigmon.mq.attributes import Process
from trigmon.mq.descriptors import control_character, pack_tmc2
from trigmon.mq.traceparent import TRACEPARENT
from trigmon.rules.runs import check_program, check_spark
from trigmon.rules.runs.code_words import PLACEHOLDER

OF_ONE_RUN = (
    "TRIGMON_QMGR",
    "TRIGMON_QNAME",
    "TRIGMON_PROCESS",
    "TRIGMON_TRIGDATA",
    "TRIGMON_USERDATA",
    "TRIGMON_ENVDATA",
    "TRIGMON_OCCASION",
    "TRIGMON_RUN",
    "TRIGMON_TMC",
    TRACEPARENT,
    "CREDENTIALS_DIRECTORY",
)
"""The variables that each run has for itself: those of :func:`environment`, and the keeper's."""


def split_words(text: str, where: str) -> list[str]:
    """Returns ``text`` split as by a shell. Raises LaunchError, naming ``where``, when a quote is left open.

    An own definition was refused for that already, but a trigger message may come from another queue manager.
    """
    return _cut(check_program.split_words, text, where)


def environment_words(env_data: str) -> list[str]:
    """Returns the words of ENVRDATA. Raises LaunchError."""
    return _cut(check_program.environment_words, env_data, "ENVRDATA")


def _cut(cut: Callable[[str], list[str]], text: str, where: str) -> list[str]:
    try:
        return cut(text)
    except ValueError as error:
        raise LaunchError(f"{where} cannot be split into words ({error}): {text}") from None


def fillings(order: Order) -> dict[str, str]:
    """Returns the value of each placeholder."""
    return {
        "tmc": pack_tmc2(order.trigger, order.q_mgr_name),
        "queue": order.trigger.q_name,
        "trigdata": order.trigger.trigger_data,
        "userdata": order.trigger.user_data,
        "run": order.run_id,
    }


def filled(words: list[str], order: Order) -> list[str]:
    """Returns each word with its placeholders filled.

    Raises LaunchError when a value would make a word begin an option that the definition did not write: a user who may
    set a queue's TRIGDATA may choose data for the program, not options.
    """
    values = fillings(order)
    done = []
    for word in words:
        element = PLACEHOLDER.sub(lambda found: values[found[1]], word)
        if check_program.makes_an_option(word) or (element.startswith("-") and not word.startswith("-")):
            raise LaunchError(f"{word} may not begin an option, and it would be {element!r}")
        done.append(element)
    return done


def variables(process: Process) -> dict[str, str]:
    """Returns the variables of SPKENV, whatever the type of the program. Raises LaunchError."""
    try:
        return check_spark.environment_of(process)
    except ValueError as error:
        raise LaunchError(f"SPKENV must hold words of the form NAME=value: {error}") from None


def check_characters(order: Order) -> None:
    """Raises LaunchError when a field of the trigger message holds a NUL or another control character."""
    if wrong := control_character(order.trigger):
        raise LaunchError(wrong)


def environment(order: Order) -> dict[str, str]:
    """Returns the variables ``TRIGMON_...`` by which a program learns why it was started, and TRACEPARENT."""
    trigger = order.trigger
    traced = {TRACEPARENT: order.traceparent} if order.traceparent else {}
    return (
        order.variables
        | traced
        | {
            "TRIGMON_QMGR": order.address or order.q_mgr_name,
            "TRIGMON_QNAME": trigger.q_name,
            "TRIGMON_PROCESS": trigger.process_name,
            "TRIGMON_TRIGDATA": trigger.trigger_data,
            "TRIGMON_USERDATA": trigger.user_data,
            "TRIGMON_ENVDATA": trigger.env_data,
            "TRIGMON_OCCASION": order.occasion,
            "TRIGMON_RUN": order.run_id,
            "TRIGMON_TMC": pack_tmc2(trigger, order.q_mgr_name),
        }
    )
