"""Ways in which trigmon could break its promise, planted at run time: each must be caught by a proof."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import pytest

from trigmon.journal import journal
from trigmon.mq.calls import Call
from trigmon.mq.replies import Reply
from trigmon.qmgr.manager import Answer, QueueManager
from trigmon.qmgr.sessions import Session
from trigmon.rules.messages import reports
from trigmon.rules.model.changes import CarryOver
from trigmon.rules.model.reservation_changes import ReserveMessages, SetReservation
from trigmon.rules.reservations import end_reservation
from trigmon.server.memory_budget import CallQueue
from trigmon.store.sql import row_writes, statements
from trigmon.store.sqlite import connection
from trigmon.store.sqlite.durable_turns import DurableTurns
from trigmon.store.sqlite.kept_gets import KeptGets
from trigmon.store.sqlite.store import SqliteStore
from trigmon.store.sqlite.turn_log import TurnLog, VfsJournalFile

Patches = pytest.MonkeyPatch


def _synchronous_off(patches: Patches) -> None:
    """SQLite syncs neither the log before it moves pages into the file, nor the file before the log is used again."""
    pragmas = [("synchronous", "OFF", 0) if p[0] == "synchronous" else p for p in connection.PRAGMAS]
    patches.setattr(connection, "PRAGMAS", tuple(pragmas))


def _log_without_sync(patches: Patches) -> None:
    """The journal is used again before the database is durable."""

    def sync(self: TurnLog) -> None:
        self.synced_pages = self.pages

    patches.setattr(TurnLog, "sync", sync)


def _journal_without_sync(patches: Patches) -> None:
    """A turn is answered when its record is written, and not when it is durable."""
    patches.setattr(VfsJournalFile, "sync", lambda self: None)


def _empty_before_the_sync(patches: Patches) -> None:
    """A start empties the journal when all of it is in the database, which is not durable yet."""
    right = DurableTurns.end_replay

    def end_replay(self: DurableTurns, number: int, highest: int) -> None:
        right(self, number, highest)
        self.journal.clear()

    patches.setattr(DurableTurns, "end_replay", end_replay)


def _take_torn_records(patches: Patches) -> None:
    """A start applies a record of which a power cut has kept the head, and not all of the changes."""
    patches.setattr(journal, "_is_whole", lambda entries, salt, checksum: True)


def _no_gets_with_a_commit(patches: Patches) -> None:
    """The database is committed, and the journal used again, without what gets have changed."""
    patches.setattr(KeptGets, "write_all", lambda self: None)


def _answer_before_commit(patches: Patches) -> None:
    """The end of a turn is put off until the next begins: an early acknowledgement."""
    right_begin, right_end = SqliteStore.begin, SqliteStore.end
    owed: set[SqliteStore] = set()

    def begin(self: SqliteStore) -> None:
        if self in owed:
            owed.discard(self)
            right_end(self)
        right_begin(self)

    def end(self: SqliteStore) -> None:
        self.turns.end_call()
        owed.add(self)

    patches.setattr(SqliteStore, "begin", begin)
    patches.setattr(SqliteStore, "end", end)


def _tell_before_commit(patches: Patches) -> None:
    """What a turn tells the outside is told while it goes on."""
    right = QueueManager.answer

    def answer(self: QueueManager, session: Session, call: Call, now: int) -> Reply:
        reply = right(self, session, call, now)
        events, self._notes.events = self._notes.events, []
        for event in events:
            self._telling.tell(event)
        return reply

    patches.setattr(QueueManager, "answer", answer)


def _wake_before_commit(patches: Patches) -> None:
    """A get that waited is answered when its message comes, not when the message is durable."""
    right = QueueManager._retry

    def retry(self: QueueManager, session: object, now: int, answers: list[Answer]) -> bool:
        before = len(answers)
        was_answered = right(self, session, now, answers)
        for answer in answers[before:]:
            link = answer.session.attachment
            if link is not None:
                link.answer(answer.sequence, answer.reply)
                link.flush()
        del answers[before:]
        return was_answered

    patches.setattr(QueueManager, "_retry", retry)


def _statement(name: str, text: str) -> Callable[[Patches], None]:
    # Without a checksum a row is believed: the fault is what it is to be, and not a damaged row.
    believed = text.replace("UPDATE message SET ", "UPDATE message SET header = NULL, ")
    return lambda patches: patches.setattr(statements, name, believed)


def _see_uncommitted(patches: Patches) -> None:
    """Gets find what others have put and not committed."""
    seen = {kind: text.replace("put_by IS NULL AND ", "") for kind, text in statements.FIND_FIRST.items()}
    patches.setattr(statements, "FIND_FIRST", seen)


def _give_marked_back(patches: Patches) -> None:
    """A marked message goes back with the unit that got it, though it is the next one's."""
    patches.setitem(row_writes.WRITE, CarryOver, lambda *_: None)


def _no_report(patches: Patches) -> None:
    """An expired message is discarded, and its sender not told."""
    patches.setattr(reports, "report", lambda *_: [])


def _settle_without_sync(patches: Patches) -> None:
    """That a batch is settled is written, and not made to last."""
    write = lambda change, **how: SetReservation(change, **how | {"must_last": False})  # noqa: E731
    patches.setattr(end_reservation, "SetReservation", write)


def _hand_reserved_out(patches: Patches) -> None:
    """What is reserved is in the batch, and on the queue as well."""
    patches.setitem(row_writes.WRITE, ReserveMessages, lambda *_: None)


def _any_number(patches: Patches) -> None:
    """Frames are performed whatever their numbers."""
    right = CallQueue.add

    def add(self: CallQueue, sequence: int, call: object, size: int) -> None:
        self._last_number = sequence - 1
        right(self, sequence, call, size)

    patches.setattr(CallQueue, "add", add)


def _answer_what_failed(patches: Patches) -> None:
    """The store failed, and the calls are answered as if it had not."""
    right = DurableTurns._make_durable

    def make_durable(self: DurableTurns, *, is_synced: bool) -> None:
        with suppress(Exception):
            right(self, is_synced=is_synced)

    patches.setattr(DurableTurns, "_make_durable", make_durable)


class Mutant(NamedTuple):
    """``plant`` puts it in; ``caught_by`` names the proof that must find it, ``rule`` the sentence that says so."""

    name: str
    plant: Callable[[Patches], None]
    caught_by: str
    rule: str


TO_THE_END = """
UPDATE message SET taken_by = NULL, backout_count = backout_count + 1, id = id + 400000000 WHERE taken_by = ?"""

MUTANTS = (
    Mutant("the log is not synced", _log_without_sync, "power cuts", "unreadable"),
    Mutant("synchronous OFF", _synchronous_off, "power cuts", "unreadable"),
    Mutant("the journal is not synced", _journal_without_sync, "power cuts", "lost"),
    Mutant("the journal is empty before the database is durable", _empty_before_the_sync, "more power cuts", ""),
    Mutant("a torn record is applied", _take_torn_records, "more power cuts", "unreadable"),
    Mutant("gets are not in rows with a commit", _no_gets_with_a_commit, "power cuts", "double"),
    Mutant("answer before commit", _answer_before_commit, "power cuts", "lost"),
    Mutant("answer although the commit failed", _answer_what_failed, "errors", "lost"),
    Mutant("told before commit", _tell_before_commit, "power cuts", "told"),
    Mutant("visible before commit", _wake_before_commit, "simulation of a disk that breaks", "aborted read"),
    Mutant(
        "what was backed out goes to the end", _statement("BACK_OUT_GETS", TO_THE_END), "power cuts", "out of order"
    ),
    Mutant(
        "a backout is not counted",
        _statement("BACK_OUT_GETS", "UPDATE message SET taken_by = NULL WHERE taken_by = ?"),
        "power cuts",
        "backout count",
    ),
    Mutant(
        "a backout by a crash is not counted",
        _statement("RECOVER_GETS", "UPDATE message SET taken_by = NULL WHERE taken_by IS NOT NULL"),
        "power cuts",
        "backout count",
    ),
    Mutant(
        "units in flight are committed at a restart",
        _statement("RECOVER_PUTS", "UPDATE message SET put_by = NULL, held = 0 WHERE put_by IS NOT NULL"),
        "power cuts",
        "phantom",
    ),
    Mutant("what is not committed is seen", _see_uncommitted, "power cuts", "aborted read"),
    Mutant("a marked message goes back with the first unit", _give_marked_back, "power cuts", "double"),
    Mutant(
        "a batch is backed out by a crash",
        _statement("RECOVER_GETS", statements.RECOVER_GETS.replace(" AND ordinal IS NULL", "")),
        "simulation",
        "refused",
    ),
    Mutant("that a batch is settled need not last", _settle_without_sync, "more power cuts", "double"),
    Mutant("what is reserved is not hidden", _hand_reserved_out, "simulation", "refused"),
    Mutant("what has expired goes without a word", _no_report, "simulation", "lost"),
    Mutant("frames of any number are performed", _any_number, "simulation", ""),
)
