"""MQGMO_LOCK and UNLOCK: a browsed message that no other handle sees until its own handle unlocks it.

A handle locks one message at most, the one under its cursor; browsed with COMPLETE_MSG, all its segments. A lock is no
unit of work: it is not stored, and a restart forgets it. It ends with the next browse that succeeds or finds
nothing, with UNLOCK, with the handle, and with the message, which its own handle may take and which may expire (seed
003, note 6). A browse that fails otherwise, or is cut short (2080), leaves it (the manual on MQGMO_LOCK).
"""

from __future__ import annotations

from collections.abc import Sequence

from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.errors import HobjError
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import WasGot
from trigmon.rules.messages.get_options import BROWSES, LOCK
from trigmon.rules.model.changes import AnyChange
from trigmon.rules.model.decision import Decision
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.handle_changes import LockMessage, UnlockMessage
from trigmon.rules.model.handles import HandleFacts
from trigmon.rules.model.stored_messages import StoredMessage

_NOTHING = MessageDescriptor()


def released(handle: HandleFacts) -> list[AnyChange]:
    """Returns the change that unlocks the message that a handle has locked, if it has one."""
    return [UnlockMessage(handle.handle, handle.q_name)] if handle.locked else []


def after_browse(options: int, handle: HandleFacts, messages: Sequence[StoredMessage]) -> list[AnyChange]:
    """Returns the changes that move the lock to the message just browsed and its browsed segments, or end it."""
    if not options & LOCK:
        return released(handle)
    numbers = tuple(message.number for message in messages)
    if handle.locked == numbers:
        return []
    return [*released(handle), LockMessage(handle.handle, handle.q_name, numbers)]


def after_nothing(options: int, handle: HandleFacts) -> list[AnyChange]:
    """Returns the change that ends the lock of a browse that found nothing, or begins to wait."""
    return released(handle) if options & BROWSES else []


def decide_unlock(number: int, facts: Facts) -> Decision:
    """Decides MQGMO_UNLOCK: no message is returned. NO_MSG_LOCKED is a warning, where the handle has locked none."""
    handle = facts.handle
    if handle is None or facts.queue is None:
        raise HobjError(f"handle {number}")
    warning = 0 if handle.locked else int(Reason.NO_MSG_LOCKED)
    return Decision(WasGot(descriptor=_NOTHING, data=b"", data_length=0, warning=warning), released(handle))
