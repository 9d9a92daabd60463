from __future__ import annotations

from trigmon.client.link import LinkDown
from trigmon.monitor.ledger_writer import LedgerWriter
from trigmon.mq.errors import QMgrNotAvailable


class Ledger:
    """A queue manager's end, at which something happens while it writes."""

    pause_s = 0.0

    def __init__(self):
        self.written = {}
        self.meanwhile = []

    def pipeline(self, calls):
        if self.meanwhile:
            self.meanwhile.pop()()
        for call in calls:
            self.written.setdefault(call.run_id, []).append(call.fields)


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
