"""Running a script: commands one by one, each echoed, asked and answered, as runmqsc does it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

from trigmon.mq.calls import Alter, Call, Define, Display
from trigmon.mq.errors import ConnectionBroken, MQError
from trigmon.mq.names import matches
from trigmon.mq.paging import Paged, all_rows, pages
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Counted, Listing, Reply, Values
from trigmon.mqsc import reply_text
from trigmon.mqsc.authority_commands import fields
from trigmon.mqsc.command_reader import Skipped
from trigmon.mqsc.commands import Command, read_script
from trigmon.mqsc.display_values import connection_id
from trigmon.mqsc.lexer import continues, is_nothing
from trigmon.rules.runs.process_warnings import warnings

Ask = Callable[[Call], Reply]
Say = Callable[[str], None]

ALL_WELL = 0
SOME_FAILED = 10
COULD_NOT_RUN = 20


def run(lines: Iterable[str], ask: Ask | None, say: Say, q_mgr_name: str, *, echoes: bool = True) -> int:
    """Runs a script's lines as they come and returns MQ's exit status: 0 all well, 10 some commands failed.

    ``ask`` performs a call and raises MQError when it is refused; None only reads the commands. ``say`` takes a line of
    output, ``echoes`` is whether the commands are among them. A connection that breaks ends the script with 20: what
    the command in flight did is then unknown.
    """
    say("trigmon, MQ's commands.")
    say(f"Starting MQSC for queue manager {q_mgr_name}.")
    say("")
    say("")
    read = wrong = failed = 0
    skipped: list[Skipped] = []
    echo = say if echoes else _nothing
    for command in _commands(lines, echo):
        _echo(command, read + 1, echo)
        if command.ends:
            break
        read += 1
        if command.error is not None:
            wrong += command.is_syntax_error
            failed += not command.is_syntax_error
            _say_all(reply_text.wrong(command), say)
            continue
        try:
            failed += ask is not None and not perform(command, ask, say)
        except ConnectionBroken as error:
            _say_all(["AMQ8146E: trigmon queue manager not available.", f"   {error}"], say)
            return COULD_NOT_RUN
        _say_all((f"Skipped, {line}" for line in reply_text.skipped(command.skipped)), say)
        skipped += command.skipped
    _say_all(reply_text.all_skipped(skipped), say)
    counts = reply_text.counts(read, wrong, failed)
    # Where nothing was processed, the line about what was says nothing true.
    _say_all(counts if ask is not None else counts[:-1], say)
    return SOME_FAILED if wrong or failed else ALL_WELL


def _commands(lines: Iterable[str], say: Say) -> Iterator[Command]:
    """Yields the commands as soon as each is complete, so that a person at a terminal is answered at once.

    Comments and blank lines between them are echoed; those inside a command belong to its source.
    """
    piece: list[str] = []
    first = 1
    for number, raw in enumerate(lines, 1):
        line = raw.rstrip("\r\n")
        if is_nothing(line) and not piece:
            _say_line("       : " + line.rstrip(), say)
            continue
        if not piece:
            first = number
        piece.append(line)
        if not (continues(line) or is_nothing(line)):
            yield from read_script("\n".join(piece), first)
            piece = []
    yield from read_script("\n".join(piece), first)


def perform(command: Command, ask: Ask, say: Say) -> bool:
    """Asks and answers one command, and returns whether it could be processed."""
    work = steps(command, ask, say)
    while True:
        try:
            next(work)
        except StopIteration as end:
            return bool(end.value)


def steps(command: Command, ask: Ask, say: Say) -> Generator[None, None, bool]:
    """Performs one command as :func:`perform` does; yields between its calls, where those of others may come."""
    if not command.calls and command.skipped:
        return True
    try:
        for number, call in enumerate(command.calls):
            if number:
                yield
            if command.verb in ("DISPLAY", "RESET"):
                return (yield from _display(command, call, ask, say))
            while isinstance(reply := ask(call), Counted) and reply.more:
                # Clearing goes in slices; the call that found nothing left is the one that is done.
                yield
    except ConnectionBroken:
        raise
    except MQError as error:
        if command.ignores_missing and error.reason is Reason.UNKNOWN_OBJECT_NAME:
            say(reply_text.nothing_to_delete(command))
            return True
        _say_all(reply_text.refused(command, error), say)
        return False
    say(reply_text.done(command))
    _warn(command, ask, say)
    return True


def _warn(command: Command, ask: Ask, say: Say) -> None:
    """Prints warnings about a process behind the command that defines it."""
    for call in command.calls:
        if isinstance(call, Define | Alter) and call.object_type == "PROCESS":
            for row in all_rows(ask, Display(object_type="PROCESS", name=call.name)):
                for text in warnings(call.name, row):
                    _say_line(f"       : warning: {text}", say)


def _display(command: Command, call: Call, ask: Ask, say: Say) -> Generator[None, None, bool]:
    is_empty = True
    for page in _pages(call, ask):
        rows = [row for row in page.rows if _is_chosen(command, row)]
        is_empty = is_empty and not rows
        _say_all(reply_text.displayed(command, rows), say)
        if page.more:
            yield
    if is_empty and command.q_type == "HANDLE":
        # Nobody has the queue open: an answer, not a failure.
        say("AMQ8565W: Queue status not found.")
        return True
    if is_empty:
        _say_all(reply_text.missing(command), say)
    return not is_empty


def rows_of(command: Command, call: Call, ask: Ask) -> list[dict[str, Any]]:
    """Returns the rows that a DISPLAY or a RESET answers with. Raises what ``ask`` raises."""
    return [row for page in _pages(call, ask) for row in page.rows if _is_chosen(command, row)]


def _pages(call: Call, ask: Ask) -> Iterator[Listing]:
    """Yields the pages of a listing; what has no pages is one."""
    if isinstance(call, Paged):
        yield from pages(ask, call)
        return
    reply = ask(call)
    assert isinstance(reply, Listing | Values)
    yield reply if isinstance(reply, Listing) else Listing(rows=[reply.values])


def _is_chosen(command: Command, row: dict[str, Any]) -> bool:
    """Returns whether a row is of the type, the way of opening and the WHERE that a DISPLAY asks for."""
    if command.noun == "CONN" and not matches(connection_id(row), command.name):
        return False
    if command.noun != "QSTATUS" and command.q_type and row["object_type"] != command.q_type:
        return False
    if command.open_type == "INPUT" and row["input"] == "no":
        return False
    if command.open_type == "OUTPUT" and not row["output"]:
        return False
    if command.chosen and not set(command.chosen) <= fields(row).items():
        return False
    return command.where is None or command.where.fits(row, command.noun, command.q_type)


def _echo(command: Command, number: int, say: Say) -> None:
    for position, line in enumerate(command.source or (command.text,)):
        _say_line(f"{number:6d} : {line}" if position == 0 else f"       : {line}", say)


def _nothing(_: str) -> None:
    """Says nothing."""


def _say_all(lines: Iterable[str], say: Say) -> None:
    for line in lines:
        _say_line(line, say)


def _say_line(line: str, say: Say) -> None:
    """Says a line; what of the script is no text is shown escaped."""
    say(line.encode(errors="backslashreplace").decode())
