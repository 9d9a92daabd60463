from __future__ import annotations

import pytest

from tests.monitor.monitored_machine import INITQ
from trigmon.client.link import Link, LinkDown
from trigmon.monitor import run_changes
from trigmon.monitor.ledger_writer import LedgerWriter
from trigmon.mq.calls import Caps, RecordRun
from trigmon.mq.descriptors import TriggerMessage
from trigmon.mq.errors import QMgrNotAvailable
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Done, Refused
from trigmon.rules.runs.new_run_record import recorded


class Ledger:
    """A queue manager's end, at which something happens while it writes."""

    pause_s = 0.0

    def __init__(self):
        self.written = {}
        self.meanwhile = []

    def answers(self, calls):
        if self.meanwhile:
            self.meanwhile.pop()()
        for call in calls:
            self.written.setdefault(call.run_id, []).append(call.fields)
        return [Done() for _ in calls]


def test_what_is_noted_while_the_same_run_is_written_is_written_too():
    link = Ledger()
    books = LedgerWriter(link, "INITQ", "M")
    link.meanwhile.append(lambda: books.note("1", {"state": "held"}))
    books.note("1", {"pid": 7})
    assert books.write(all_of_it=True)
    assert link.written == {"1": [{"pid": 7}, {"state": "held"}]}
    assert not books.behind


def test_what_could_not_be_written_comes_before_what_was_noted_meanwhile():
    link = Ledger()
    books = LedgerWriter(link, "INITQ", "M")

    def fall():
        books.note("2", {"state": "held"})
        books.note("1", {"state": "exited"})
        raise LinkDown(QMgrNotAvailable("QM1"))

    link.meanwhile.append(fall)
    books.note("1", {"pid": 7, "state": "started"})
    assert not books.write(all_of_it=True)
    assert books.behind
    assert books.write(all_of_it=True)
    assert link.written == {"1": [{"pid": 7, "state": "exited"}], "2": [{"state": "held"}]}


class Stopping:
    """A connection to a queue manager that stops: it refuses the second call, and all behind it."""

    def answers(self, calls, window):
        assert window == len(calls)
        return [Done(), *(Refused(reason=int(Reason.Q_MGR_STOPPING)) for _ in calls[1:])]

    def drop(self):
        pass


def test_what_a_queue_manager_that_stops_refuses_is_kept():
    books = LedgerWriter(Link(Stopping), "INITQ", "M")
    for number in range(3):
        books.note(str(number), {"state": "exited"})
    assert not books.write()
    assert books.is_pending("2") and books.pause_s


def test_what_is_not_written_where_the_ledger_cannot_be_asked_is_kept():
    link = Ledger()
    books = LedgerWriter(link, "INITQ", "M")

    def fall():
        raise LinkDown(QMgrNotAvailable("QM1"))

    link.meanwhile.append(fall)
    books.note("1", {"state": "exited"})
    with pytest.raises(LinkDown):
        books.start_runs(Caps())
    assert books.is_pending("1")


def test_what_may_wait_is_not_written_with_what_may_not_and_becomes_one_change_with_the_next():
    link = Ledger()
    books = LedgerWriter(link, "INITQ", "M")
    books.note("1", {"pid": 7, "state": "started"}, within_s=60.0)
    books.note("2", {"state": "held"})
    assert books.write()
    assert link.written == {"2": [{"state": "held"}]}
    assert 50 < books.writes_in_s <= 60
    books.note("1", {"state": "exited"})
    assert books.write()
    assert link.written["1"] == [{"pid": 7, "state": "exited"}]
    assert not books.behind


def test_what_is_not_yet_sent_when_the_link_goes_down_is_kept_and_what_was_sent_is_not():
    link = Ledger()
    books = LedgerWriter(link, "INITQ", "M")

    def fail(error):
        raise error

    # All at once, then 1, 2 and 3 each alone; the last of the list comes first.
    link.meanwhile += [
        lambda: fail(LinkDown(QMgrNotAvailable("QM1"))),
        lambda: fail(ValueError("no text")),
        lambda: None,
        lambda: fail(ValueError("no text")),
    ]
    for number in range(1, 5):
        books.note(str(number), {"pid": number})
    assert not books.write()
    assert [number for number in range(1, 5) if books.is_pending(str(number))] == [3, 4]
    assert link.written == {"1": [{"pid": 1}]}


@pytest.fixture
def books(machine):
    """The ledger of a queue manager on which run 1 has the only place of its process, and run 2 waits for it."""
    trigger = TriggerMessage(q_name="Q", process_name="P", appl_type=6, appl_id=str(machine.job))
    with machine.daemon.connect() as qm:
        for run_id, state in (("1", "due"), ("2", "held")):
            record = recorded(run_id, trigger, state=state, monitor="M", now_ms=1, initiation_q=INITQ)
            qm.call(RecordRun(run_id=run_id, record=record.json))
    writer = LedgerWriter(Link(machine.daemon.connect), INITQ, "M")
    yield writer
    writer.close()


def test_the_ledger_is_asked_behind_what_it_learns_in_the_same_turn(books):
    assert books.start_runs(Caps()).records == []
    books.note("1", run_changes.exited(0, "", 2))
    (record,) = books.start_runs(Caps()).records
    assert record["run_id"] == "2"
    assert not books.behind


def test_a_change_that_is_refused_costs_no_other_and_no_start(books, capsys):
    for number in range(3, 70):  # more than one turn takes
        books.note(str(number), {"pid": 7})
    books.note("1", run_changes.exited(0, "", 2))
    (record,) = books.start_runs(Caps()).records
    assert record["run_id"] == "2"
    assert capsys.readouterr().out.count("the run ledger refused a change") == 67
    assert not books.behind


@pytest.mark.parametrize("why", ["x" * 5_000_000, "\ud800"], ids=["longer than a call may be", "no text"])
def test_a_change_that_cannot_be_sent_costs_no_other_and_no_start(books, capsys, why):
    books.note("3", {"why": why})
    books.note("1", run_changes.exited(0, "", 2))
    (record,) = books.start_runs(Caps()).records
    assert record["run_id"] == "2"
    assert capsys.readouterr().out.count("the run ledger refused a change") == 1
    assert not books.behind
