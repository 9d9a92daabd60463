"""What a request of the REST interface says: paths, headers, queries, and the errors of wrong ones."""

from __future__ import annotations

import base64

import pytest

from trigmon.console.rest import json_command, mqsc_action, rest_request
from trigmon.console.rest.login_sessions import LASTS_S, MOST_OF_A_USER, LoginSessions
from trigmon.console.rest.rest_request import RestError, Target
from trigmon.console.rest.user_properties import LONGEST_ANSWER, read_properties, shown
from trigmon.mq.calls import Define
from trigmon.mq.descriptors import MessageDescriptor


def test_a_path_names_version_queue_manager_and_queue():
    queue = "/ibmmq/rest/v2/messaging/qmgr/QM%2F1/queue/A%2FB.%25/message"
    assert rest_request.target(queue) == Target(2, "QM/1", "A/B.%", "message")
    assert rest_request.target("/ibmmq/rest/v3/messaging/qmgr/QM1/queue/Q/messagelist") == Target(
        3, "QM1", "Q", "messagelist"
    )
    assert rest_request.target("/ibmmq/rest/v1/admin/action/qmgr/QM1/mqsc") == Target(1, "QM1", "", "mqsc")
    assert rest_request.target("/ibmmq/rest/v3/login") == Target(3, "", "", "login")


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/ibmmq/rest/v4/messaging/qmgr/QM1/queue/Q/message", "/ibmmq/rest/v1/messaging/qmgr/QM1/queue/Q"),
        *("/ibmmq/rest/v1/messaging/qmgr/QM1/queue/A/B/message", "/x/ibmmq/rest/v1/messaging/qmgr/QM1/queue/Q/message"),
    ],
)
def test_another_path_is_404(path: str):
    with pytest.raises(RestError) as refused:
        rest_request.target(path)
    assert refused.value.status == 404


@pytest.mark.parametrize(
    ("version", "headers", "words"),
    [
        (2, {}, {"persistence": "not_persistent"}),
        (1, {"ibm-mq-md-persistence": "persistent"}, {"persistence": "persistent"}),
        (2, {"ibm-mq-md-expiry": "60000"}, {"persistence": "not_persistent", "expiry_tenths": 600}),
        (2, {"ibm-mq-md-expiry": "unlimited"}, {"persistence": "not_persistent"}),
        (2, {"ibm-mq-md-correlationid": "6f"}, {"persistence": "not_persistent", "correl_id": b"o" + bytes(23)}),
        (3, {"ibm-mq-md-correlationid": "ID:6f"}, {"persistence": "not_persistent", "correl_id": b"o" + bytes(23)}),
        (3, {"ibm-mq-md-correlationid": "mine"}, {"persistence": "not_persistent", "correl_id": "mine"}),
        (3, {"ibm-mq-md-priority": "7"}, {"persistence": "not_persistent", "priority": 7}),
        (
            2,
            {"ibm-mq-md-replyto": "R.Q@QM2"},
            {"persistence": "not_persistent", "reply_to_q": "R.Q", "reply_to_q_mgr": "QM2"},
        ),
    ],
)
def test_headers_are_options_of_the_put(version: int, headers, words):
    assert rest_request.put_words(version, headers) == words


@pytest.mark.parametrize(
    ("version", "header", "value"),
    [
        (2, "ibm-mq-md-persistence", "maybe"),
        (2, "ibm-mq-md-expiry", "soon"),
        (2, "ibm-mq-md-expiry", "-1"),
        (2, "ibm-mq-md-correlationid", "no hex"),
        (2, "ibm-mq-md-correlationid", "0" * 49),
        (3, "ibm-mq-md-correlationid", "x" * 25),
        (2, "ibm-mq-md-priority", "5"),
        (3, "ibm-mq-md-priority", "10"),
        (2, "ibm-mq-md-replyto", "a b"),
        (2, "ibm-mq-md-nonsense", "1"),
        (2, "ibm-mq-usr", "a;1;integer"),
    ],
)
def test_a_wrong_header_is_400_and_named(version: int, header: str, value: str):
    with pytest.raises(RestError, match=header) as refused:
        rest_request.put_words(version, {header: value})
    assert refused.value.status == 400


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("", {}),
        ("count;5;integer", {"usr.count": ("i4", "5")}),
        (
            r'a;-7;i2 , b ; "x; y, \"z\" caf\u00e9" ; string,c;TRUE;boolean',
            {"usr.a": ("i2", "-7"), "usr.b": ("", 'x; y, "z" café'), "usr.c": ("boolean", "1")},
        ),
        ("d; plain text ;string, e;1.5;double", {"usr.d": ("", "plain text"), "usr.e": ("r8", "1.5")}),
        ("caf;café;string".encode().decode("latin-1"), {"usr.caf": ("", "café")}),
    ],
)
def test_user_properties_have_names_values_and_types(header: str, found):
    assert read_properties([header]) == found
    assert read_properties([shown(found)]) == found


@pytest.mark.parametrize(
    "header",
    [
        *("a", "a;1", "a;1;number", "1a;1;integer", "a.b;1;integer", "a;x;integer", "a;300;byte"),
        *("a;1;integer,a;2;integer", "a;nan;double", "a;maybe;boolean", 'a;"1";integer', 'a;"x;string'),
        *(r'a;"\u0000";string', "a;\xff;string", r'a;"\ud800";string', "a;1;integer;"),
        *("a;" + " " * 60_000, "a;" + '"' * 60_001 + ";string"),
    ],
)
def test_user_properties_that_are_none_are_400(header: str):
    with pytest.raises(RestError, match="ibm-mq-usr") as refused:
        read_properties([header])
    assert refused.value.status == 400


def test_user_properties_of_other_programs_end_no_line_and_are_not_cut():
    found = {"usr.a": ("", "x\r\ny: z"), "mcd.Msd": ("", "jms_text"), "usr.b": ("i4", "no number")}
    assert shown(found) == r'a;"x\r\ny: z";string, b;"no number";string'
    with pytest.raises(RestError) as refused:
        shown({"usr.a": ("", "x" * LONGEST_ANSWER)})
    assert refused.value.status == 501


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS"])
def test_a_method_that_a_resource_has_not_is_405_and_those_it_has_are_named(method: str):
    for kind, allowed in rest_request.METHODS.items():
        with pytest.raises(RestError) as refused:
            rest_request.check_method(method, kind)
        assert (refused.value.status, refused.value.headers) == (405, {"Allow": ", ".join(allowed)})


@pytest.mark.parametrize(
    "body",
    [
        *("", "[]", "1", '{"username": "a"}', '{"username": 1, "password": "x"}', '{"username": "", "password": "x"}'),
        *(r'{"username": "a", "password": "\ud800"}', "[" * 3000),
    ],
)
def test_a_login_without_user_and_password_is_400(body: str):
    with pytest.raises(RestError) as refused:
        rest_request.credentials(body)
    assert refused.value.status == 400
    assert rest_request.credentials('{"username": "a", "password": "b:c"}') == ("a", "b:c")


def test_a_token_stands_for_its_user_until_it_ends():
    logins = LoginSessions()
    token = logins.begin("alice", "sécret", 100.0)
    assert logins.account(token, 100.0 + LASTS_S - 1) == ("alice", "sécret")
    for other in ("", token[:-1], token + "x", "\udcff"):
        assert logins.account(other, 100.0) is None
    assert logins.account(token, 100.0 + LASTS_S) is None
    ended = logins.begin("alice", "", 100.0)
    assert logins.account(ended, 100.0) == ("alice", "")
    logins.end(ended)
    assert logins.account(ended, 100.0) is None
    assert LoginSessions().cookie != logins.cookie


def test_a_user_who_logs_in_again_and_again_ends_no_session_but_the_own_oldest():
    logins = LoginSessions()
    bobs = logins.begin("bob", "b", 0.0)
    tokens = [logins.begin("alice", f"a{number}", 1.0) for number in range(MOST_OF_A_USER + 3)]
    assert logins.account(bobs, 1.0) == ("bob", "b")
    assert [logins.account(token, 1.0) for token in tokens[:3]] == [None] * 3
    assert all(logins.account(token, 1.0) for token in tokens[3:])


def test_the_memory_of_the_sessions_tells_no_password_and_no_token():
    logins = LoginSessions()
    token = logins.begin("alice", "the password", 0.0)
    kept = repr(vars(logins))
    assert "alice" in kept
    assert "the password" not in kept
    assert token not in kept


@pytest.mark.parametrize(
    "value", ["", "Basic", "Basic ???", "Bearer abc", "Basic " + base64.b64encode(b"nocolon").decode()]
)
def test_without_basic_authentication_it_is_401(value: str):
    with pytest.raises(RestError) as refused:
        rest_request.account({"authorization": value})
    assert refused.value.status == 401
    assert rest_request.account({"authorization": "basic " + base64.b64encode(b"a:b:c").decode()}) == ("a", "b:c")


def test_a_header_takes_no_text_of_another_program_that_could_end_its_line():
    one = MessageDescriptor(reply_to_q="A\r\nX: y", reply_to_q_mgr="QM1", priority=4, expiry=50, persistence=1)
    assert rest_request.described(3, one) == {
        "ibm-mq-md-messageId": "ID:" + "00" * 24,
        "ibm-mq-md-persistence": "persistent",
        "ibm-mq-md-expiry": "5000",
        "ibm-mq-md-priority": "4",
    }
    assert rest_request.described(2, MessageDescriptor(reply_to_q="R"))["ibm-mq-md-replyTo"] == "R"


@pytest.mark.parametrize(
    ("kind", "status"),
    [("", 415), ("image/png", 415), ("text/plain;charset=latin-1", 415), ("application/json; charset=UTF-8", 0)],
)
def test_a_body_is_text_in_utf8(kind: str, status: int):
    if not status:
        rest_request.check_type({"content-type": kind})
        return
    with pytest.raises(RestError) as refused:
        rest_request.check_type({"content-type": kind})
    assert refused.value.status == status


@pytest.mark.parametrize(
    "body",
    [
        *("", "[" * 100_000, "[]", "1" * 5000, '{"type": "runCommandJSON"}', '{"type": "runCommand"}'),
        *(
            '{"type": "runCommand", "parameters": {"command": 1}}',
            '{"type": "runCommand", "parameters": {"command": " "}}',
        ),
        '{"type": "runCommand", "parameters": {"command": "PING QMGR\\nPING QMGR"}}',
        '{"type": "runCommand", "parameters": {"command": "END"}}',
    ],
)
def test_a_body_that_asks_for_no_command_is_400(body: str):
    with pytest.raises(RestError) as refused:
        mqsc_action.action_of(body, 2)
    assert refused.value.status == 400


def json_command_of(**asked: object) -> str:
    made = json_command.command_of(asked)
    assert made.error is None, made.error
    return made.text


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"command": "display", "qualifier": "qmgr"}, "DISPLAY QMGR"),
        (
            {"command": "display", "qualifier": "qlocal", "name": "a.*", "responseParameters": ["curdepth", "all"]},
            "DISPLAY QLOCAL('a.*') CURDEPTH ALL",
        ),
        (
            {"command": "define", "qualifier": "ql", "name": "Q", "parameters": {"descr": "it's; x", "maxdepth": 7}},
            "DEFINE QL('Q') DESCR('it''s; x') MAXDEPTH('7')",
        ),
        (
            {"command": "define", "qualifier": "namelist", "name": "N", "parameters": {"names": ["A", "b"]}},
            "DEFINE NAMELIST('N') NAMES('A' 'b')",
        ),
        (
            {
                "command": "define",
                "qualifier": "qlocal",
                "name": "Q",
                "parameters": {"replace": "yes", "trigger": False, "noshare": "no", "hardenbo": None},
            },
            "DEFINE QLOCAL('Q') REPLACE NOTRIGGER SHARE HARDENBO",
        ),
        (
            {"command": "display", "qualifier": "qlocal", "name": "*", "parameters": {"where": "curdepth gt 0"}},
            "DISPLAY QLOCAL('*') WHERE('curdepth' 'gt' '0')",
        ),
        (
            {"command": "delete", "qualifier": "qlocal", "name": "Q", "parameters": {"purge": "", "ignstate": True}},
            "DELETE QLOCAL('Q') PURGE IGNSTATE('YES')",
        ),
    ],
)
def test_a_json_command_is_one_line_of_mqsc_with_its_values_in_quotes(asked: dict[str, object], text: str):
    assert json_command_of(**asked) == text


@pytest.mark.parametrize(
    "change",
    [
        *({"command": "display qlocal(*)"}, {"command": "END"}, {"command": None}, {"qualifier": "qlocal;"}),
        *({"name": 1}, {"parameters": []}, {"parameters": {"descr(": "x"}}, {"parameters": {"descr": {}}}),
        *({"parameters": {"descr": 1.5}}, {"parameters": {"trigger": "maybe"}}, {"parameters": {"names": [True]}}),
        *({"responseParameters": "all"}, {"responseParameters": ["all) x"]}),
    ],
)
def test_a_json_command_of_another_shape_is_400(change: dict[str, object]):
    with pytest.raises(RestError) as refused:
        json_command.command_of({"command": "display", "qualifier": "qlocal", "name": "*"} | change)
    assert refused.value.status == 400


@pytest.mark.parametrize(
    "descr", ["x') MAXDEPTH(1", "x'; DELETE QLOCAL('B", "x\nDELETE QLOCAL(B)", "x' +\n'", "\ud800"]
)
def test_a_value_ends_neither_its_quotes_nor_its_command(descr: str):
    asked = {"command": "define", "qualifier": "qlocal", "name": "Q", "parameters": {"descr": descr}}
    made = json_command.command_of(asked)
    if made.error is None:
        (call,) = made.calls
        assert call == Define(object_type="QLOCAL", name="Q", attributes={"description": descr})
    else:
        assert "\n" in descr or "\ud800" in descr
        assert not made.calls


@pytest.mark.parametrize("number", ["9" * 5000, "", "-1", "1.5", "x"])
def test_a_number_of_the_query_that_is_none_is_400(number: str):
    for read in (rest_request.limit, lambda query: rest_request.matched(2, query)):
        with pytest.raises(RestError) as refused:
            read({"limit": number, "wait": number})
        assert refused.value.status == 400
