"""Stories of puts: the descriptor, the room on the queue, the unit of work, the context, the place in a group."""

from __future__ import annotations

from functools import partial

from tests.reasons.stories import WARNING, Stories
from tests.worlds import World
from trigmon.mq.calls import Alter, Commit, Put, PutMany
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import MsgFlag, MsgType, OpenOption, Persistence, PutOption
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Reply

STORIES = Stories()
LOGICAL, SYNCPOINT = PutOption.LOGICAL_ORDER.value, PutOption.SYNCPOINT.value
IN_GROUP, SEGMENT = MsgFlag.MSG_IN_GROUP.value, MsgFlag.SEGMENT.value


def _put(world: World, data: bytes = b"m", options: int = 0, unit: int = 0, **fields: object) -> Reply | None:
    return world.do(Put(q_name="Q", data=data, options=options, unit=unit, descriptor=MessageDescriptor(**fields)))


# -- the descriptor -----------------------------------------------------------------------------------------

WRONG_FIELDS: dict[Reason, dict[str, object]] = {
    Reason.EXPIRY_ERROR: {"expiry": 0},
    Reason.FEEDBACK_ERROR: {"feedback": -1},
    Reason.MD_ERROR: {"format": "NINECHARS"},
    Reason.MISSING_REPLY_TO_Q: {"msg_type": MsgType.REQUEST.value},
    Reason.MSG_TYPE_ERROR: {"msg_type": 3},
    Reason.PERSISTENCE_ERROR: {"persistence": 3},
    Reason.PRIORITY_ERROR: {"priority": -2},
    Reason.REPORT_OPTIONS_ERROR: {"report": 0x1000_0000},
    Reason.MSG_FLAGS_ERROR: {"msg_flags": 0x20},
    Reason.MSG_SEQ_NUMBER_ERROR: {"msg_flags": IN_GROUP, "msg_seq_number": 0},
    Reason.OFFSET_ERROR: {"msg_flags": SEGMENT, "offset": -1},
    Reason.ORIGINAL_LENGTH_ERROR: {"msg_flags": SEGMENT, "msg_type": MsgType.REPORT.value, "original_length": -1},
    Reason.SEGMENT_LENGTH_ZERO: {"msg_flags": SEGMENT, "data": b""},
}
ODD_FIELDS: dict[Reason, dict[str, object]] = {
    Reason.PRIORITY_EXCEEDS_MAXIMUM: {"priority": 10},
    Reason.UNKNOWN_REPORT_OPTION: {"report": 0x4000_0000},
}


def _put_with(world: World, fields: dict[str, object]) -> Reply | None:
    world.define("Q")
    return _put(world, **fields)


for _reason, _fields in WRONG_FIELDS.items():
    STORIES.of(_reason)(partial(_put_with, fields=_fields))
for _reason, _fields in ODD_FIELDS.items():
    STORIES.of(_reason, WARNING)(partial(_put_with, fields=_fields))


# -- the queue ----------------------------------------------------------------------------------------------


@STORIES.of(Reason.BUFFER_LENGTH_ERROR)
def more_bodies_are_put_at_once_than_one_step_may_have(world: World) -> Reply | None:
    world.define("Q")
    return world.do(PutMany(q_name="Q", bodies=[b""] * 4097))


@STORIES.of(Reason.MSG_TOO_BIG_FOR_Q)
def a_message_is_longer_than_the_queues_maxmsgl(world: World) -> Reply | None:
    world.define("Q", max_msg_length=1)
    return _put(world, b"xx")


@STORIES.of(Reason.MSG_TOO_BIG_FOR_Q_MGR)
def a_message_is_longer_than_the_queue_managers_maxmsgl(world: World) -> Reply | None:
    world.define("Q")
    world.did(Alter(object_type="QMGR", name="", attributes={"max_msg_length": 32_768}))
    return _put(world, b"x" * 32_769)


@STORIES.of(Reason.NOT_OPEN_FOR_OUTPUT)
def a_message_is_put_through_a_handle_for_input(world: World) -> Reply | None:
    world.define("Q")
    return world.do(Put(handle=world.open("Q", OpenOption.INPUT_SHARED)))


@STORIES.of(Reason.PUT_INHIBITED)
def puts_are_switched_off(world: World) -> Reply | None:
    world.define("Q", inhibit_put="inhibited")
    return _put(world)


@STORIES.of(Reason.Q_FULL)
def a_queue_is_at_its_maxdepth(world: World) -> Reply | None:
    world.define("Q", max_q_depth=1)
    world.put("Q")
    return _put(world)


# -- the unit of work ---------------------------------------------------------------------------------------


@STORIES.of(Reason.SYNCPOINT_LIMIT_REACHED)
def a_unit_of_work_is_at_maxumsgs(world: World) -> Reply | None:
    world.define("Q")
    world.did(Alter(object_type="QMGR", name="", attributes={"max_uncommitted_msgs": 1}))
    world.put("Q", unit=1)
    return _put(world, options=SYNCPOINT, unit=1)


@STORIES.of(Reason.UNIT_OF_WORK_NOT_STARTED)
def a_message_is_put_in_a_unit_of_work_that_has_ended(world: World) -> Reply | None:
    world.define("Q")
    world.did(Commit(unit=1))
    return _put(world, options=SYNCPOINT, unit=1)


@STORIES.of(Reason.UOW_NOT_AVAILABLE)
def a_persistent_message_is_to_be_cut_outside_the_unit_of_work_that_is_open(world: World) -> Reply | None:
    world.define("Q", max_msg_length=32)
    world.put("Q", unit=1)
    flags = MsgFlag.SEGMENTATION_ALLOWED.value
    return _put(world, b"x" * 100, msg_flags=flags, persistence=Persistence.PERSISTENT.value)


# -- the context --------------------------------------------------------------------------------------------


def _put_context_unasked(world: World, option: PutOption) -> Reply | None:
    world.define("Q")
    return world.do(Put(handle=world.open("Q", OpenOption.OUTPUT), options=option.value))


for _reason, _option in {
    Reason.NOT_OPEN_FOR_PASS_ALL: PutOption.PASS_ALL_CONTEXT,
    Reason.NOT_OPEN_FOR_PASS_IDENT: PutOption.PASS_IDENTITY_CONTEXT,
    Reason.NOT_OPEN_FOR_SET_ALL: PutOption.SET_ALL_CONTEXT,
    Reason.NOT_OPEN_FOR_SET_IDENT: PutOption.SET_IDENTITY_CONTEXT,
}.items():
    STORIES.of(_reason)(partial(_put_context_unasked, option=_option))


def _pass_context(world: World, *source: OpenOption) -> Reply | None:
    world.define("Q")
    handle = world.open("Q", OpenOption.OUTPUT, OpenOption.PASS_ALL_CONTEXT)
    context = world.open("Q", *source)
    return world.do(Put(handle=handle, options=PutOption.PASS_ALL_CONTEXT.value, context=context))


@STORIES.of(Reason.CONTEXT_HANDLE_ERROR)
def a_context_is_passed_from_a_handle_that_saves_none(world: World) -> Reply | None:
    return _pass_context(world, OpenOption.INPUT_SHARED)


@STORIES.of(Reason.CONTEXT_NOT_AVAILABLE)
def a_context_is_passed_from_a_handle_that_has_got_nothing(world: World) -> Reply | None:
    return _pass_context(world, OpenOption.INPUT_SHARED, OpenOption.SAVE_ALL_CONTEXT)


# -- the place in a group -----------------------------------------------------------------------------------


def _after_the_first(
    world: World, first: int, second: int, options: int = LOGICAL, unit: int = 0, persistence: int = 0
) -> Reply | None:
    """The first item of a group or logical message is put in logical order, and then another."""
    world.define("Q")
    handle = world.open("Q", OpenOption.OUTPUT)
    begun = world.did(Put(handle=handle, data=b"m", options=LOGICAL, descriptor=MessageDescriptor(msg_flags=first)))
    following = MessageDescriptor(
        msg_flags=second, group_id=begun.group_id, msg_seq_number=2, offset=0, persistence=persistence
    )
    return world.do(Put(handle=handle, data=b"m", options=options, unit=unit, descriptor=following))


@STORIES.of(Reason.INCOMPLETE_GROUP)
def a_message_in_no_group_is_put_in_logical_order_into_the_midst_of_a_group(world: World) -> Reply | None:
    return _after_the_first(world, IN_GROUP, 0)


@STORIES.of(Reason.INCOMPLETE_GROUP, WARNING)
def a_message_in_no_group_is_put_into_the_midst_of_a_group(world: World) -> Reply | None:
    return _after_the_first(world, IN_GROUP, 0, options=0)


@STORIES.of(Reason.INCOMPLETE_MSG)
def a_whole_message_is_put_in_logical_order_behind_a_segment(world: World) -> Reply | None:
    return _after_the_first(world, SEGMENT, 0)


@STORIES.of(Reason.INCOMPLETE_MSG, WARNING)
def a_whole_message_is_put_behind_a_segment(world: World) -> Reply | None:
    return _after_the_first(world, SEGMENT, 0, options=0)


@STORIES.of(Reason.INCONSISTENT_UOW)
def a_group_begun_outside_syncpoint_goes_on_under_it_in_logical_order(world: World) -> Reply | None:
    return _after_the_first(world, IN_GROUP, IN_GROUP, LOGICAL | SYNCPOINT, unit=1)


@STORIES.of(Reason.INCONSISTENT_UOW, WARNING)
def a_group_begun_outside_syncpoint_goes_on_under_it(world: World) -> Reply | None:
    return _after_the_first(world, IN_GROUP, IN_GROUP, SYNCPOINT, unit=1)


@STORIES.of(Reason.INCONSISTENT_PERSISTENCE)
def a_group_begun_not_persistent_goes_on_persistent_in_logical_order(world: World) -> Reply | None:
    return _after_the_first(world, IN_GROUP, IN_GROUP, persistence=Persistence.PERSISTENT.value)


@STORIES.of(Reason.INCONSISTENT_PERSISTENCE, WARNING)
def a_group_begun_not_persistent_goes_on_persistent(world: World) -> Reply | None:
    return _after_the_first(world, IN_GROUP, IN_GROUP, options=0, persistence=Persistence.PERSISTENT.value)
