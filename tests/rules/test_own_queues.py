"""The messages of trigmon's own queues are for administrators: a record there has a file moved and read."""

import pytest

from tests.worlds import World
from trigmon.mq.calls import Inquire, Open, Put, PutMany
from trigmon.mq.enums import OpenOption
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Opened, Refused, WasPut
from trigmon.qmgr.sessions import Identity

OURS = "SYSTEM.TRIGMON.FILES"
USES = (OpenOption.INPUT_SHARED, OpenOption.INPUT_EXCLUSIVE, OpenOption.BROWSE, OpenOption.OUTPUT)


@pytest.fixture
def world(tmp_path):
    made = World("memory", tmp_path)
    made.define("ALIAS", "QALIAS", base_q_name=OURS)
    made.sessions["stranger"] = made.qm.connect(Identity(client_id="c", application="stranger", user="somebody"))
    yield made
    made.qm.stop()


def reason_of(reply):
    return reply.reason if isinstance(reply, Refused) else Reason.NONE


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", [OURS, "ALIAS"])
def test_another_user_opens_none_for_messages(world, name, use):
    assert reason_of(world.do(Open(object_name=name, options=use), "stranger")) == Reason.NOT_AUTHORIZED
    assert isinstance(world.do(Open(object_name=name, options=use), "app"), Opened)


@pytest.mark.parametrize("name", [OURS, "ALIAS"])
@pytest.mark.parametrize("call", [Put(data=b"m"), PutMany(bodies=[b"m"])])
def test_another_user_puts_to_none_by_its_name(world, name, call):
    named = type(call)(**{field: getattr(call, field) for field in call.__struct_fields__} | {"q_name": name})
    assert reason_of(world.do(named, "stranger")) == Reason.NOT_AUTHORIZED
    assert not isinstance(world.do(named, "app"), Refused)


def test_another_user_may_inquire(world):
    handle = world.did(Open(object_name=OURS, options=OpenOption.INQUIRE), "stranger").handle
    assert not isinstance(world.do(Inquire(handle=handle, names=["current_q_depth"]), "stranger"), Refused)


def test_other_system_queues_are_as_open_as_ever(world):
    assert isinstance(world.do(Put(q_name="SYSTEM.DEFAULT.LOCAL.QUEUE", data=b"m"), "stranger"), WasPut)
