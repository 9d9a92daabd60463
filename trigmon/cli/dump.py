"""``trigmon dump`` and ``trigmon load``: messages with their descriptors, as JSON lines."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from typing import IO, TYPE_CHECKING, Any

import click

from trigmon.cli.command import command, invocation

if TYPE_CHECKING:
    from trigmon.client.connection import Connection
    from trigmon.client.message import Message
    from trigmon.client.queue import Queue
    from trigmon.mq.calls import Put
    from trigmon.mq.descriptors import MessageDescriptor

BATCH = 100
_BYTES = ("msg_id", "correl_id", "group_id", "accounting_token")


@command("dump", "trigmon dump ORDERS > orders.jsonl\ntrigmon dump ORDERS ORDERS.FAILED --remove > all.jsonl")
@click.argument("queues", metavar="QUEUE...", nargs=-1, required=True)
@click.option("--count", type=click.IntRange(min=1), help="At most so many messages of each queue.")
@click.option("--remove", is_flag=True, help="Take the messages off the queues; each batch once it is written.")
def dump(queues: tuple[str, ...], count: int | None, remove: bool) -> None:
    """Write messages to standard output, a JSON object a line: queue, all fields of the descriptor, data.

    trigmon load puts them again. Data that is UTF-8 stands in "data", other data in "data_base64"; ids are hexadecimal.
    Messages of a unit of work that has not ended are left out.
    """
    from trigmon.cli import output

    total = 0
    with invocation().connected() as qm:
        for name in queues:
            with qm.open(name, "input_shared" if remove else "browse") as source:
                taken = _taken(qm, source, count) if remove else islice(source.browse(), count)
                for message in taken:
                    click.echo(output.json_line(_line(name, message)))
                    total += 1
    output.note(f"{total} messages {'taken off' if remove else 'copied from'} {', '.join(queues)}")


@command("load", "trigmon load orders.jsonl\ntrigmon load orders.jsonl --queue ORDERS.TEST --skip 500")
@click.argument("file", type=click.File("rb"))
@click.option("--queue", "to_queue", metavar="QUEUE", help="Put all of them there, not on the queue that each names.")
@click.option("--skip", type=click.IntRange(0), default=0, metavar="N", help="Leave out the first N.")
def load(file: IO[bytes], to_queue: str | None, skip: int) -> None:
    """Put the messages of FILE, as trigmon dump wrote them, with their descriptors; - is standard input.

    Ids, times and users are those of the dump; the backout count begins at 0. They are put in batches, each a unit of
    work: after an error exactly the messages that it reports are put. Queues trigger as for any put.
    """
    from trigmon.cli import output

    count = 0
    lines = ((number, line) for number, line in enumerate(file, 1) if line.strip())
    with invocation().connected() as qm, ExitStack() as opened:
        handles: dict[str, Queue] = {}
        try:
            for batch in _batches(islice(lines, skip, None), to_queue):
                for name, _, _ in batch:
                    if name not in handles:
                        handles[name] = opened.enter_context(qm.open(name, "output", "set_all_context"))
                calls = (_put(qm, handles[name], descriptor, data) for name, descriptor, data in batch)
                for _ in qm.pipeline(calls, window=8):
                    pass
                qm.commit()
                count += len(batch)
        except BaseException as error:
            rest = f"--skip {skip + count} puts the rest"
            output.note_of_end(error, count, "messages are put and committed", rest)
            raise
    output.done(f"{count} messages put", {"messages": count})


def _taken(qm: Connection, source: Queue, count: int | None) -> Iterator[Message]:
    """Yields messages got in units of work, each of which is committed when all of its messages were written."""
    from trigmon.mq.errors import NoMsgAvailable

    left = sys.maxsize if count is None else count
    while left:
        try:
            messages = source.get_many(min(left, BATCH), syncpoint=True)
        except NoMsgAvailable:
            return
        yield from messages
        sys.stdout.flush()
        qm.commit()
        left -= len(messages)


def _line(queue: str, message: Message) -> dict[str, Any]:
    import base64

    import msgspec

    fields = msgspec.structs.asdict(message.descriptor)
    row: dict[str, Any] = {"q_name": queue}
    row["descriptor"] = {name: value.hex() if isinstance(value, bytes) else value for name, value in fields.items()}
    try:
        return row | {"data": message.data.decode()}
    except UnicodeDecodeError:
        return row | {"data_base64": base64.b64encode(message.data).decode()}


def _batches(
    lines: Iterator[tuple[int, bytes]], to_queue: str | None
) -> Iterator[list[tuple[str, MessageDescriptor, bytes]]]:
    while batch := [_read(number, line, to_queue) for number, line in islice(lines, BATCH)]:
        yield batch


def _read(number: int, line: bytes, to_queue: str | None) -> tuple[str, MessageDescriptor, bytes]:
    """Returns queue, descriptor and data of a line. Raises ClickException, which names the line."""
    import base64

    import msgspec

    from trigmon.mq.descriptors import MessageDescriptor

    try:
        row = msgspec.json.decode(line, type=dict[str, Any])
        name = to_queue or row["q_name"]
        fields = {key: bytes.fromhex(value) if key in _BYTES else value for key, value in row["descriptor"].items()}
        if unknown := fields.keys() - set(MessageDescriptor.__struct_fields__):
            raise ValueError(f"unknown field {min(unknown)} of the descriptor")
        default = msgspec.structs.asdict(MessageDescriptor())
        descriptor = msgspec.convert(list((default | fields | {"backout_count": 0}).values()), MessageDescriptor)
        data = row["data"].encode() if "data" in row else base64.b64decode(row["data_base64"], validate=True)
    except (msgspec.MsgspecError, ValueError, TypeError, AttributeError, KeyError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise click.ClickException(f"line {number} is not as trigmon dump writes it: {what}") from None
    return name, descriptor, data


def _put(qm: Connection, queue: Queue, descriptor: MessageDescriptor, data: bytes) -> Put:
    from trigmon.mq.calls import Put
    from trigmon.mq.enums import PutOption

    options = int(PutOption.SYNCPOINT | PutOption.SET_ALL_CONTEXT)
    return Put(handle=queue.handle, descriptor=descriptor, data=data, options=options, unit=qm.unit)
