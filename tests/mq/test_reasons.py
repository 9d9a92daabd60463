"""Reasons have IBM's numbers; an exception has one reason; an exception says what happened in words."""

import re
from pathlib import Path

import pytest

import trigmon
from tests.reasons.raised import by_the_product
from trigmon.mq import errors
from trigmon.mq.errors import BY_REASON, MQError, NoMsgAvailable, QFull, UnexpectedError
from trigmon.mq.reasons import CompCode, Reason


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("NONE", 0),
        ("ALIAS_BASE_Q_TYPE_ERROR", 2001),
        ("BACKED_OUT", 2003),
        ("CONNECTION_BROKEN", 2009),
        ("EXPIRY_ERROR", 2013),
        ("GET_INHIBITED", 2016),
        ("HANDLE_NOT_AVAILABLE", 2017),
        ("HOBJ_ERROR", 2019),
        ("SYNCPOINT_LIMIT_REACHED", 2024),
        ("MSG_TOO_BIG_FOR_Q", 2030),
        ("MSG_TOO_BIG_FOR_Q_MGR", 2031),
        ("NO_MSG_AVAILABLE", 2033),
        ("NO_MSG_UNDER_CURSOR", 2034),
        ("NOT_AUTHORIZED", 2035),
        ("NOT_OPEN_FOR_INPUT", 2037),
        ("NOT_OPEN_FOR_SET", 2040),
        ("OBJECT_CHANGED", 2041),
        ("OBJECT_IN_USE", 2042),
        ("OPTION_NOT_VALID_FOR_TYPE", 2045),
        ("OPTIONS_ERROR", 2046),
        ("PRIORITY_EXCEEDS_MAXIMUM", 2049),
        ("PUT_INHIBITED", 2051),
        ("Q_FULL", 2053),
        ("Q_NOT_EMPTY", 2055),
        ("TRUNCATED_MSG_ACCEPTED", 2079),
        ("TRUNCATED_MSG_FAILED", 2080),
        ("UNKNOWN_ALIAS_BASE_Q", 2082),
        ("UNKNOWN_OBJECT_NAME", 2085),
        ("OBJECT_ALREADY_EXISTS", 2100),
        ("DLH_ERROR", 2141),
        ("Q_MGR_STOPPING", 2162),
        ("STORAGE_MEDIUM_FULL", 2192),
        ("UNEXPECTED_ERROR", 2195),
        ("CALL_IN_PROGRESS", 2219),
        ("TM_ERROR", 2265),
        ("FUNCTION_NOT_SUPPORTED", 2298),
        ("BACKOUT_THRESHOLD_REACHED", 2362),
    ],
)
def test_a_reason_has_ibms_number(name, number):
    assert Reason[name] == number


def test_completion_codes_are_ibms():
    assert [(c.name, int(c)) for c in CompCode] == [("OK", 0), ("WARNING", 1), ("FAILED", 2)]


def test_reasons_stand_in_the_order_of_their_numbers():
    numbers = [int(r) for r in Reason]
    assert numbers == sorted(set(numbers))


def test_each_exception_has_a_reason_of_its_own_and_is_raised_or_caught_somewhere():
    assert len(MQError.__subclasses__()) == len(BY_REASON)
    package = Path(trigmon.__file__).parent
    source = "".join(path.read_text() for path in package.rglob("*.py") if path != Path(errors.__file__))
    names = set(re.findall(r"\b[A-Z]\w+", source))
    used = {kind for kind in BY_REASON.values() if kind.__name__ in names or kind.reason in by_the_product()}
    assert [kind.__name__ for kind in BY_REASON.values() if kind not in used] == []


def test_a_reason_without_a_class_is_an_mqerror_that_carries_it():
    error = MQError.of(2004, "body")
    assert type(error) is MQError
    assert error.reason is Reason.BUFFER_ERROR
    assert str(error) == "MQRC_BUFFER_ERROR (2004): body"


@pytest.mark.parametrize("kind", MQError.__subclasses__(), ids=lambda kind: kind.__name__)
def test_an_exception_is_called_as_its_reason_and_its_docstring_is_a_sentence(kind):
    spelled = "".join(part.capitalize() for part in kind.reason.name.split("_"))
    assert kind.__name__ == spelled
    assert re.fullmatch(r"\S.*\.", (kind.__doc__ or "").strip(), re.DOTALL)


def test_every_exception_is_an_mqerror_of_this_module():
    assert all(getattr(errors, kind.__name__) is kind for kind in BY_REASON.values())


def test_an_error_says_constant_number_and_what_it_is_about():
    assert str(QFull("ORDERS.IN")) == "MQRC_Q_FULL (2053): ORDERS.IN"
    assert QFull("ORDERS.IN").about == "ORDERS.IN"


def test_an_error_about_nothing_in_particular_says_its_sentence():
    said = str(NoMsgAvailable())
    assert said.startswith("MQRC_NO_MSG_AVAILABLE (2033): ")
    assert len(said) > len("MQRC_NO_MSG_AVAILABLE (2033): ")


def test_a_number_becomes_its_exception_and_an_unknown_one_the_unexpected_error():
    assert type(MQError.of(2033)) is NoMsgAvailable
    unknown = MQError.of(1, "what?")
    assert type(unknown) is UnexpectedError
    assert unknown.reason is Reason.UNEXPECTED_ERROR
    assert MQError.of(2053, "Q").about == "Q"


def test_reasons_of_commands_carry_the_other_prefix():
    assert Reason.Q_FULL.mq_name == "MQRC_Q_FULL"
    assert Reason.ATTR_VALUE_ERROR.mq_name == "MQRCCF_ATTR_VALUE_ERROR"
