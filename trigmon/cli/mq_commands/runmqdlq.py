"""``runmqdlq``: applies a rules table to the dead-letter queue, each message in a unit of work of its own."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from trigmon.cli.mq_commands.dlq_rules import DEST_Q, REPLY_Q, Rule, RulesTable, RulesTableError, read_table
from trigmon.cli.mq_commands.mq_options import connected, read
from trigmon.mq.calls import Put
from trigmon.mq.descriptors import FORMAT_DEAD_LETTER, DeadLetterHeader, MessageDescriptor, unpack_dlh
from trigmon.mq.enums import PutOption
from trigmon.mq.errors import (
    DlhError,
    MQError,
    NoMsgAvailable,
    NoMsgUnderCursor,
    UnknownObjectName,
    UnknownRemoteQMgr,
)

if TYPE_CHECKING:
    from trigmon.client.connection import Connection
    from trigmon.client.message import Message
    from trigmon.client.queue import Queue

DONE, COULD_NOT_RUN = 0, 20
LOOK_S = 10.0
"""How long one wait for a new message lasts: one of a higher priority lies before the cursor of the browse."""


def runmqdlq(arguments: Sequence[str]) -> int:
    """Runs the handler until its table says that it ends; 0, or 20 where it could not run. Raises MqUsageError."""
    given = read(arguments, "c", words=2)
    try:
        table = read_table(sys.stdin)
    except RulesTableError as error:
        click.echo(f"runmqdlq: {error}", err=True)
        return COULD_NOT_RUN
    try:
        with connected(given.word(1).strip() or table.input_q_mgr, "runmqdlq") as qm:
            q_name = given.word(0).strip() or table.input_q or _dead_letter_q(qm)
            with qm.open(q_name, "browse", "input_shared") as queue:
                click.echo(f"AMQ8708I: Dead-letter queue handler started to process INPUTQ({q_name}).")
                Handler(qm, queue, table).run()
    except MQError as error:
        from trigmon.console.error_text import sentence

        click.echo(f"runmqdlq: {sentence(error)}", err=True)
        return COULD_NOT_RUN
    click.echo("AMQ8709I: Dead-letter queue handler ending.")
    return DONE


def _dead_letter_q(qm: Connection) -> str:
    from trigmon.cli.objects import rows

    name = str(next(iter(rows(qm, "QMGR")))["dead_letter_q_name"])
    if not name:
        raise UnknownObjectName("DEADQ( ): the queue manager names no dead-letter queue")
    return name


class Handler:
    """What has been tried of which message, and the passes over the queue.

    ``tried`` counts attempts by message and rule for as long as the message is there, ``due`` is when a message whose
    attempt failed is tried again, by the monotonic clock.
    """

    def __init__(self, qm: Connection, queue: Queue, table: RulesTable) -> None:
        self.qm = qm
        self.queue = queue
        self.table = table
        self.tried: Counter[tuple[bytes, int]] = Counter()
        self.due: dict[bytes, float] = {}
        self.not_dead: set[bytes] = set()

    def run(self) -> None:
        """Passes over the queue until nothing is left to try and no new message came in time."""
        idle_since = time.monotonic()
        while True:
            done = self._pass()
            now = time.monotonic()
            idle_since = now if done or self.due else idle_since
            if self.due:
                self._wait(min(self.due.values()) - now)
                continue
            left_s = LOOK_S if self.table.wait_s is None else idle_since + self.table.wait_s - now
            if left_s <= 0:
                return
            if self._wait(min(LOOK_S, left_s)):
                idle_since = time.monotonic()

    def _wait(self, seconds: float) -> bool:
        """Waits for a message behind the last one that was seen, and returns whether one came."""
        sys.stdout.flush()
        try:
            self.queue.get(browse_next=True, wait_interval_ms=max(1, round(seconds * 1000)))
        except NoMsgAvailable:
            return False
        return True

    def _pass(self) -> int:
        """Looks at each message once and returns how many left the queue."""
        done = 0
        seen = set()
        for message in self.queue.browse():
            seen.add(message.msg_id)
            header, data = self._parted(message)
            if header is None or self.due.get(message.msg_id, 0.0) > time.monotonic():
                continue
            self.due.pop(message.msg_id, None)
            while (rule := self._rule_of(message, header)) is not None:
                if self._applied(rule, message, header, data):
                    self._forget(message)
                    done += 1
                    break
                if self.tried[message.msg_id, rule.line] < rule.attempts:
                    self.due[message.msg_id] = time.monotonic() + self.table.retry_interval_s
                    break
        # One that somebody else took is not waited for.
        self.due = {msg_id: at for msg_id, at in self.due.items() if msg_id in seen}
        return done

    def _forget(self, message: Message) -> None:
        for rule in self.table.rules:
            self.tried.pop((message.msg_id, rule.line), None)

    def _parted(self, message: Message) -> tuple[DeadLetterHeader | None, bytes]:
        """Returns the header and what lies behind it; one without a header is named once and stays."""
        try:
            if message.format != FORMAT_DEAD_LETTER:
                raise DlhError(message.format)
            return unpack_dlh(message.data, message.encoding)
        except DlhError:
            if message.msg_id not in self.not_dead:
                self.not_dead.add(message.msg_id)
                click.echo("AMQ8721W: Dead-letter queue message not prefixed by a valid MQDLH.")
            return None, b""

    def _rule_of(self, message: Message, header: DeadLetterHeader) -> Rule | None:
        """Returns the first rule that fits and has an attempt left; None where the message is to stay."""
        described = message.descriptor
        for rule in self.table.rules:
            if rule.fits(described, header) and self.tried[message.msg_id, rule.line] < rule.attempts:
                return None if rule.action == "IGNORE" else rule
        return None

    def _applied(self, rule: Rule, message: Message, header: DeadLetterHeader, data: bytes) -> bool:
        """Performs the action of a rule, whole or not at all, and returns whether it is done."""
        self.tried[message.msg_id, rule.line] += 1
        try:
            if rule.action != "DISCARD":
                self._put(rule, message, header, data)
            self.queue.get(msg_under_cursor=True, syncpoint=True)
            self.qm.commit()
        except (NoMsgUnderCursor, NoMsgAvailable):
            # Somebody else has taken it.
            self.qm.backout()
            return True
        except MQError as error:
            self.qm.backout()
            click.echo(f"runmqdlq: {message.msg_id.hex().upper()}: rule of line {rule.line}, {rule.action}: {error}")
            return False
        return True

    def _put(self, rule: Rule, message: Message, header: DeadLetterHeader, data: bytes) -> None:
        descriptor = replace(message.descriptor, backout_count=0)
        q_name, q_mgr_name = _target(rule, descriptor, header)
        if q_mgr_name not in ("", self.qm.q_mgr_name):
            raise UnknownRemoteQMgr(f"{q_name} of {q_mgr_name}")
        if rule.action == "FWD" and rule.keeps_header:
            data = message.data
        else:
            described = {"format": header.format, "encoding": header.encoding}
            descriptor = replace(descriptor, coded_char_set_id=header.coded_char_set_id, **described)
        options = int(PutOption.SYNCPOINT | PutOption.SET_ALL_CONTEXT)
        self.qm.call(Put(q_name=q_name, descriptor=descriptor, data=data, options=options, unit=self.qm.unit))


def _target(rule: Rule, descriptor: MessageDescriptor, header: DeadLetterHeader) -> tuple[str, str]:
    """Returns the names of the queue and the queue manager that the message goes to."""
    if rule.action == "RETRY":
        return header.dest_q_name, header.dest_q_mgr_name
    q_names = {DEST_Q: header.dest_q_name, REPLY_Q: descriptor.reply_to_q}
    q_mgr_names = {f"{DEST_Q}M": header.dest_q_mgr_name, f"{REPLY_Q}M": descriptor.reply_to_q_mgr}
    q_mgr_name = q_mgr_names.get(rule.to_q_mgr_name.upper(), rule.to_q_mgr_name)
    return q_names.get(rule.to_q_name.upper(), rule.to_q_name), q_mgr_name
