"""Each event of the queue manager has a line in the log, with a name that is its own."""

import inspect
import logging
from typing import get_args

from trigmon.qmgr.manager_events import Event
from trigmon.rules.model.events import OperatorAsked, PoisonMoved, QueueHeld
from trigmon.server.event_log import _LINES, Logged


class Lines:
    """A logger that keeps its lines."""

    def __init__(self, level=logging.INFO):
        self.kept = []
        self.level = level

    def is_enabled_for(self, level):
        return level >= self.level

    def info(self, event, **fields):
        self.kept.append((event, fields))

    warning = info


def test_each_event_has_a_line():
    assert set(_LINES) == set(get_args(Event))


def test_each_event_has_a_name_of_its_own():
    names = [kind.name for kind in get_args(Event) if isinstance(kind.name, str)]
    assert len({*names}) == len(names)
    assert PoisonMoved("Q", "", b"", 1).name == "poison_message_discarded"
    assert PoisonMoved("Q", "TO", b"", 1).name == "poison_message_moved"


def test_a_line_has_the_sentence_the_name_and_the_fields():
    lines = Lines()
    logged = Logged(lines, on_failed=lambda session: None)
    logged.tell(QueueHeld("Q", "why"))
    logged.tell(OperatorAsked("starting paused", {"what": "queue", "name": "Q"}))
    assert lines.kept == [
        ("queue held: does not drain", {"event_name": "queue_held", "q_name": "Q", "why": "why"}),
        ("starting paused", {"event_name": "starting_paused", "what": "queue", "name": "Q"}),
    ]


def test_what_is_logged_at_debug_level_is_not_even_handed_over_where_no_debug_line_is_written():
    debug_only = {kind for kind, write in _LINES.items() if "to.log.debug(" in inspect.getsource(write)}
    assert Logged(Lines(), on_failed=lambda session: None).ignored == debug_only
    assert not Logged(Lines(logging.DEBUG), on_failed=lambda session: None).ignored
