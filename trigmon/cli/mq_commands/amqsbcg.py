"""``amqsbcg``: prints the messages of a queue with every field of their descriptors, and the data in hexadecimal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from trigmon.cli.mq_commands import sample_program
from trigmon.cli.mq_commands.mq_options import MqUsageError
from trigmon.cli.mq_commands.sample_program import FailedCallError
from trigmon.mq.errors import MQError

if TYPE_CHECKING:
    from trigmon.client.connection import Connection
    from trigmon.client.message import Message
    from trigmon.mq.descriptors import MessageDescriptor

LINE_BYTES, HEX_COLUMN = 16, 50
TOKEN_BYTES = 32


def amqsbcg(arguments: Sequence[str]) -> int:
    """Browses a queue; 0, or the reason of a failed call modulo 256. Raises MqUsageError."""
    given = list(arguments)
    if len(given) == 3 and (properties := given.pop()) != "0":
        raise MqUsageError(f"properties are shown in the message data (0), not otherwise ({properties})")
    click.echo("\nAMQSBCG0 - starts here\n**********************\n ")
    try:
        q_name, q_mgr_name = sample_program.names(given)
        with sample_program.connection(q_mgr_name, "amqsbcg") as qm:
            return _browse(qm, q_name)
    except FailedCallError as failed:
        return failed.status


def _browse(qm: Connection, q_name: str) -> int:
    click.echo(f" MQOPEN - '{q_name}'\n ")
    try:
        queue = qm.open(q_name, "browse")
    except MQError as error:
        click.echo(f" MQOPEN failed with CompCode:2, Reason:{int(error.reason)}")
        return sample_program.status_of(error)
    try:
        for number, message in enumerate(queue.browse(), 1):
            click.echo(f" \n MQGET of message number {number}, CompCode:0 Reason:0")
            for line in _described(message.descriptor):
                click.echo(line)
            click.echo(f"\n****   Message      ****\n\n length - {len(message.data)} of {message.data_length} bytes\n")
            for line in _dumped(message):
                click.echo(line)
            click.echo(" \n ")
    except MQError as error:
        click.echo(f" MQGET failed with CompCode:2, Reason:{int(error.reason)}")
        return sample_program.status_of(error)
    click.echo(" \n No more messages \n MQCLOSE\n MQDISC")
    return 0


def _described(of: MessageDescriptor) -> Iterator[str]:
    """Yields the fields in MQMD's order; characters are padded to the length of their field."""
    put = datetime.fromtimestamp(of.put_ms / 1000, UTC)
    token = of.accounting_token.ljust(TOKEN_BYTES, b"\0").hex().upper()
    yield from ("****Message descriptor****", "")
    yield "  StrucId  : 'MD  '  Version : 2"
    yield f"  Report   : {of.report}  MsgType : {of.msg_type}"
    yield f"  Expiry   : {of.expiry}  Feedback : {of.feedback}"
    yield f"  Encoding : {of.encoding}  CodedCharSetId : {of.coded_char_set_id}"
    yield f"  Format : '{of.format:<8}'"
    yield f"  Priority : {of.priority}  Persistence : {of.persistence}"
    yield f"  MsgId : X'{of.msg_id.hex().upper()}'"
    yield f"  CorrelId : X'{of.correl_id.hex().upper()}'"
    yield f"  BackoutCount : {of.backout_count}"
    yield f"  ReplyToQ       : '{of.reply_to_q:<48}'"
    yield f"  ReplyToQMgr    : '{of.reply_to_q_mgr:<48}'"
    yield "  ** Identity Context"
    yield f"  UserIdentifier : '{of.user_identifier:<12}'"
    yield from ("  AccountingToken : ", f"   X'{token}'")
    yield f"  ApplIdentityData : '{of.appl_identity_data:<32}'"
    yield "  ** Origin Context"
    yield f"  PutApplType    : '{of.put_appl_type}'"
    yield f"  PutApplName    : '{of.put_appl_name:<28}'"
    yield f"  PutDate  : '{put:%Y%m%d}'    PutTime  : '{put:%H%M%S}{put.microsecond // 10_000:02d}'"
    yield from (f"  ApplOriginData : '{of.appl_origin_data:<4}'", "")
    yield f"  GroupId : X'{of.group_id.hex().upper()}'"
    yield f"  MsgSeqNumber   : '{of.msg_seq_number}'"
    yield f"  Offset         : '{of.offset}'"
    yield f"  MsgFlags       : '{of.msg_flags}'"
    yield f"  OriginalLength : '{of.original_length}'"


def _dumped(message: Message) -> Iterator[str]:
    """Yields the data, 16 bytes a line: hexadecimal in pairs, and what ASCII has a character for."""
    for at in range(0, len(message.data), LINE_BYTES):
        part = message.data[at : at + LINE_BYTES]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        yield f"{at:08X}:  {part.hex(' ', -2).upper():<{HEX_COLUMN}}'{text:<{LINE_BYTES}}'"
