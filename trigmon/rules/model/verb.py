"""The row of a verb: the facts that a call needs, the messages it selects, and its decision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from trigmon.mq.replies import Reply
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.facts import Wants
from trigmon.rules.model.manager_state import ManagerState
from trigmon.rules.model.stored_messages import Found, Selection

# Each function names the types of its call and its facts; tests/rules/test_verbs.py holds that it gets these facts.
Decide = Callable[[Any, Any, Found | None, int, Ids], Decision]
LookFor = Callable[[Any, Any, int], Selection | None]
Complete = Callable[[Any, Any, ManagerState], Reply]
"""Adds to a reply what only the queue manager's process knows. Raises MQError: then the call is refused."""


class Verb(msgspec.Struct, frozen=True):
    """How one kind of call is answered. A call that the manager treats otherwise than others says so here."""

    wants: Callable[[Any, int], Wants]
    decide: Decide
    look_for: LookFor | None = None
    complete: Complete | None = None
    fired_by: Callable[[Any], tuple[str, str]] | None = None  # the queue and the occasion whose last verdict it wants
    put_unit: Callable[[Any], int] | None = None  # the unit of work that a refused put is noted in; 0 for none
    is_wide: bool = False  # it asks for more than a message's neighbourhood
    needs_space: bool = False  # it adds messages that a client or the manager may leave off
    can_wait: bool = False  # it has a wait: it is parked where its reply may wait
    ends_wait: bool = False  # it ends the wait of its connection
    hears_news: bool = False  # its connection's waiting get ends when an operator asks for something
