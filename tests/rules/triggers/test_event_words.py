"""The words that a verdict's headline has for what happened to a queue."""

from __future__ import annotations

from trigmon.mq.explanation import EVENT_WORDS
from trigmon.rules.model.situation import Happened


def test_each_kind_of_event_that_is_judged_has_its_words():
    assert list(EVENT_WORDS) == [happened.name.lower() for happened in Happened]
