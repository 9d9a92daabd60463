"""``trigmon put``: puts one message, or one for each line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

import click

from trigmon.cli.command import command, invocation, queue_argument

if TYPE_CHECKING:
    from trigmon.client.connection import Connection

BATCH_MESSAGES = 500
BATCH_BYTES = 1 << 20


@command(
    "put",
    "trigmon put ORDERS 'one order' --priority 7\ntrigmon put FLIGHTS.IN --lines flights.jsonl\ndate | trigmon put LOG",
)
@queue_argument
@click.argument("text", required=False)
@click.option(
    "--file", "file", type=click.File("rb"), help="One message: the bytes of this file (- is standard input)."
)
@click.option(
    "--lines", type=click.File("rb"), help="One message for each line of this file; empty lines are left out."
)
@click.option("--skip", type=click.IntRange(0), default=0, metavar="N", help="With --lines: leave out the first N.")
@click.option("--priority", type=click.IntRange(0, 9), help="0 to 9 (default: the queue's).")
@click.option(
    "--persistent/--not-persistent", default=None, help="Whether it survives a restart (default: the queue's)."
)
@click.option("--expiry", type=click.FloatRange(min=0.1), metavar="SECONDS", help="Its expiry: how long it may be got.")
@click.option("--correl-id", metavar="TEXT", help="Its correlation id, up to 24 bytes.")
@click.option("--format", "format_", metavar="NAME", help="Its format (default: MQSTR for text).")
def put(
    queue: str, text: str | None, file: IO[bytes] | None, lines: IO[bytes] | None, skip: int, **fields: Any
) -> None:
    """Put TEXT on QUEUE, or a file, or one message for each line; with none of them, standard input.

    Lines are put in batches, each a unit of work: after an error exactly the messages that it reports are put.
    """
    if sum(source is not None for source in (text, file, lines)) > 1:
        raise click.UsageError("TEXT, --file and --lines exclude each other")
    if skip and lines is None:
        raise click.UsageError("--skip goes with --lines")
    words = _words(**fields)
    with invocation().connected() as qm:
        if lines is not None:
            _put_lines(qm, queue, lines, skip, words)
        else:
            _put_one(qm, queue, _body(text, file), words)


def _words(
    priority: int | None, persistent: bool | None, expiry: float | None, correl_id: str | None, format_: str | None
) -> dict[str, Any]:
    fields = {
        "priority": priority,
        "persistence": None if persistent is None else ("persistent" if persistent else "not_persistent"),
        "expiry_tenths": None if expiry is None else max(1, round(expiry * 10)),
        "correl_id": correl_id,
        "format": format_,
    }
    return {word: value for word, value in fields.items() if value is not None}


def _body(text: str | None, file: IO[bytes] | None) -> str | bytes:
    if text is not None:
        return text
    if file is None:
        if sys.stdin.isatty():
            raise click.UsageError("nothing to put: give TEXT, --file or --lines")
        file = sys.stdin.buffer
        if not (body := file.read()):
            raise click.UsageError("standard input is empty: nothing is put; '' as TEXT puts an empty message")
        return body
    return file.read()


def _put_one(qm: Connection, queue: str, body: str | bytes, words: dict[str, Any]) -> None:
    from trigmon.cli import output
    from trigmon.mq.reasons import Reason

    receipt = qm.put(queue, body, **words)
    if receipt.warning is not Reason.NONE:
        output.note(f"trigmon: warning {receipt.warning.mq_name} ({int(receipt.warning)})")
    shown = {
        "q_name": queue,
        "messages": 1,
        "msg_id": receipt.msg_id,
        "priority": receipt.priority,
        "persistence": receipt.persistence.name.lower(),
        "put_ms": receipt.put_ms,
    }
    output.done(f"1 message put on {queue}, id {receipt.msg_id.hex()}", shown)


def _put_lines(qm: Connection, queue: str, lines: IO[bytes], skip: int, words: dict[str, Any]) -> None:
    from trigmon.cli import output

    count = 0
    size = _size(lines)
    hidden = not size or not sys.stderr.isatty()
    try:
        with click.progressbar(length=size, label=f"putting on {queue}", file=sys.stderr, hidden=hidden) as bar:
            for read, batch in _batches(lines, skip):
                qm.put_many(queue, batch, syncpoint=True, **words)
                qm.commit()
                count += len(batch)
                bar.update(read)
    except BaseException as error:
        rest = f"--skip {skip + count} puts the rest"
        output.note_of_end(error, count, f"messages are put on {queue} and committed", rest)
        raise
    output.done(f"{count} messages put on {queue}", {"q_name": queue, "messages": count})


def _batches(lines: IO[bytes], skip: int) -> Iterator[tuple[int, list[str | bytes]]]:
    """Yields the bytes read and the messages of each batch; a batch ends at a number of messages or of bytes.

    The first ``skip`` messages are left out.
    """
    batch: list[str | bytes] = []
    read = 0
    for line in lines:
        read += len(line)
        body = line.rstrip(b"\n").removesuffix(b"\r")
        if body and skip:
            skip -= 1
        elif body:
            batch.append(_text_or_bytes(body))
        if len(batch) == BATCH_MESSAGES or read >= BATCH_BYTES:
            yield read, batch
            batch, read = [], 0
    if batch or read:
        yield read, batch


def _text_or_bytes(body: bytes) -> str | bytes:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return body


def _size(lines: IO[bytes]) -> int:
    """Returns the file's length in bytes, 0 for a pipe."""
    import os
    import stat

    try:
        found = os.fstat(lines.fileno())
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0
