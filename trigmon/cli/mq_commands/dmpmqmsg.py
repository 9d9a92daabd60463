"""``dmpmqmsg``: copies and moves messages between queues and text files, with their descriptors."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from trigmon.cli.mq_commands.message_file import MessageFileError, read, written
from trigmon.cli.mq_commands.mq_options import Given, MqUsageError, connected
from trigmon.cli.mq_commands.mq_options import read as read_options
from trigmon.mq.calls import Put
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import PutOption
from trigmon.mq.errors import MQError, NoMsgAvailable

if TYPE_CHECKING:
    from trigmon.client.connection import Connection

DONE, FAILED = 0, 1
_CONTEXTS = {
    "A": PutOption.SET_ALL_CONTEXT,
    "I": PutOption.SET_IDENTITY_CONTEXT,
    "d": PutOption.DEFAULT_CONTEXT,
    "n": PutOption.NO_CONTEXT,
}
_OPEN_WORDS = {"A": "set_all_context", "I": "set_identity_context"}
_RANGE = re.compile(r"(?:(\d+)(?:\.\.(\d+)|#(\d+))?|#(\d+))\Z")
_DISPLAY = "AHNi"
STDOUT = "stdout"
_Message = tuple[MessageDescriptor, bytes]


def dmpmqmsg(arguments: Sequence[str]) -> int:
    """Copies or moves messages; 0, or 1 where a call or a file failed. Raises MqUsageError.

    Each batch is committed when all of it was written; after an error the messages of whole batches are done.
    """
    given = read_options(arguments, "m:i:I:o:f:F:cqt:r:w:d:C:")
    source, target, file = given.value("i") or given.value("I"), given.value("o"), given.value("f") or given.value("F")
    if not (source or target) or bool(source and target) == bool(file) or (given.has("i") and given.has("I")):
        raise MqUsageError("two of -i (or -I), -o and -f (or -F) are given: from a queue or a file to the other")
    unknown = set(given.value("d")) - set(_DISPLAY)
    if unknown or given.value("C", "A") not in _CONTEXTS:
        raise MqUsageError(f"-d is made of {_DISPLAY}, -C is one of {', '.join(_CONTEXTS)}")
    first, last = _range(given.value("r", "1"), is_given=given.has("r"))
    if first > 1 and given.has("I"):
        raise MqUsageError("-r begins at 1 with -I: what lies before would be taken off the queue too")
    try:
        with connected(given.value("m"), "dmpmqmsg") as qm, ExitStack() as opened:
            messages = _from_queue(qm, given, opened) if source else _from_file(file)
            chosen = islice(messages, first - 1, last)
            tally = _to_queue(qm, given, chosen) if target else _to_file(qm, given, source, file, chosen, opened)
    except (MQError, MessageFileError) as error:
        from trigmon.console.error_text import sentence

        click.echo(f"dmpmqmsg: {sentence(error) if isinstance(error, MQError) else error}", err=True)
        return FAILED
    except FileExistsError:
        click.echo(f"dmpmqmsg: {file} is there already; -F replaces it", err=True)
        return FAILED
    if not given.has("q"):
        counts = f"Messages: {tally[0]:6}  Bytes: {tally[1]:10}"
        click.echo(f"Read     - Files: {0 if source else 1:3}  {counts}", err=file == STDOUT)
        click.echo(f"Written  - Files: {0 if target else 1:3}  {counts}", err=file == STDOUT)
    return DONE


def _range(text: str, *, is_given: bool) -> tuple[int, int | None]:
    """Returns the first and the last message of ``x``, ``x..y``, ``x#y`` or ``#x``. Raises MqUsageError."""
    found = _RANGE.match(text)
    if found is None or (found[1] and int(found[1]) < 1):
        raise MqUsageError(f"-r {text} is none of x, x..y, x#y and #x")
    if not is_given:
        return 1, None
    if found[4]:
        return 1, int(found[4])
    first = int(found[1])
    return first, int(found[2]) if found[2] else first + int(found[3] or 1) - 1


def _from_queue(qm: Connection, given: Given, opened: ExitStack) -> Iterator[_Message]:
    """Yields the messages of the source; with ``-I`` each is got in the unit of work that writes it."""
    wait_ms = given.number("w", 0) * 1000 or None
    if given.has("i"):
        queue = opened.enter_context(qm.open(given.value("i"), "browse"))
        for message in queue.browse():
            yield message.descriptor, message.data
        return
    queue = opened.enter_context(qm.open(given.value("I"), "input_shared"))
    while True:
        try:
            message = queue.get(syncpoint=True, wait_interval_ms=wait_ms)
        except NoMsgAvailable:
            return
        yield message.descriptor, message.data


def _from_file(name: str) -> Iterator[_Message]:
    if name == "stdin":
        yield from read(sys.stdin.buffer)
        return
    with Path(name).open("rb") as file:
        yield from read(file)


def _batches(given: Given, messages: Iterator[_Message]) -> Iterator[list[_Message]]:
    size = given.number("t", 25) or 25
    while batch := list(islice(messages, size)):
        yield batch


def _to_queue(qm: Connection, given: Given, messages: Iterator[_Message]) -> tuple[int, int]:
    """Puts the messages; returns how many, and their bytes."""
    context = given.value("C", "A")
    options = int(PutOption.SYNCPOINT | _CONTEXTS[context])
    words = ["output", *([_OPEN_WORDS[context]] if context in _OPEN_WORDS else [])]
    count = size = 0
    with qm.open(given.value("o"), *words) as queue:
        for batch in _batches(given, messages):
            for descriptor, data in batch:
                kept = _kept(descriptor, context)
                qm.call(Put(handle=queue.handle, descriptor=kept, data=data, options=options, unit=qm.unit))
                size += len(data)
            qm.commit()
            count += len(batch)
    return count, size


def _kept(descriptor: MessageDescriptor, context: str) -> MessageDescriptor:
    """Returns the descriptor without what the context of the put does not take."""
    from msgspec.structs import replace

    kept = replace(descriptor, backout_count=0)
    if context == "A":
        return kept
    kept = replace(kept, put_appl_type=0, put_appl_name="", put_ms=0, appl_origin_data="")
    return kept if context == "I" else replace(kept, user_identifier="", accounting_token=b"", appl_identity_data="")


def _to_file(
    qm: Connection, given: Given, source: str, name: str, messages: Iterator[_Message], opened: ExitStack
) -> tuple[int, int]:
    """Writes the messages; returns how many, and their bytes."""
    display = given.value("d")
    file = _file(given, name, opened)
    if "H" not in display:
        for line in ("* dmpmqmsg of trigmon", f"* Qmgr  = {qm.q_mgr_name}", f"* Queue = {source}", ""):
            file.write(f"{line}\n")
    count = size = 0
    for batch in _batches(given, messages):
        for descriptor, data in batch:
            count += 1
            file.writelines([f"* Index {count}\n"] if "i" in display else [])
            lines = written(descriptor, data, as_text="A" in display, with_fields="N" not in display)
            file.writelines(f"{line}\n" for line in lines)
            size += len(data)
        file.flush()
        qm.commit()
    return count, size


def _file(given: Given, name: str, opened: ExitStack) -> TextIO:
    if name == STDOUT:
        return sys.stdout
    return opened.enter_context(Path(name).open("w" if given.has("F") else "x", encoding="utf-8"))
