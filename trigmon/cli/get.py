"""``trigmon get`` and ``trigmon browse``: prints messages, and takes them off the queue or leaves them."""

from __future__ import annotations

import sys
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from trigmon.cli.command import command, invocation, queue_argument

if TYPE_CHECKING:
    from trigmon.client.message import Message

BATCH = 100


@command(
    "get",
    "trigmon get ORDERS --wait 5\ntrigmon get ORDERS --all --output json\ntrigmon get PICTURES --raw > picture.png",
)
@queue_argument
@click.option("--wait", type=float, metavar="SECONDS", help="Wait so long for each message; negative: without limit.")
@click.option("--count", type=click.IntRange(min=1), default=1, show_default=True, help="At most so many messages.")
@click.option("--all", "everything", is_flag=True, help="Every message that is there.")
@click.option("--raw", is_flag=True, help="Exactly the bytes of each message, without a newline.")
@click.pass_context
def get(ctx: click.Context, queue: str, wait: float | None, count: int, everything: bool, raw: bool) -> None:
    """Take messages off QUEUE and print their data, one line for each message.

    A newline is added to the data of each message; --raw adds nothing. Each batch is committed after it was printed: a
    message that could not be printed is back on the queue. Exit 7 when --wait ran out without a message, 1 when the
    queue had none.
    """
    from trigmon.cli import output
    from trigmon.cli.errors import FAILED, TIMED_OUT
    from trigmon.mq.errors import NoMsgAvailable

    if raw and invocation().is_json:
        raise click.UsageError("--raw and --output json exclude each other; JSON has bytes in base64")
    wait_ms = None if wait is None else max(-1, round(wait * 1000))
    left = sys.maxsize if everything else count
    got = 0
    with invocation().connected() as qm, qm.open(queue, "input_shared") as source:
        while left:
            # A batch that waits would hold back the messages it already has.
            size = 1 if wait is not None else min(left, BATCH)
            try:
                messages = source.get_many(size, wait_interval_ms=wait_ms, syncpoint=True)
            except NoMsgAvailable:
                break
            for message in messages:
                _print(message, raw=raw)
            sys.stdout.flush()
            qm.commit()
            got += len(messages)
            left -= len(messages)
    if not got:
        ran_out = (
            f"no message came to {queue} within {wait:g} seconds" if wait is not None else f"{queue} has no message"
        )
        output.note(f"trigmon: {ran_out}")
        ctx.exit(FAILED if wait is None else TIMED_OUT)


@command("browse", "trigmon browse ORDERS --count 10")
@queue_argument
@click.option("--count", type=click.IntRange(min=1), help="At most so many messages.")
def browse(queue: str, count: int | None) -> None:
    """Look at the messages of QUEUE in the order they would be got, leaving them there."""
    from trigmon.cli import output

    columns = ["msg_id", "put_time", "priority", "persistence", "backout_count", "length", "data"]
    with invocation().connected() as qm, qm.open(queue, "browse") as source:
        messages = islice(source.browse(), count)
        if invocation().is_json:
            shown = output.listing((_shown(message) for message in messages), columns)
        else:
            shown = output.listing((_shown(message) | {"data": _preview(message)} for message in messages), columns)
    if not shown:
        output.note(f"{queue} has no message that can be seen now")


def _print(message: Message, *, raw: bool) -> None:
    """Prints one message: its bytes, with a newline unless ``raw``, or a JSON object."""
    from trigmon.cli import output

    if invocation().is_json:
        click.echo(output.json_line(output.presentable(_shown(message))))
    else:
        click.echo(message.data if raw else message.data + b"\n", nl=False)


def _shown(message: Message) -> dict[str, Any]:
    """Returns a message as JSON shows it: fields of its descriptor, and the data as text or in base64."""
    import base64

    from trigmon.mq.enums import MsgType, word

    kind = message.msg_type
    row: dict[str, Any] = {
        "msg_id": message.msg_id,
        "correl_id": message.correl_id,
        "put_ms": message.put_ms,
        "priority": message.priority,
        "persistence": word(message.persistence),
        "msg_type": word(MsgType(kind)) if kind in MsgType._value2member_map_ else kind,
        "format": message.format,
        "expiry_s": None if message.expiry < 0 else message.expiry / 10,
        "backout_count": message.backout_count,
        "reply_to_q": message.reply_to_q,
        "reply_to_q_mgr": message.reply_to_q_mgr,
        "user_identifier": message.user_identifier,
        "put_appl_name": message.put_appl_name,
        "length": message.data_length,
    }
    if described := _structure(message):
        row |= described
    try:
        return row | {"data": message.data.decode()}
    except UnicodeDecodeError:
        return row | {"data_base64": base64.b64encode(message.data).decode()}


def _structure(message: Message) -> dict[str, Any]:
    """Returns the fields of a structure of the queue manager: a trigger message, a dead-letter header, a rejection."""
    import msgspec

    from trigmon.mq import descriptors
    from trigmon.mq.errors import MQError

    if (rejection := message.rejection) is not None:
        return {"rejection": msgspec.structs.asdict(rejection)}
    try:
        if message.format == descriptors.FORMAT_TRIGGER:
            return {"trigger_message": msgspec.structs.asdict(descriptors.unpack_tm(message.data))}
        if message.format == descriptors.FORMAT_DEAD_LETTER:
            return {"dead_letter": msgspec.structs.asdict(descriptors.unpack_dlh(message.data, message.encoding)[0])}
    except MQError:
        # The data does not have the format that the descriptor names; it is shown as it is.
        return {}
    return {}


def _preview(message: Message) -> str:
    """Returns the beginning of the data in one line of a table."""
    from trigmon.cli.output import printable

    structure = _structure(message)
    if tm := structure.get("trigger_message"):
        return f"trigger message: {tm['q_name']} starts {tm['process_name'] or '(no process)'}"
    if dlh := structure.get("dead_letter"):
        return f"dead letter: reason {dlh['reason']}, meant for {dlh['dest_q_name']}"
    if rejection := structure.get("rejection"):
        return f"rejected from {rejection['q_name']}: {rejection['why']}"
    shown = printable(message.data[:240].decode(errors="replace"))
    return shown[:60] + ("…" if len(shown) > 60 else "")
