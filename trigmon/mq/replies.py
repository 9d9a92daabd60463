"""What the queue manager answers: one struct a kind of reply, each naming what its fields are.

They are values like the calls (:mod:`trigmon.mq.calls`), and travel the same road back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from trigmon.mq.descriptors import NO_ID, MessageDescriptor
from trigmon.mq.enums import UnitOutcome
from trigmon.mq.explanation import Explanation, Looked, moment, not_holding
from trigmon.mq.reasons import Reason
from trigmon.mq.run import RunJson

_NO_MESSAGE = Reason.NO_MSG_AVAILABLE.value


class Reply(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """What it gets. ``warning`` is a reason number, 0 when the call simply completed."""

    warning: int = 0


class Done(Reply, frozen=True, array_like=True, kw_only=True, tag="done"):
    """It is done."""


class Recorded(Reply, frozen=True, array_like=True, kw_only=True, tag="recorded"):
    """How a run stands in the ledger now: its state, and why.

    ``process`` is the definition as it is recorded with a new run: what differs from the defaults, by long names;
    None where no such process is defined.
    """

    state: str
    why: str = ""
    process: dict[str, Any] | None = None


class WereRecorded(Reply, frozen=True, array_like=True, kw_only=True, tag="were_recorded"):
    """How new runs stand in the ledger, in the order of their records."""

    runs: list[Recorded]


class ToStart(Reply, frozen=True, array_like=True, kw_only=True, tag="to_start"):
    """Records of runs that are due now; so many more are ``waiting``.

    ``again_ms`` is when a pause of theirs is over, 0 for none; ``now_ms`` is now: by the clock of the queue manager.
    """

    records: list[RunJson]
    waiting: int = 0
    again_ms: int = 0
    now_ms: int = 0


class Opened(Reply, frozen=True, array_like=True, kw_only=True, tag="opened"):
    """The handle, and the local queue's own name: behind an alias, of a queue just made, of a transmission queue."""

    handle: int
    q_name: str = ""


class WasPut(Reply, frozen=True, array_like=True, kw_only=True, tag="was_put"):
    """The ids the message was put with, its resolved priority and persistence, and its place in its group."""

    msg_id: bytes
    correl_id: bytes = NO_ID
    priority: int = 0
    persistence: int = 0
    put_ms: int = 0
    group_id: bytes = NO_ID
    msg_seq_number: int = 1
    offset: int = 0


class WerePut(Reply, frozen=True, array_like=True, kw_only=True, tag="were_put"):
    """The message ids of a PutMany, in order."""

    msg_ids: list[bytes]


class WasGot(Reply, frozen=True, array_like=True, kw_only=True, tag="was_got"):
    """A message. ``data_length`` is its full length in bytes, also where ``data`` was cut."""

    descriptor: MessageDescriptor
    data: bytes
    data_length: int
    group_status: str = " "
    segment_status: str = " "


class WereGot(Reply, frozen=True, array_like=True, kw_only=True, tag="were_got"):
    """The messages of a GetMany, in order; never none (that is 2033), unless they have become ``runs``.

    ``runs`` are the records of the runs, as they stand in the ledger now.
    """

    messages: list[WasGot]
    runs: list[RunJson] = []


class WereBrowsed(Reply, frozen=True, array_like=True, kw_only=True, tag="were_browsed"):
    """The messages of a BrowseMany, in order, perhaps none; what follows begins behind the place ``after``."""

    messages: list[WasGot]
    after: list[int]


class BrowsePlanned(Reply, frozen=True, array_like=True, kw_only=True, tag="browse_planned"):
    """A place to divide a browse at, about ``skipped`` messages further on; none for an end that comes before.

    None either where the queue has groups: they are not divided. ``newest`` is what BrowseMany takes for the messages
    that were put so far. ``depth`` is CURDEPTH.
    """

    newest: int
    depth: int = 0
    skipped: int = 0
    after: list[int] = []


class Values(Reply, frozen=True, array_like=True, kw_only=True, tag="values"):
    """Attribute values by long name, plain (enumerations as words)."""

    values: dict[str, Any]


class Listing(Reply, frozen=True, array_like=True, kw_only=True, tag="listing"):
    """Rows of values by long name, plain. ``more``: there are further rows behind the last."""

    rows: list[dict[str, Any]]
    more: bool = False


class Counted(Reply, frozen=True, array_like=True, kw_only=True, tag="counted"):
    """How many messages it was. ``more``: the slice ended before the work did."""

    count: int
    more: bool = False


class BackupBegun(Reply, frozen=True, array_like=True, kw_only=True, tag="backup_begun"):
    """The store's file is held: its ``size`` in bytes, and the queue manager's own time when it began."""

    size: int
    made_ms: int


class BackupPart(Reply, frozen=True, array_like=True, kw_only=True, tag="backup_part"):
    """Bytes of the held file."""

    data: bytes


class Sifted(Reply, frozen=True, array_like=True, kw_only=True, tag="sifted"):
    """A slice of a queue, looked through: ``count`` of its ``looked_at`` messages were listed, returned or deleted.

    ``refused`` tells of those that could not be returned: reason, reason_name, to_q_name, about, count. While there is
    ``more``, the same call goes on behind ``after``. ``depth`` is CURDEPTH before this slice.
    """

    q_name: str
    count: int
    rows: list[dict[str, Any]] = []
    refused: list[dict[str, Any]] = []
    looked_at: int = 0
    depth: int = 0
    after: list[int] = []
    more: bool = False


class Reserved(Reply, frozen=True, array_like=True, kw_only=True, tag="reserved"):
    """A reservation: ``count`` messages with the ordinals below it, ``size`` bytes in all, of which ``left`` are left.

    ``left_ordinals`` are the stretches of those, each the first and the one behind the last. ``again``: it was there
    already; ``offers`` is how often it was offered anew. ``more``: it is still being made. ``deaths`` are stretches
    that holders worked on alone when they were gone, each with how often; ``settled`` is how many were settled.
    """

    reservation: int
    count: int = 0
    size: int = 0
    left: int = 0
    left_ordinals: list[list[int]] = []
    token: str = ""
    again: bool = False
    offers: int = 0
    more: bool = False
    deaths: list[list[int]] = []
    settled: int = 0


class WereReserved(Reply, frozen=True, array_like=True, kw_only=True, tag="were_reserved"):
    """Messages of a reservation, each with its ordinal. The rest of what was asked for begins at ``ordinal``."""

    ordinals: list[int]
    messages: list[WasGot]
    ordinal: int = 0
    more: bool = False


class ReservedRows(Reply, frozen=True, array_like=True, kw_only=True, tag="reserved_rows"):
    """The same messages in buffers, for who makes columns of them (:mod:`trigmon.mq.packed_messages`).

    ``descriptors`` is one array of all descriptors, in msgpack, ``data`` the data of all, one behind the other, and
    ``lengths`` the bytes of each. What is not looked at need not be decoded.
    """

    ordinals: list[int]
    descriptors: bytes
    lengths: list[int]
    data: bytes
    ordinal: int = 0
    more: bool = False


class Settled(Reply, frozen=True, array_like=True, kw_only=True, tag="settled"):
    """How many messages were settled, or given back, and how many are left. ``already``: nothing was to be done."""

    count: int
    left: int = 0
    already: bool = False


class TicketIssued(Reply, frozen=True, array_like=True, kw_only=True, tag="ticket_issued"):
    """A reservation's ticket for the hello of a task, and until when it holds, in milliseconds since 1970."""

    ticket: str
    until_ms: int = 0

    def __repr__(self) -> str:
        """Returns the reply without the ticket, for logs and tracebacks."""
        return f"TicketIssued(until_ms={self.until_ms})"


class OutcomeWas(Reply, frozen=True, array_like=True, kw_only=True, tag="outcome_was"):
    """What became of the unit of work."""

    outcome: UnitOutcome


class Explained(Reply, frozen=True, array_like=True, kw_only=True, tag="explained"):
    """A verdict: whether a put would fire, by which occasion, which conditions fail, and each with its evidence.

    ``last`` are the verdicts of what has happened, newest first, where they were asked for.
    """

    q_name: str
    fires: bool
    occasion: str
    fails: list[str]
    conditions: list[Explanation]
    values: dict[str, Any] = {}
    last: list[Looked] = []

    def __str__(self) -> str:
        """Returns the verdict as text: what would happen, what counts, each condition with what was seen and is needed.

        What was asked for with ``why_not`` stands before it.
        """
        before = [*self.looks(), ""] if "started_ms" in self.values else []
        conditions = (line for condition in self.conditions for line in condition.lines())
        beside = (*self.paused(), *self.idle())
        return "\n".join((*before, self.headline, *beside, "", *self.counts(), "", *conditions))

    def looks(self) -> Iterator[str]:
        """Yields the last verdicts as text."""
        if not self.last:
            yield f"Nothing has happened to {self.q_name} since {moment(self.values.get('started_ms', 0))} (start)."
        for look in self.last:
            yield from look.lines()

    def paused(self) -> Iterator[str]:
        """Yields what would keep a program from being started, a line each: no condition, and beside the verdict."""
        for pause in self.values.get("pauses", ()):
            yield f"What it starts would be held: {pause['paused']}."

    def idle(self) -> Iterator[str]:
        """Yields that the queue's last run took nothing, where that is known, and what helps, a line each."""
        for number, line in enumerate(self.values.get("idle", ())):
            yield f"{'':6}remedy: {line}" if number else line

    def counts(self) -> Iterator[str]:
        """Yields the numbers that are easily taken for one another, a line each."""
        capped = bool(self.values.get("expired_is_capped"))
        least, most = ("at least ", "at most ") if capped else ("", "")
        value = self.values.get
        yield f"{most}{value('available_msgs', '?')} available: committed, not got, not expired"
        yield f"{value('uncommitted_puts', '?')} put and not yet committed"
        yield f"{value('uncommitted_gets', '?')} got and not yet committed, which no longer count"
        for reservation in value("reservations", ()):
            yield str(reservation["summary"])
        yield f"{least}{value('expired_msgs', '?')} expired and not yet discarded"
        count, lowest = value("qualifying_depth", "?"), value("trigger_msg_priority", "?")
        among = "the expired" if "group" in self.values else "those not yet committed and the expired"
        yield f"{count} count for the trigger: priority {lowest} or more, {among} among them"
        for reader in value("readers", ()):
            how = "exclusively" if reader["exclusive"] else f"for input, IPPROCS({reader['open_input_count']}) there"
            yield f"{reader['q_mgr_name']} of the group has it open {how}"

    @property
    def headline(self) -> str:
        """What would happen, in one sentence."""
        put = f"A put on {self.q_name} with priority {self.values.get('priority', '?')} would"
        if self.fires:
            return f"{put} write a trigger message (by condition {self.occasion})."
        if missing := self.values.get("not_seen"):
            return f"{put} or would not write a trigger message: {' and '.join(missing)} could not be seen."
        return f"{put} NOT write a trigger message: {not_holding(self.fails)}."


class Refused(Reply, frozen=True, array_like=True, kw_only=True, tag="refused"):
    """The call failed and changed nothing."""

    reason: int
    about: str = ""

    @property
    def may_wait(self) -> bool:
        """Whether there is no message: a waiting get does not give this answer yet."""
        return self.reason == _NO_MESSAGE


AnyReply = (
    Done
    | Recorded
    | WereRecorded
    | ToStart
    | Opened
    | WasPut
    | WerePut
    | WasGot
    | WereGot
    | WereBrowsed
    | BrowsePlanned
    | Values
    | Listing
    | Counted
    | BackupBegun
    | BackupPart
    | Sifted
    | Reserved
    | WereReserved
    | ReservedRows
    | Settled
    | TicketIssued
    | OutcomeWas
    | Explained
    | Refused
)
