"""The table of MQ's commands that are here by their names; links, usage texts and the how-to page are made from it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import NamedTuple


class MqCommand(NamedTuple):
    """One command: its function as ``module:function``, its options, what it does here, its exit statuses.

    ``usage_status`` is the status for options that are none of its own.
    """

    function: str
    options: str
    means: str
    statuses: str
    usage_status: int

    def loaded(self) -> Callable[[Sequence[str]], int]:
        """Returns the function: it takes the arguments and returns the exit status."""
        module, _, name = self.function.partition(":")
        found = getattr(importlib.import_module(f"trigmon.cli.mq_commands.{module}"), name)
        assert callable(found)
        return found  # type: ignore[no-any-return]


_SAMPLE_STATUSES = (
    "0 done, else the reason of the failed call modulo 256 (2085: 37), 99 no queue named; MQ's end with 0 behind MQCONN"
)

_AUTHORITY_STATUSES = (
    "0 done, 36 wrong arguments, 40 queue manager not available, 71 refused, 72 wrong name, 133 unknown object, "
    "145 to 149 name, type or user missing or wrong"
)

MQ_COMMANDS = {
    "runmqsc": MqCommand(
        "runmqsc:runmqsc",
        "[-e] [-v] [-f FILE] [-w SECONDS] [-c] [QMNAME]",
        "`trigmon mqsc`; `-e` without echo, `-v` only reads the commands and asks no queue manager",
        "0 all processed, 10 some not, 20 none",
        20,
    ),
    "dspmq": MqCommand(
        "dspmq:dspmq",
        "[-m QMNAME] [-s] [-a] [-n] [-o all|default|status|standby|installation]...",
        "the queue managers of this machine: those that run, and those with a store",
        "0 done, 5 done with `-a`, 36 wrong options, 72 no such queue manager",
        36,
    ),
    "amqsput": MqCommand(
        "amqsput:amqsput",
        "QUEUE [QMNAME]",
        "a message for each line of standard input, to its end or an empty line",
        _SAMPLE_STATUSES,
        99,
    ),
    "amqsget": MqCommand(
        "amqsget:amqsget",
        "QUEUE [QMNAME]",
        "takes messages until none came for 15 seconds; one that could not be printed is back on the queue",
        _SAMPLE_STATUSES,
        99,
    ),
    "amqsbcg": MqCommand(
        "amqsbcg:amqsbcg",
        "QUEUE [QMNAME [0]]",
        "the messages with their descriptors, the data in hexadecimal; they stay",
        _SAMPLE_STATUSES,
        99,
    ),
    "amqsgbr": MqCommand(
        "amqsgbr:amqsgbr", "QUEUE [QMNAME]", "the data of the messages; they stay", _SAMPLE_STATUSES, 99
    ),
    "dmpmqcfg": MqCommand(
        "dmpmqcfg:dmpmqcfg",
        "[-m QMNAME] [-a] [-n NAME] [-x all|object|authrec] [-t TYPE] [-o mqsc|1line|setmqaut]",
        "`trigmon export --mqsc --system`; without `-a` what differs from the defaults",
        "0 done, 10 wrong options, 20 queue manager not available",
        10,
    ),
    "setmqaut": MqCommand(
        "setmqaut:setmqaut",
        "[-m QMNAME] -t TYPE [-n PROFILE] (-p USER|-g GROUP)... (+RIGHT|-RIGHT|-remove)...",
        "SET AUTHREC and DELETE AUTHREC; rights and types that mean nothing here are named and skipped",
        _AUTHORITY_STATUSES + ", 150 no right, 151 a wrong one",
        36,
    ),
    "dspmqaut": MqCommand(
        "dspmqaut:dspmqaut",
        "[-m QMNAME] -t TYPE [-n NAME] (-p USER|-g GROUP)",
        "what a user, with its groups, or a group may do with an object",
        _AUTHORITY_STATUSES,
        36,
    ),
    "runmqdlq": MqCommand(
        "runmqdlq:runmqdlq",
        "[-c] [QUEUE [QMNAME]]",
        "applies the rules table on standard input to the dead-letter queue, each message whole or not at all; "
        "PUTAUT(CTX) is refused",
        "0 ended as its table says, 20 not run",
        20,
    ),
    "dmpmqmsg": MqCommand(
        "dmpmqmsg:dmpmqmsg",
        "[-m QMNAME] [-i|-I QUEUE] [-o QUEUE] [-f|-F FILE] [-r RANGE] [-t BATCH] [-w SECONDS] [-d AHNi] [-C AIdn] [-q]",
        "messages between queues and text files; `-i` copies, `-I` moves, FILE may be stdin or stdout",
        "0 done, 1 failed, 2 wrong options",
        2,
    ),
    "runmqtrm": MqCommand(
        "runmqtrm:runmqtrm",
        "[-m QMNAME] [-q QUEUE]",
        "`trigmon monitor --initq`, which also retries, caps and records what it starts",
        "0 asked to stop, 10 ended by an error, 20 not run",
        20,
    ),
    "crtmqm": MqCommand(
        "crtmqm:crtmqm",
        "[-q] [-u DEADQ] [-c TEXT] [-lc] [-ll] [-lp N] [-ls N] [-lf N] QMNAME",
        "a first start of `trigmon run` and its end, which makes the store of this user; "
        "a service: `systemctl enable --now trigmon@QMNAME`",
        "0 made, 8 there already, 39 wrong options, 71 not made, 72 wrong name",
        39,
    ),
    "strmqm": MqCommand(
        "strmqm:strmqm",
        "[QMNAME]",
        "`trigmon run` in the background, with its monitor; its log is beside its store",
        "0 started, 5 runs already, 16 not there, 39 wrong options, 71 not started, 72 wrong name",
        39,
    ),
    "endmqm": MqCommand(
        "endmqm:endmqm",
        "[-c|-w|-i|-p] QMNAME",
        "asks the process to stop in order and waits; the options are one",
        "0 ended, 16 not there, 39 wrong options, 40 not running, 71 not ended, 72 wrong name",
        39,
    ),
    "dltmqm": MqCommand(
        "dltmqm:dltmqm",
        "QMNAME",
        "names the directory whose removal deletes it, and deletes nothing",
        "5 runs, 16 not there, 39 wrong options, 71 not deleted, 72 wrong name",
        39,
    ),
}
