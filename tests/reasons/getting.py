"""Stories of gets: what is there, how it is looked for, marks and locks, segments and groups."""

from __future__ import annotations

from tests.reasons.stories import WARNING, Stories
from tests.worlds import World
from trigmon.mq.calls import Get, Release, Reserve, Settle
from trigmon.mq.enums import GetOption, MsgFlag, OpenOption
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Reply

STORIES = Stories()
GROUP = b"G" * 24
IN, BROWSE = OpenOption.INPUT_SHARED, OpenOption.BROWSE
FIRST, NEXT, HERE = GetOption.BROWSE_FIRST.value, GetOption.BROWSE_NEXT.value, GetOption.MSG_UNDER_CURSOR.value
COMPLETE, LOGICAL = GetOption.COMPLETE_MSG.value, GetOption.LOGICAL_ORDER.value


def _one_there(world: World, *options: OpenOption, data: bytes = b"m") -> int:
    """A handle on a queue with one message."""
    world.define("Q")
    world.put("Q", data)
    return world.open("Q", *options)


@STORIES.of(Reason.GET_INHIBITED)
def gets_are_switched_off(world: World) -> Reply | None:
    world.define("Q", inhibit_get="inhibited")
    return world.do(Get(handle=world.open("Q", IN)))


@STORIES.of(Reason.NO_MSG_AVAILABLE)
def a_queue_is_empty(world: World) -> Reply | None:
    world.define("Q")
    return world.do(Get(handle=world.open("Q", IN)))


@STORIES.of(Reason.NO_MSG_UNDER_CURSOR)
def a_message_is_got_under_a_cursor_that_stands_nowhere(world: World) -> Reply | None:
    return world.do(Get(handle=_one_there(world, IN, BROWSE), options=HERE))


@STORIES.of(Reason.NOT_OPEN_FOR_BROWSE)
def a_handle_for_input_browses(world: World) -> Reply | None:
    return world.do(Get(handle=_one_there(world, IN), options=FIRST))


@STORIES.of(Reason.NOT_OPEN_FOR_INPUT)
def a_handle_for_browsing_takes(world: World) -> Reply | None:
    return world.do(Get(handle=_one_there(world, BROWSE)))


@STORIES.of(Reason.WAIT_INTERVAL_ERROR)
def a_wait_of_less_than_no_time_is_asked_for(world: World) -> Reply | None:
    handle = _one_there(world, IN)
    return world.do(Get(handle=handle, options=GetOption.WAIT.value, wait_interval_ms=-2))


@STORIES.of(Reason.MATCH_OPTIONS_ERROR)
def an_unknown_field_is_to_match(world: World) -> Reply | None:
    return world.do(Get(handle=_one_there(world, IN), match=0x100))


@STORIES.of(Reason.TRUNCATED_MSG_ACCEPTED, WARNING)
def a_long_message_is_cut_as_was_accepted(world: World) -> Reply | None:
    handle = _one_there(world, IN, data=b"long")
    return world.do(Get(handle=handle, max_length=1, options=GetOption.ACCEPT_TRUNCATED_MSG.value))


@STORIES.of(Reason.TRUNCATED_MSG_FAILED, WARNING)
def a_long_message_stays_where_it_is(world: World) -> Reply | None:
    return world.do(Get(handle=_one_there(world, IN, data=b"long"), max_length=1))


@STORIES.of(Reason.SECOND_MARK_NOT_ALLOWED)
def a_second_message_is_marked_to_skip_backout(world: World) -> Reply | None:
    handle = _one_there(world, IN)
    world.put("Q")
    marked = (GetOption.SYNCPOINT | GetOption.MARK_SKIP_BACKOUT).value
    world.did(Get(handle=handle, options=marked, unit=1))
    return world.do(Get(handle=handle, options=marked, unit=1))


@STORIES.of(Reason.NO_MSG_LOCKED, WARNING)
def nothing_is_there_to_unlock(world: World) -> Reply | None:
    return world.do(Get(handle=_one_there(world, BROWSE), options=GetOption.UNLOCK.value))


# -- groups and segments ------------------------------------------------------------------------------------


def _two_segments(world: World, **of_the_last: int) -> int:
    """A handle on a queue with a logical message of two segments."""
    world.define("Q")
    world.put("Q", b"ab", group_id=GROUP, msg_flags=MsgFlag.SEGMENT.value)
    world.put("Q", b"cd", group_id=GROUP, msg_flags=MsgFlag.LAST_SEGMENT.value, offset=2, **of_the_last)
    return world.open("Q", IN, BROWSE)


@STORIES.of(Reason.INCONSISTENT_CCSIDS, WARNING)
def two_segments_differ_in_their_character_sets(world: World) -> Reply | None:
    return world.do(Get(handle=_two_segments(world, coded_char_set_id=500), options=COMPLETE))


@STORIES.of(Reason.INCONSISTENT_ENCODINGS, WARNING)
def two_segments_differ_in_their_encodings(world: World) -> Reply | None:
    return world.do(Get(handle=_two_segments(world, encoding=0x111), options=COMPLETE))


@STORIES.of(Reason.INVALID_MSG_UNDER_CURSOR)
def a_whole_message_is_got_under_a_cursor_on_its_second_segment(world: World) -> Reply | None:
    handle = _two_segments(world)
    world.did(Get(handle=handle, options=FIRST))
    world.did(Get(handle=handle, options=NEXT))
    return world.do(Get(handle=handle, options=HERE | COMPLETE))


@STORIES.of(Reason.INCONSISTENT_BROWSE)
def a_browse_in_logical_order_goes_on_without_it(world: World) -> Reply | None:
    handle = _two_segments(world)
    world.did(Get(handle=handle, options=FIRST | LOGICAL))
    return world.do(Get(handle=handle, options=NEXT))


@STORIES.of(Reason.BACKED_OUT)
def a_batch_is_settled_that_was_given_back(world: World) -> Reply | None:
    made = world.did(Reserve(handle=_one_there(world, IN), consumer="JOB"))
    world.did(Release(reservation=made.reservation))
    return world.do(Settle(reservation=made.reservation))
