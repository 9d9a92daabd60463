"""Which options of MQGET go together: syncpoint, marks, locks. The effect of each is decided where it acts.

The manual's list of combinations that are not valid; each of them is 2046.
"""

from __future__ import annotations

from trigmon.mq.enums import GetOption
from trigmon.mq.errors import OptionsError
from trigmon.rules.messages.skip_backout import check_mark
from trigmon.rules.messages.units_of_work import NO_SYNCPOINT, SYNCPOINT, check_unit
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.stored_messages import StoredMessage

IF_PERSISTENT = GetOption.SYNCPOINT_IF_PERSISTENT.value
MARK = GetOption.MARK_SKIP_BACKOUT.value
LOCK = GetOption.LOCK.value
UNLOCK = GetOption.UNLOCK.value
COMPLETE = GetOption.COMPLETE_MSG.value
BROWSES = (GetOption.BROWSE_FIRST | GetOption.BROWSE_NEXT | GetOption.BROWSE_MSG_UNDER_CURSOR).value
ONE_AT_A_TIME = MARK | LOCK | UNLOCK
"""What a get of several messages does not take."""


def check_together(options: int, unit: int, facts: Facts) -> None:
    """Raises OptionsError for options that exclude each other, and for a second mark SecondMarkNotAllowed.

    A syncpoint that depends on the message needs the number of a unit of work whatever the message turns out to be:
    otherwise the same program would fail or not by what lies on the queue.
    """
    if options & UNLOCK and options & ~(UNLOCK | NO_SYNCPOINT):
        raise OptionsError("unlock goes with no other option than no_wait and no_syncpoint")
    if options & LOCK and not options & BROWSES:
        raise OptionsError("lock goes with browse_first, browse_next or browse_msg_under_cursor")
    if options & SYNCPOINT and options & (NO_SYNCPOINT | BROWSES):
        raise OptionsError("syncpoint goes neither with no_syncpoint nor with a browse")
    if options & IF_PERSISTENT:
        if options & (SYNCPOINT | NO_SYNCPOINT | BROWSES | MARK | COMPLETE):
            raise OptionsError("syncpoint_if_persistent goes neither with syncpoints, marks, browses nor complete_msg")
        check_unit(unit, facts)
    if options & MARK and options & COMPLETE:
        raise OptionsError("one message is marked to skip backout: mark_skip_backout does not go with complete_msg")
    if options & MARK:
        check_mark(options, unit, facts)


def syncpoint_of(options: int, message: StoredMessage) -> int:
    """Returns the options of a get as they are for this message: under syncpoint, or not."""
    if options & IF_PERSISTENT and message.is_persistent:
        return options | SYNCPOINT
    return options
