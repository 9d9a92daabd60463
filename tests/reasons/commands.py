"""Stories of attributes and commands: MQINQ and MQSET, definitions, dead letters, and who may do it."""

from __future__ import annotations

from functools import partial

from tests.reasons.stories import COMPLETED, TOLD, WARNING, Stories
from tests.worlds import World
from trigmon.mq.calls import Alter, Backout, Clear, Define, Delete, Get, Inquire, Pause, Ping, RetryDeadLetters, Set
from trigmon.mq.descriptors import DeadLetterHeader, unpack_dlh
from trigmon.mq.enums import GetOption, OpenOption
from trigmon.mq.event_kinds import PERFORMANCE_EVENT_QUEUE
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Reply
from trigmon.pcf.structures import PcfMessage, unpack_message
from trigmon.qmgr.sessions import Identity

STORIES = Stories()
IN, OUT, INQUIRE, SET = (getattr(OpenOption, name) for name in ("INPUT_SHARED", "OUTPUT", "INQUIRE", "SET"))


@STORIES.of(Reason.NONE, COMPLETED)
def a_ping_is_answered(world: World) -> Reply | None:
    return world.do(Ping())


# -- MQINQ and MQSET ----------------------------------------------------------------------------------------


@STORIES.of(Reason.NOT_OPEN_FOR_INQUIRE)
def a_handle_for_output_inquires(world: World) -> Reply | None:
    world.define("Q")
    return world.do(Inquire(handle=world.open("Q", OUT)))


@STORIES.of(Reason.NOT_OPEN_FOR_SET)
def a_handle_for_inquiring_sets(world: World) -> Reply | None:
    world.define("Q")
    return world.do(Set(handle=world.open("Q", INQUIRE), attributes={}))


@STORIES.of(Reason.SELECTOR_ERROR)
def a_selector_is_nobodys(world: World) -> Reply | None:
    world.define("Q")
    return world.do(Inquire(handle=world.open("Q", INQUIRE), names=[31_999]))


@STORIES.of(Reason.SELECTOR_LIMIT_EXCEEDED)
def more_than_256_selectors_are_named(world: World) -> Reply | None:
    world.define("Q")
    handle = world.open("Q", INQUIRE)
    world.did(Inquire(handle=handle, names=[3] * 256))
    return world.do(Inquire(handle=handle, names=[3] * 257))


@STORIES.of(Reason.SELECTOR_NOT_FOR_TYPE, WARNING)
def an_alias_is_asked_what_only_a_local_queue_has(world: World) -> Reply | None:
    world.define("A", "QALIAS")
    return world.do(Inquire(handle=world.open("A", INQUIRE), names=["max_q_depth"]))


def _set(world: World, attributes: dict[str | int, object]) -> Reply | None:
    world.define("Q")
    return world.do(Set(handle=world.open("Q", SET), attributes=attributes))


for _reason, _attributes in {
    Reason.INHIBIT_VALUE_ERROR: {"inhibit_get": 2},
    Reason.TRIGGER_CONTROL_ERROR: {"trigger_control": 2},
    Reason.TRIGGER_DEPTH_ERROR: {"trigger_depth": 0},
    Reason.TRIGGER_MSG_PRIORITY_ERR: {"trigger_msg_priority": 10},
    Reason.TRIGGER_TYPE_ERROR: {"trigger_type": 4},
}.items():
    STORIES.of(_reason)(partial(_set, attributes=_attributes))


# -- definitions --------------------------------------------------------------------------------------------


@STORIES.of(Reason.NOT_AUTHORIZED)
def somebody_who_is_no_administrator_defines_a_queue(world: World) -> Reply | None:
    world.sessions["guest"] = world.qm.connect(Identity(client_id="guest", application="guest", user="nobody"))
    return world.do(Define(object_type="QLOCAL", name="Q"), "guest")


@STORIES.of(Reason.OBJECT_ALREADY_EXISTS)
def a_queue_is_defined_twice(world: World) -> Reply | None:
    world.define("Q")
    return world.do(Define(object_type="QLOCAL", name="Q"))


@STORIES.of(Reason.OBJECT_NAME_ERROR)
def a_name_holds_a_blank(world: World) -> Reply | None:
    return world.do(Define(object_type="QLOCAL", name="A B"))


@STORIES.of(Reason.OBJECT_WRONG_TYPE)
def a_local_queue_is_altered_as_an_alias(world: World) -> Reply | None:
    world.define("Q")
    return world.do(Alter(object_type="QALIAS", name="Q"))


@STORIES.of(Reason.LIKE_OBJECT_WRONG_TYPE)
def an_alias_is_defined_like_a_local_queue(world: World) -> Reply | None:
    world.define("Q")
    return world.do(Define(object_type="QALIAS", name="A", like="Q"))


@STORIES.of(Reason.ATTR_VALUE_ERROR)
def a_maxdepth_is_below_nothing(world: World) -> Reply | None:
    return world.do(Define(object_type="QLOCAL", name="Q", attributes={"max_q_depth": -1}))


@STORIES.of(Reason.COMMAND_FAILED)
def what_is_paused_is_paused_again(world: World) -> Reply | None:
    world.did(Pause(what="everything"))
    return world.do(Pause(what="everything"))


@STORIES.of(Reason.ATTR_VALUE_FIXED)
def another_maxprty_is_asked_for(world: World) -> Reply | None:
    return world.do(Alter(object_type="QMGR", name="", attributes={"max_priority": 5}))


@STORIES.of(Reason.Q_WRONG_TYPE)
def an_alias_is_cleared(world: World) -> Reply | None:
    world.define("A", "QALIAS")
    return world.do(Clear(q_name="A"))


@STORIES.of(Reason.Q_NOT_EMPTY)
def a_queue_is_deleted_with_a_message_on_it(world: World) -> Reply | None:
    world.define("Q")
    world.put("Q")
    return world.do(Delete(object_type="QLOCAL", name="Q"))


# -- dead letters -------------------------------------------------------------------------------------------


@STORIES.of(Reason.DLH_ERROR, TOLD)
def a_message_without_a_header_is_to_go_back_where_it_came_from(world: World) -> Reply | None:
    world.define("DLQ")
    world.put("DLQ")
    return world.do(RetryDeadLetters(q_name="DLQ"))


@STORIES.of(Reason.OBJECT_NOT_UNIQUE, TOLD)
def two_queues_have_the_backout_queue_from_which_a_message_is_to_go_back(world: World) -> Reply | None:
    world.define("BACKED.OUT")
    for name in ("A", "B"):
        world.define(name, backout_requeue_q_name="BACKED.OUT")
    world.put("BACKED.OUT")
    return world.do(RetryDeadLetters(q_name="BACKED.OUT"))


@STORIES.of(Reason.BACKOUT_THRESHOLD_REACHED, TOLD)
def a_poison_message_comes_to_the_dead_letter_queue(world: World) -> DeadLetterHeader:
    world.define("DLQ")
    world.did(Alter(object_type="QMGR", name="", attributes={"dead_letter_q_name": "DLQ"}))
    world.define("Q", backout_requeue="qmgr", backout_threshold=1)
    world.put("Q")
    handle = world.open("Q", IN)
    world.did(Get(handle=handle, options=GetOption.SYNCPOINT.value, unit=1))
    world.did(Backout(unit=1))
    world.do(Get(handle=handle))
    return unpack_dlh(world.did(Get(handle=world.open("DLQ", IN))).data)[0]


# -- events ---------------------------------------------------------------------------------------------------


def _told(world: World) -> PcfMessage:
    """The first performance event that is on its queue."""
    return unpack_message(world.did(Get(handle=world.open(PERFORMANCE_EVENT_QUEUE, IN))).data)


def _eventful(world: World, **attributes: object) -> int:
    """A queue of two messages at most; a handle for its gets."""
    world.did(Alter(object_type="QMGR", name="", attributes={"performance_event": "enabled"}))
    world.define("Q", max_q_depth=2, q_service_interval=1000, **attributes)
    return world.open("Q", IN)


@STORIES.of(Reason.Q_DEPTH_HIGH, TOLD)
def a_put_makes_a_queue_as_deep_as_is_told(world: World) -> PcfMessage:
    _eventful(world, q_depth_high_event="enabled")
    world.put("Q")
    world.put("Q")
    return _told(world)


@STORIES.of(Reason.Q_DEPTH_LOW, TOLD)
def a_get_makes_a_queue_as_empty_as_is_told(world: World) -> PcfMessage:
    handle = _eventful(world, q_depth_low_event="enabled")
    world.put("Q")
    world.did(Get(handle=handle))
    return _told(world)


@STORIES.of(Reason.Q_SERVICE_INTERVAL_HIGH, TOLD)
def no_get_follows_a_put_in_time(world: World) -> PcfMessage:
    handle = _eventful(world, q_service_interval_event="high")
    world.put("Q")
    world.clock.advance(1001)
    world.did(Get(handle=handle))
    return _told(world)


@STORIES.of(Reason.Q_SERVICE_INTERVAL_OK, TOLD)
def a_get_follows_a_put_in_time(world: World) -> PcfMessage:
    handle = _eventful(world, q_service_interval_event="ok")
    world.put("Q")
    world.did(Get(handle=handle))
    return _told(world)
