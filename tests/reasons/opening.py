"""Stories of names: what a queue's name leads to, who has it open, and queues made from a model."""

from __future__ import annotations

from tests.reasons.stories import Stories
from tests.worlds import World
from trigmon.mq.calls import Alter, Close, Open, Put
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import OpenOption
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Reply
from trigmon.qmgr.sessions import Identity

STORIES = Stories()
IN, OUT, INQUIRE = OpenOption.INPUT_SHARED.value, OpenOption.OUTPUT.value, OpenOption.INQUIRE.value


@STORIES.of(Reason.ALIAS_BASE_Q_TYPE_ERROR)
def an_alias_of_an_alias_is_opened(world: World) -> Reply | None:
    world.define("B", "QALIAS", base_q_name="C")
    world.define("A", "QALIAS", base_q_name="B")
    return world.do(Open(object_name="A", options=OUT))


@STORIES.of(Reason.DYNAMIC_Q_NAME_ERROR)
def an_asterisk_stands_in_the_middle_of_a_dynamic_queues_name(world: World) -> Reply | None:
    world.define("M", "QMODEL")
    return world.do(Open(object_name="M", options=OUT, dynamic_q_name="A*B"))


@STORIES.of(Reason.HANDLE_NOT_AVAILABLE)
def one_more_is_opened_than_maxhands_allows(world: World) -> Reply | None:
    world.did(Alter(object_type="QMGR", name="", attributes={"max_handles": 1}))
    world.define("Q")
    world.open("Q", OpenOption.OUTPUT)
    return world.do(Open(object_name="Q", options=OUT))


@STORIES.of(Reason.HOBJ_ERROR)
def a_handle_is_closed_that_nobody_was_given(world: World) -> Reply | None:
    return world.do(Close(handle=999))


@STORIES.of(Reason.OBJECT_IN_USE)
def a_queue_is_opened_that_another_has_open_exclusively(world: World) -> Reply | None:
    world.define("Q")
    world.open("Q", OpenOption.INPUT_EXCLUSIVE, as_="other")
    return world.do(Open(object_name="Q", options=IN))


@STORIES.of(Reason.OBJECT_TYPE_ERROR)
def a_topic_is_opened(world: World) -> Reply | None:
    return world.do(Open(object_name="T", object_type="TOPIC", options=OUT))


@STORIES.of(Reason.NAME_NOT_VALID_FOR_TYPE)
def the_queue_manager_is_opened_by_a_name(world: World) -> Reply | None:
    world.did(Open(object_name="", object_type="QMGR", options=INQUIRE))
    return world.do(Open(object_name="QM1", object_type="QMGR", options=INQUIRE))


@STORIES.of(Reason.OPTION_NOT_VALID_FOR_TYPE)
def a_process_is_opened_for_output(world: World) -> Reply | None:
    world.define("P", "PROCESS")
    return world.do(Open(object_name="P", object_type="PROCESS", options=OUT))


@STORIES.of(Reason.OPTIONS_ERROR)
def a_queue_is_opened_for_nothing(world: World) -> Reply | None:
    world.define("Q")
    return world.do(Open(object_name="Q", options=0))


def _deleted_while_open(world: World) -> int:
    """A temporary dynamic queue D whose creator has closed it; the other's handle."""
    world.define("M", "QMODEL")
    mine = world.did(Open(object_name="M", options=OUT, dynamic_q_name="D")).handle
    others = world.open("D", OpenOption.OUTPUT, as_="other")
    world.did(Close(handle=mine))
    return others


@STORIES.of(Reason.Q_DELETED)
def a_message_is_put_to_a_queue_whose_creator_has_closed_it(world: World) -> Reply | None:
    return world.do(Put(handle=_deleted_while_open(world)), "other")


@STORIES.of(Reason.NAME_IN_USE)
def a_queue_is_made_under_the_name_of_a_deleted_one_that_is_still_in_use(world: World) -> Reply | None:
    _deleted_while_open(world)
    return world.do(Open(object_name="M", options=OUT, dynamic_q_name="D"))


@STORIES.of(Reason.PERSISTENT_NOT_ALLOWED)
def a_persistent_message_is_put_to_a_temporary_dynamic_queue(world: World) -> Reply | None:
    world.define("M", "QMODEL")
    handle = world.did(Open(object_name="M", options=OUT)).handle
    return world.do(Put(handle=handle, descriptor=MessageDescriptor(persistence=1)))


@STORIES.of(Reason.Q_TYPE_ERROR)
def a_message_is_put_to_a_model_queue(world: World) -> Reply | None:
    world.define("M", "QMODEL")
    return world.do(Put(q_name="M"))


@STORIES.of(Reason.UNKNOWN_ALIAS_BASE_Q)
def an_alias_of_nothing_is_opened(world: World) -> Reply | None:
    world.define("A", "QALIAS", base_q_name="NONE")
    return world.do(Open(object_name="A", options=OUT))


@STORIES.of(Reason.UNKNOWN_OBJECT_NAME)
def a_queue_is_opened_that_does_not_exist(world: World) -> Reply | None:
    return world.do(Open(object_name="NONE", options=OUT))


# -- the way to another queue manager -----------------------------------------------------------------------


def _put_to_remote(world: World, **attributes: str) -> Reply | None:
    given = {"remote_q_name": "ORDERS", "remote_q_mgr_name": "QM9", **attributes}
    world.define("R", "QREMOTE", **given)
    return world.do(Put(q_name="R"))


def _by_default_through(world: World, name: str) -> Reply | None:
    world.did(Alter(object_type="QMGR", name="", attributes={"def_xmit_q_name": name}))
    return _put_to_remote(world)


@STORIES.of(Reason.REMOTE_Q_NAME_ERROR)
def a_remote_queue_has_no_rname(world: World) -> Reply | None:
    return _put_to_remote(world, remote_q_name="")


@STORIES.of(Reason.UNKNOWN_REMOTE_Q_MGR)
def no_transmission_queue_leads_to_a_remote_queue(world: World) -> Reply | None:
    return _put_to_remote(world)


@STORIES.of(Reason.UNKNOWN_XMIT_Q)
def a_transmission_queue_does_not_exist(world: World) -> Reply | None:
    return _put_to_remote(world, xmit_q_name="NONE")


@STORIES.of(Reason.XMIT_Q_TYPE_ERROR)
def a_transmission_queue_is_a_model(world: World) -> Reply | None:
    world.define("M", "QMODEL")
    return _put_to_remote(world, xmit_q_name="M")


@STORIES.of(Reason.XMIT_Q_USAGE_ERROR)
def a_transmission_queue_is_an_ordinary_one(world: World) -> Reply | None:
    world.define("Q")
    return _put_to_remote(world, xmit_q_name="Q")


@STORIES.of(Reason.UNKNOWN_DEF_XMIT_Q)
def the_default_transmission_queue_does_not_exist(world: World) -> Reply | None:
    return _by_default_through(world, "NONE")


@STORIES.of(Reason.DEF_XMIT_Q_TYPE_ERROR)
def the_default_transmission_queue_is_a_model(world: World) -> Reply | None:
    world.define("M", "QMODEL")
    return _by_default_through(world, "M")


@STORIES.of(Reason.DEF_XMIT_Q_USAGE_ERROR)
def the_default_transmission_queue_is_an_ordinary_one(world: World) -> Reply | None:
    world.define("Q")
    return _by_default_through(world, "Q")


@STORIES.of(Reason.XQH_ERROR)
def a_message_without_a_transmission_header_is_put_to_a_transmission_queue(world: World) -> Reply | None:
    world.define("X", usage="transmission")
    return world.do(Put(q_name="X", data=b"m"))


@STORIES.of(Reason.RESOURCE_PROBLEM)
def one_more_dynamic_queue_is_made_than_a_user_may_have(world: World) -> Reply | None:
    world.define("M", "QMODEL")
    identity = Identity(client_id="guest", application="guest", user="nobody", max_dynamic_queues=1)
    world.sessions["guest"] = world.qm.connect(identity)
    world.did(Open(object_name="M", options=OUT), "guest")
    return world.do(Open(object_name="M", options=OUT), "guest")
