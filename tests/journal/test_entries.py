"""The entries of the journal: each change that a store writes to rows, and what rows need of it."""

import pytest

from trigmon.journal.entries import FORMS, Entries, RecoverStore, SetMeta, UnknownEntryError, changes_in
from trigmon.mq.attributes import LocalQueue, Process
from trigmon.mq.descriptors import MessageDescriptor, TriggerMessage
from trigmon.mq.enums import ObjectType, UnitOutcome
from trigmon.rules.model import changes as c
from trigmon.rules.model import reservation_changes as r
from trigmon.rules.model.handles import Decided, HeldTrigger, Marked, UnitFacts
from trigmon.rules.model.reservation import Reservation
from trigmon.rules.model.run_facts import Cause, Paused
from trigmon.rules.model.stored_messages import MessageColumns, StoredMessage, columns_of
from trigmon.store.sql.row_writes import WRITE

PLAIN = MessageDescriptor(msg_id=b"m" * 24, user_identifier="üser")
GROUPED = MessageDescriptor(group_id=b"g" * 24, msg_seq_number=3, offset=4, msg_flags=8)


def stored(descriptor=PLAIN):
    return StoredMessage(17, "Q", 4, True, descriptor, b"data", 99, ordinal=3)


def back(*changes):
    entries = Entries()
    for change in changes:
        entries.add(change)
    return list(changes_in(entries.encoded()))


def test_the_list_is_that_of_the_changes_which_are_written_to_rows():
    assert set(FORMS) == {*WRITE, SetMeta, RecoverStore}


@pytest.mark.parametrize(
    "change",
    [
        c.AddMessage("Q", 5, 9, True, PLAIN, bytes(range(256)), 77, 12, is_held=True, on_backout=True),
        c.AddMessage("Q", 5, 9, False, GROUPED, b""),
        c.BeginUnit(0, 8, 3, "client", 1000),
        c.SkipUnit(0, 3, "client", UnitOutcome.COMMITTED, 1000),
        c.SetDefinition(ObjectType.QLOCAL, LocalQueue(name="Q", max_q_depth=7, trigger_data="ä")),
        c.SetDefinition(ObjectType.PROCESS, Process(name="P", appl_id="sh -c true")),
        c.DropDefinition(ObjectType.QLOCAL, "Q", is_temporary=True),
        c.DeleteLogically("Q", False),
        c.DropRun("run"),
        c.Unserve("run"),
        c.SetCause(Cause("P", "Q", 3, 1, 99)),
        c.SetPause(Paused("queue", "Q", "me", 5, "because")),
        c.DropPause("queue", "Q"),
        r.SetReservation(Reservation(4, "Q", "JOB")),
        SetMeta("own_time", "{}"),
        RecoverStore("QM1", 1000, (Decided("client", 3, 17),)),
    ],
    ids=lambda change: type(change).__name__,
)
def test_a_change_that_is_written_as_it_is_comes_back_as_it_was(change):
    assert back(change) == [change]


def test_of_a_message_its_place_comes_back_and_its_descriptor_where_it_is_of_a_group():
    for descriptor in (PLAIN, GROUPED):
        message = stored(descriptor)
        for change in (c.TakeMessage(message, 5), c.RemoveMessage(message), c.SetAside(message)):
            (found,) = back(change)
            of = found.message
            assert type(found) is type(change)
            assert (of.number, of.q_name, of.priority, of.data) == (17, "Q", 4, b"")
            assert of.descriptor == (GROUPED if descriptor is GROUPED else MessageDescriptor())
    assert back(c.TakeMessage(stored(), 5))[0].unit_id == 5


def test_the_end_of_a_unit_has_what_its_rows_need():
    unit = UnitFacts(
        5,
        2,
        31,
        "client",
        count=3,
        is_durable=True,
        puts={("Q", 4): 2, ("R", 0): 1},
        gets={("S", 9): 1},
        held=(HeldTrigger("I", 0, TriggerMessage(q_name="Q"), True), HeldTrigger("I", 5, None, False)),
        triggers=(stored(),),
    )
    (found,) = back(c.EndUnit(unit, UnitOutcome.BACKED_OUT, 1000, ("Q",), is_decided=True))
    assert (found.outcome, found.now, found.is_decided) == (UnitOutcome.BACKED_OUT, 1000, True)
    assert (found.unit.unit_id, found.unit.number, found.unit.client_id) == (5, 2, "client")
    assert (found.unit.puts, found.unit.gets) == (unit.puts, unit.gets)
    assert [(held.q_name, held.on_backout) for held in found.unit.held] == [("I", True), ("I", False)]


def test_what_is_done_to_reserved_messages_comes_back():
    messages = (stored(), stored(GROUPED))
    reserve, settle, give_back = back(
        r.ReserveMessages(7, columns_of("Q", messages), 3, messages),
        r.SettleReserved("Q", ((17, 17), (17, 17)), messages),
        r.ReturnReserved(messages, 2),
    )
    assert (reserve.reservation, reserve.first) == (7, 3)
    assert give_back.adds == 2
    assert [message.descriptor.group_id for message in reserve.messages] == [bytes(24), b"g" * 24]
    assert [message.expires_ms for message in reserve.messages] == [99, 99]
    assert (reserve.columns.q_name, reserve.columns.numbers) == ("Q", [17, 17])
    assert (settle.q_name, settle.stretches) == ("Q", ((17, 17), (17, 17)))
    for found in (reserve, give_back):
        assert [(message.number, message.q_name) for message in found.messages] == [(17, "Q"), (17, "Q")]


def test_simple_messages_that_are_reserved_are_written_as_ranges_and_come_back_in_their_order():
    numbers = [40, 41, 42, 7, 8, 50]
    entries = Entries()
    entries.add(r.ReserveMessages(7, MessageColumns("Q", numbers), 3))
    (found,) = changes_in(entries.encoded())
    assert (found.columns, found.messages) == (MessageColumns("Q", numbers), ())
    many = Entries()
    many.add(r.ReserveMessages(7, MessageColumns("Q", list(range(1000))), 3))
    assert len(many.encoded()) < len(entries.encoded())


def test_a_marked_message_that_goes_to_the_next_unit_comes_back():
    (found,) = back(c.CarryOver(Marked(4, "Q", 2, False, True), 9))
    assert (found.message.number, found.message.q_name, found.unit_id) == (4, "Q", 9)


def test_what_was_undone_is_not_there():
    entries = Entries()
    entries.add(c.DropRun("kept"))
    place = entries.place
    entries.add(c.DropRun("undone"))
    entries.cut(place)
    entries.add(c.DropRun("behind"))
    assert list(changes_in(entries.encoded())) == [c.DropRun("kept"), c.DropRun("behind")]
    entries.clear()
    assert not entries


def test_an_entry_that_nobody_knows_is_refused_by_its_name(monkeypatch):
    class DropQueueManager(c.DropRun, frozen=True):
        pass

    entries = Entries()
    monkeypatch.setitem(FORMS, DropQueueManager, FORMS[c.DropRun])
    monkeypatch.setattr("trigmon.journal.entries._NAMES", {DropQueueManager: "DropQueueManager"})
    entries.add(DropQueueManager("x"))
    with pytest.raises(UnknownEntryError, match="DropQueueManager"):
        list(changes_in(entries.encoded()))
