"""The words of the surface and what they become in a call."""

import pytest

from trigmon.client import option_names
from trigmon.mq import enums, errors
from trigmon.mq.descriptors import CCSID_UTF8, MessageDescriptor
from trigmon.mq.enums import GetOption, MatchOption, MsgFlag, MsgType, OpenOption, Persistence, PutOption, ReportOption


def put(**said):
    return option_names.put_parts(said, is_text=False)


def test_every_option_has_its_word():
    for member in PutOption:
        assert put(**{member.name.lower(): True}) == (MessageDescriptor(), member)
    for member in GetOption:
        assert option_names.get_bits({member.name.lower(): True}) == member
    for member in OpenOption:
        assert option_names.open_bits([member.name.lower()]) == member


def test_an_option_that_is_false_is_not_taken():
    assert put(syncpoint=False, new_msg_id=True) == (MessageDescriptor(), PutOption.NEW_MSG_ID)
    assert option_names.get_bits({"wait": False}) == 0


def test_open_takes_words_members_and_their_sum():
    both = OpenOption.INPUT_SHARED | OpenOption.OUTPUT
    assert option_names.open_bits(["input_shared", "OUTPUT"]) == both
    assert option_names.open_bits([OpenOption.INPUT_SHARED, OpenOption.OUTPUT]) == both
    assert option_names.open_bits([both]) == both


@pytest.mark.parametrize("said", [Persistence.PERSISTENT, "persistent", "PERSISTENT", 1])
def test_an_enumerated_field_is_a_member_a_word_or_a_number(said):
    assert put(persistence=said)[0].persistence == 1


def test_a_message_type_may_be_the_applications_own():
    assert put(msg_type=70_000)[0].msg_type == 70_000
    assert put(msg_type="request")[0].msg_type == MsgType.REQUEST


def test_ids_are_text_or_bytes_padded_to_24():
    descriptor, _ = put(msg_id="one", correl_id=b"two")
    assert descriptor.msg_id == b"one".ljust(24, b"\0")
    assert descriptor.correl_id == b"two".ljust(24, b"\0")


def test_text_has_format_mqstr_unless_another_is_given():
    descriptor, _ = option_names.put_parts({}, is_text=True)
    assert (descriptor.format, descriptor.coded_char_set_id) == ("MQSTR", CCSID_UTF8)
    assert option_names.put_parts({"format": "JSON"}, is_text=True)[0].format == "JSON"
    assert option_names.put_parts({"syncpoint": True}, is_text=True)[0].format == "MQSTR"


def test_expiry_is_in_tenths_by_either_name_but_not_by_both():
    assert put(expiry_tenths=600) == put(expiry=600)
    with pytest.raises(TypeError, match="one field"):
        put(expiry_tenths=600, expiry=600)


def test_a_field_that_is_none_is_not_given():
    assert put(priority=None, format=None, msg_id=None) == (MessageDescriptor(), 0)


@pytest.mark.parametrize(
    ("said", "kind", "about"),
    [
        ({"persistence": "very"}, errors.PersistenceError, "'very' is none of not_persistent, persistent, as_q_def"),
        ({"persistence": True}, errors.PersistenceError, "True is none of"),
        ({"persistence": 7}, errors.PersistenceError, "7 is none of"),
        ({"msg_type": "letter"}, errors.MsgTypeError, "'letter' is none of request"),
        ({"feedback": "great"}, errors.FeedbackError, "'great'"),
        ({"priority": "7"}, errors.PriorityError, "whole number"),
        ({"priority": 2**40}, errors.PriorityError, "32 bits"),
        ({"expiry_tenths": 1.5}, errors.ExpiryError, "1.5"),
        ({"format": b"MQSTR"}, errors.FormatError, "text, not bytes"),
        ({"reply_to_q": 5}, errors.MdError, "text, not int"),
        ({"msg_id": "x" * 25}, errors.MsgIdError, "at most 24 bytes, not 25"),
        ({"correl_id": 5}, errors.CorrelIdError, "correl_id"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_its_fields_reason(said, kind, about):
    with pytest.raises(kind, match=about):
        put(**said)


@pytest.mark.parametrize("said", ["alternate_user_authority", "async_response"])
def test_a_word_of_put_that_comes_later_is_refused_by_name(said):
    with pytest.raises(errors.FunctionNotSupported, match=f"{said}: this word of put comes with a later release"):
        put(**{said: True})


@pytest.mark.parametrize("said", ["convert", "set_signal", "mark_browse_handle"])
def test_a_word_of_get_that_comes_later_is_refused_by_name(said):
    with pytest.raises(errors.FunctionNotSupported, match=f"{said}: this word of get"):
        option_names.get_bits({said: True})
    assert option_names.get_bits({said: False}) == 0


def test_a_word_of_open_that_comes_later_is_refused_by_name():
    with pytest.raises(errors.FunctionNotSupported, match="alternate_user_authority"):
        option_names.open_bits(["alternate_user_authority"])


def test_flags_are_given_as_bits_a_word_or_several():
    assert put(msg_flags="msg_in_group")[0].msg_flags == MsgFlag.MSG_IN_GROUP
    assert put(msg_flags=["segment", "last_msg_in_group"])[0].msg_flags == 0x12
    assert put(report=ReportOption.COA)[0].report == put(report="coa")[0].report == 0x100
    with pytest.raises(errors.MsgFlagsError, match="'segmnt' is none of"):
        put(msg_flags="segmnt")
    with pytest.raises(errors.ReportOptionsError, match="none of"):
        put(report=["coa", 5])


def test_a_word_that_is_none_is_a_type_error_with_the_nearest():
    with pytest.raises(TypeError, match="put takes no 'prioritty'; did you mean 'priority'"):
        put(prioritty=5)
    with pytest.raises(TypeError, match="get takes no 'sincpoint'; did you mean 'syncpoint'"):
        option_names.get_bits({"sincpoint": True})
    with pytest.raises(errors.OptionsError, match="'outputt' is none of"):
        option_names.open_bits(["outputt"])


def test_match_names_the_fields_that_must_agree():
    assert option_names.match_parts(None) == {}
    assert option_names.match_parts({"correl_id": b"c"}) == {
        "match": MatchOption.CORREL_ID,
        "correl_id": b"c".ljust(24, b"\0"),
    }
    both = option_names.match_parts({"group_id": "g", "msg_seq_number": 3})
    assert both == {"match": 0xC, "group_id": b"g".ljust(24, b"\0"), "msg_seq_number": 3}
    with pytest.raises(errors.FunctionNotSupported, match="msg_token"):
        option_names.match_parts({"msg_token": b"g"})
    with pytest.raises(TypeError, match="did you mean 'correl_id'"):
        option_names.match_parts({"corel_id": b"c"})


def test_data_is_bytes_of_any_kind_or_text():
    assert [option_names.as_bytes(data) for data in (b"a", bytearray(b"a"), memoryview(b"a"), "a")] == [b"a"] * 4
    with pytest.raises(TypeError, match="bytes or text, not int"):
        option_names.as_bytes(5)


def test_an_objects_type_is_a_word_a_member_or_any_queue():
    assert [option_names.object_type(said) for said in ("queue", "qlocal", enums.ObjectType.PROCESS, 15)] == [
        "queue",
        "QLOCAL",
        "PROCESS",
        "QMGR",
    ]
    with pytest.raises(errors.ObjectTypeError):
        option_names.object_type("topic")


def test_the_words_for_type_checkers_are_the_words_that_are_read():
    assert set(option_names.PutWords.__annotations__) == {*option_names._PUT, *option_names.READERS, "context"} - {
        "none"
    }
    assert set(option_names.GetWords.__annotations__) == set(option_names._GET)


class TestAContextThatIsPassedOn:
    def test_is_named_by_the_queue_it_was_saved_with_or_by_its_handle(self):
        class Opened:
            handle = 7

        assert option_names.handle_of({"context": Opened()}) == 7
        assert option_names.handle_of({"context": 7}) == 7
        assert option_names.handle_of({"context": None}) == option_names.handle_of({}) == 0
        assert option_names.put_parts({"context": Opened(), "pass_all_context": True}, False)[1] == 0x200
