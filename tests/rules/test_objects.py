"""Objects as calls meet them: what may be opened for what, inquired and set, and where a dead letter can go."""

import pytest

from tests.worlds import World
from trigmon.mq.attributes import ATTRIBUTES
from trigmon.mq.calls import Alter, Backout, Close, Get, Inquire, Open, Put, Set
from trigmon.mq.enums import GetOption, ObjectType, OpenOption
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Refused

IN, OUT, INQUIRE, SET = OpenOption.INPUT_SHARED, OpenOption.OUTPUT, OpenOption.INQUIRE, OpenOption.SET
EXCLUSIVE, BROWSE = OpenOption.INPUT_EXCLUSIVE, OpenOption.BROWSE


@pytest.fixture
def world(tmp_path):
    made = World("memory", tmp_path)
    made.define("Q")
    made.define("ALIAS", "QALIAS", base_q_name="Q")
    yield made
    made.qm.stop()


def refusal(world, call, as_="app"):
    reply = world.do(call, as_)
    assert isinstance(reply, Refused), reply
    return Reason(reply.reason)


class TestOpening:
    def test_a_process_and_the_queue_manager_are_opened_to_inquire(self, world):
        world.define("P", "PROCESS", appl_id="/bin/true")
        process = world.did(Open(object_name="P", object_type="PROCESS", options=INQUIRE))
        assert world.did(Inquire(handle=process.handle, names=["appl_id"])).values == {"appl_id": "/bin/true"}
        manager = world.did(Open(object_name="", object_type="QMGR", options=INQUIRE))
        assert world.did(Inquire(handle=manager.handle, names=["MAXHANDS"])).values == {"max_handles": 256}

    @pytest.mark.parametrize(
        ("call", "reason"),
        [
            (Open(object_name="NONE", options=IN), Reason.UNKNOWN_OBJECT_NAME),
            (Open(object_name="NONE", object_type="PROCESS", options=INQUIRE), Reason.UNKNOWN_OBJECT_NAME),
            (Open(object_name="Q", object_type="BOX", options=INQUIRE), Reason.OBJECT_TYPE_ERROR),
            (Open(object_name="", object_type="QMGR", options=SET), Reason.OPTION_NOT_VALID_FOR_TYPE),
            (Open(object_name="QM1", object_type="QMGR", options=INQUIRE), Reason.NAME_NOT_VALID_FOR_TYPE),
            (Open(object_name="Q", options=0), Reason.OPTIONS_ERROR),
            (Open(object_name="Q", options=IN | EXCLUSIVE), Reason.OPTIONS_ERROR),
            (Open(object_name="Q", options=1 << 30), Reason.OPTIONS_ERROR),
        ],
    )
    def test_what_cannot_be_opened_is_refused_for_its_reason(self, world, call, reason):
        assert refusal(world, call) == reason

    @pytest.mark.parametrize("object_type", ["QLOCAL", "QALIAS", "QREMOTE", "QMODEL"])
    def test_a_queue_opened_as_a_type_it_has_is_inquired_of_and_as_another_it_is_unknown(self, world, object_type):
        world.define("REMOTE", "QREMOTE")
        world.define("MODEL", "QMODEL")
        names = {"QLOCAL": "Q", "QALIAS": "ALIAS", "QREMOTE": "REMOTE", "QMODEL": "MODEL"}
        for kind, name in names.items():
            call = Open(object_name=name, object_type=object_type, options=INQUIRE)
            if kind == object_type:
                handle = world.did(call).handle
                assert world.did(Inquire(handle=handle)).values["object_type"] == object_type
                assert refusal(world, Put(handle=handle)) == Reason.NOT_OPEN_FOR_OUTPUT
            else:
                assert refusal(world, call) == Reason.UNKNOWN_OBJECT_NAME

    def test_an_alias_of_nothing_and_an_alias_of_an_alias_say_so(self, world):
        world.define("LOOSE", "QALIAS", base_q_name="GONE")
        world.define("SECOND", "QALIAS", base_q_name="ALIAS")
        assert refusal(world, Open(object_name="LOOSE", options=OUT)) == Reason.UNKNOWN_ALIAS_BASE_Q
        assert refusal(world, Open(object_name="SECOND", options=OUT)) == Reason.ALIAS_BASE_Q_TYPE_ERROR

    def test_exclusive_input_and_any_other_input_exclude_each_other(self, world):
        first = world.open("Q", IN, as_="a")
        assert refusal(world, Open(object_name="ALIAS", options=EXCLUSIVE)) == Reason.OBJECT_IN_USE
        world.did(Close(handle=first), "a")
        world.open("ALIAS", EXCLUSIVE, as_="a")
        assert refusal(world, Open(object_name="Q", options=IN)) == Reason.OBJECT_IN_USE
        world.open("Q", BROWSE)

    def test_a_queue_that_cannot_be_shared_is_opened_exclusively_whatever_is_asked(self, world):
        world.define("MINE", shareability="not_shareable")
        world.open("MINE", IN, as_="a")
        assert refusal(world, Open(object_name="MINE", options=IN)) == Reason.OBJECT_IN_USE

    def test_a_connection_has_no_more_handles_than_maxhands(self, world):
        world.did(Alter(object_type="QMGR", name="QM1", attributes={"max_handles": 2}), "operator")
        world.open("Q", OUT)
        handle = world.open("Q", OUT)
        assert refusal(world, Open(object_name="Q", options=OUT)) == Reason.HANDLE_NOT_AVAILABLE
        world.did(Close(handle=handle))
        world.open("Q", OUT)


class TestInquireAndSet:
    @pytest.mark.parametrize(
        ("options", "call", "reason"),
        [
            (OUT, Inquire(handle=0), Reason.NOT_OPEN_FOR_INQUIRE),
            (OUT, Set(handle=0, attributes={}), Reason.NOT_OPEN_FOR_SET),
            (INQUIRE, Inquire(handle=0, names=["no_such"]), Reason.SELECTOR_ERROR),
            (INQUIRE, Inquire(handle=0, names=["appl_id"]), Reason.SELECTOR_ERROR),
            (INQUIRE, Inquire(handle=0, names=[2001]), Reason.SELECTOR_ERROR),
            (INQUIRE, Inquire(handle=0, names=[0]), Reason.SELECTOR_ERROR),
            (SET, Set(handle=0, attributes={"no_such": 1}), Reason.SELECTOR_ERROR),
            (SET, Set(handle=0, attributes={"appl_id": "x"}), Reason.SELECTOR_ERROR),
            (SET, Set(handle=0, attributes={15: 1}), Reason.SELECTOR_ERROR),
            (SET, Set(handle=0, attributes={9: 7}), Reason.INHIBIT_VALUE_ERROR),
            (SET, Set(handle=0, attributes={"max_q_depth": 1}), Reason.SELECTOR_ERROR),
            (SET, Set(handle=0, attributes={"trigger_control": "maybe"}), Reason.TRIGGER_CONTROL_ERROR),
            (SET, Set(handle=0, attributes={"trigger_type": 99}), Reason.TRIGGER_TYPE_ERROR),
            (SET, Set(handle=0, attributes={"trigger_depth": 0}), Reason.TRIGGER_DEPTH_ERROR),
            (SET, Set(handle=0, attributes={"trigger_msg_priority": 10}), Reason.TRIGGER_MSG_PRIORITY_ERR),
            (SET, Set(handle=0, attributes={"inhibit_get": 7}), Reason.INHIBIT_VALUE_ERROR),
            (INQUIRE, Inquire(handle=0, names=[3] * 257), Reason.SELECTOR_LIMIT_EXCEEDED),
            (SET, Set(handle=0, attributes=dict.fromkeys(range(257), 0)), Reason.SELECTOR_LIMIT_EXCEEDED),
        ],
    )
    def test_what_cannot_be_asked_or_set_is_refused_for_its_reason(self, world, options, call, reason):
        handle = world.open("Q", options)
        assert refusal(world, type(call)(**{**as_dict(call), "handle": handle})) == reason

    def test_one_wrong_value_sets_none(self, world):
        handle = world.open("Q", INQUIRE, SET)
        refusal(world, Set(handle=handle, attributes={"trigger_control": "on", "trigger_depth": 0}))
        assert world.did(Inquire(handle=handle, names=["trigger_control"])).values == {"trigger_control": "off"}

    def test_an_alias_alone_is_set_and_its_base_is_not(self, world):
        alias, base = world.open("ALIAS", SET, INQUIRE), world.open("Q", INQUIRE)
        world.did(Set(handle=alias, attributes={"inhibit_get": "inhibited"}))
        assert world.did(Inquire(handle=alias, names=["inhibit_get"])).values == {"inhibit_get": "inhibited"}
        assert world.did(Inquire(handle=base, names=["inhibit_get"])).values == {"inhibit_get": "allowed"}

    def test_an_alias_opened_for_messages_too_is_still_inquired_of_itself(self, world):
        world.define("LOW", "QALIAS", base_q_name="Q", def_priority=3)
        handle = world.open("LOW", IN, OUT, INQUIRE, SET)
        assert world.did(Inquire(handle=handle, names=["name", "q_type", "def_priority", "base_q_name"])).values == {
            "name": "LOW",
            "q_type": "alias",
            "def_priority": 3,
            "base_q_name": "Q",
        }
        world.did(Set(handle=handle, attributes={"inhibit_put": "inhibited"}))
        assert refusal(world, Put(handle=handle)) == Reason.PUT_INHIBITED
        world.put("Q")
        assert refusal(world, Set(handle=handle, attributes={"trigger_control": "on"})) == Reason.SELECTOR_ERROR

    def test_what_only_another_type_of_queue_has_is_not_applicable_and_a_warning(self, world):
        reply = world.did(Inquire(handle=world.open("ALIAS", INQUIRE), names=["max_q_depth", 2008, "CURDEPTH", 2016]))
        assert reply.warning == Reason.SELECTOR_NOT_FOR_TYPE
        wanted = {"max_q_depth": -1, "initiation_q_name": "*" * 48, "current_q_depth": -1, "name": "ALIAS"}
        assert reply.values == wanted
        reply = world.did(Inquire(handle=world.open("Q", INQUIRE), names=["TARGET", "trigger_data"]))
        assert (reply.values, reply.warning) == ({"base_q_name": "*" * 48, "trigger_data": ""}, 2068)

    def test_every_attribute_is_inquired_by_ibms_selector_as_by_its_name(self, world):
        world.define("P", "PROCESS", appl_id="/bin/true")
        world.define("REMOTE", "QREMOTE", remote_q_name="X")
        for name, kind in {"Q": "QLOCAL", "ALIAS": "QALIAS", "REMOTE": "QREMOTE", "P": "PROCESS", "": "QMGR"}.items():
            handle = world.did(Open(object_name=name, object_type=kind, options=INQUIRE)).handle
            values = world.did(Inquire(handle=handle)).values
            numbered = [a for a in ATTRIBUTES[ObjectType[kind]].values() if a.selector]
            assert numbered
            for attribute in numbered:
                said = world.did(Inquire(handle=handle, names=[attribute.selector])).values
                assert said == {attribute.name: values[attribute.name]}

    def test_of_an_attribute_named_twice_the_last_value_is_set(self, world):
        handle = world.open("Q", INQUIRE, SET)
        world.did(Set(handle=handle, attributes={"trigger_depth": 3, "TRIGDPTH": 4, 29: 5}))
        assert world.did(Inquire(handle=handle, names=[29])).values == {"trigger_depth": 5}

    def test_what_is_set_is_no_part_of_a_unit_of_work_and_alters_no_date(self, world):
        handle = world.open("Q", INQUIRE, SET)
        before = world.did(Inquire(handle=handle, names=["altered_ms"])).values
        world.clock.advance(5000)
        world.put("Q", unit=1)
        world.did(Set(handle=handle, attributes={"trigger_data": "new"}))
        world.did(Backout(unit=1))
        assert world.did(Inquire(handle=handle, names=["trigger_data"])).values == {"trigger_data": "new"}
        assert world.did(Inquire(handle=handle, names=["altered_ms"])).values == before

    def test_a_model_queue_opened_to_set_sets_the_queue_it_makes(self, world):
        world.define("M", "QMODEL")
        opened = world.did(Open(object_name="M", options=SET | INQUIRE | IN))
        world.did(Set(handle=opened.handle, attributes={"trigger_depth": 7}))
        assert world.did(Inquire(handle=opened.handle, names=["trigger_depth"])).values == {"trigger_depth": 7}
        model = world.did(Open(object_name="M", object_type="QMODEL", options=INQUIRE))
        assert world.did(Inquire(handle=model.handle, names=["trigger_depth"])).values == {"trigger_depth": 1}

    def test_an_unknown_handle_is_no_handle(self, world):
        for call in (Inquire(handle=99), Set(handle=99, attributes={}), Close(handle=99), Get(handle=99)):
            assert refusal(world, call) == Reason.HOBJ_ERROR

    def test_a_handle_belongs_to_its_connection(self, world):
        handle = world.open("Q", IN, as_="a")
        assert refusal(world, Get(handle=handle, options=GetOption.WAIT), "b") == Reason.HOBJ_ERROR


class TestADeadLetter:
    """A trigger message that its initiation queue does not take."""

    @pytest.fixture
    def triggered(self, world):
        world.define("DEAD")
        world.define("INITQ", max_q_depth=1)
        world.define("P", "PROCESS", appl_id="/bin/true")
        every = {"trigger_control": "on", "trigger_type": "every", "initiation_q_name": "INITQ", "process_name": "P"}
        world.define("T", **every)
        world.did(Alter(object_type="QMGR", name="QM1", attributes={"dead_letter_q_name": "DEAD"}), "operator")
        world.open("INITQ", IN, as_="monitor")
        world.put("T")
        return world

    def test_it_lies_on_the_dead_letter_queue_with_its_reason(self, triggered):
        triggered.put("T")
        dead = triggered.did(Get(handle=triggered.open("DEAD", IN)))
        assert (dead.descriptor.format, len(dead.data)) == ("MQDEAD", 172 + 684)
        assert int.from_bytes(dead.data[8:12], "little") == Reason.Q_FULL

    @pytest.mark.parametrize(
        "attributes",
        [{"max_msg_length": 100}, {"max_q_depth": 0}, {"inhibit_put": "inhibited"}],
    )
    def test_it_is_dropped_and_logged_where_the_dead_letter_queue_does_not_take_it_either(self, triggered, attributes):
        triggered.did(Alter(object_type="QLOCAL", name="DEAD", attributes=attributes), "operator")
        triggered.did(Put(q_name="T"))
        assert [name for name, _ in triggered.telling.dropped] == ["T"]

    def test_it_is_dropped_and_logged_where_no_dead_letter_queue_is_named(self, triggered):
        triggered.did(Alter(object_type="QMGR", name="QM1", attributes={"dead_letter_q_name": ""}), "operator")
        triggered.put("T")
        assert len(triggered.telling.dropped) == 1


def as_dict(call):
    return {name: getattr(call, name) for name in call.__struct_fields__}
