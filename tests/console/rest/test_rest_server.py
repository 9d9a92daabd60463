"""Messages by ``trigmon rest``, and who gets in: passwords, tokens, and connections that prove nobody."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from tests.console.rest.conftest import CSRF, TEXT, Rest, queue
from tests.daemons import define
from tests.tls.authorities import Site
from tests.waiting import until
from trigmon.console.web.web_connections import MOST_STRANGERS
from trigmon.mq.calls import DisplayConnections
from trigmon.mq.replies import Listing
from trigmon.mq.rfh2 import without_typed_properties


def test_a_message_is_put_browsed_listed_and_taken_with_its_headers(rest: Rest, one):
    headers = TEXT | {
        "ibm-mq-md-persistence": "persistent",
        "ibm-mq-md-correlationId": "6f6e65",
        "ibm-mq-md-replyTo": "R",
    }
    status, found, body = rest.ask("POST", queue("R.ONE"), "café", **headers)
    assert (status, body) == (201, "")
    msg_id = found["ibm-mq-md-messageId"]
    with one.connect() as qm, qm.open("R.ONE", "browse") as opened:
        message = opened.get(browse_first=True)
    assert (message.text, message.format, message.msg_id.hex(), message.user_identifier) == (
        *("café", "MQSTR"),
        *(msg_id, "alice"),
    )
    for method, status in (("GET", 200), ("GET", 200), ("DELETE", 200), ("GET", 204), ("DELETE", 204)):
        assert method == "GET" or rest.ask(method, queue("R.ONE"))[0] == 403  # without the header against other sites
        if status == 200:
            listed = rest.ask("GET", queue("R.ONE", what="messagelist"))
            assert json.loads(listed[2]) == {"messages": [{"messageId": msg_id, "format": "MQSTR"}]}
        seen, found, body = rest.ask(method, queue("R.ONE"), **CSRF)
        assert seen == status
        if status == 200:
            assert (body, found["Content-Type"]) == ("café", "text/plain; charset=utf-8")
            assert {name: value for name, value in found.items() if name.startswith("ibm-mq-md")} == {
                "ibm-mq-md-messageid": msg_id,
                "ibm-mq-md-correlationid": "6f6e65" + "00" * 21,
                "ibm-mq-md-expiry": "unlimited",
                "ibm-mq-md-persistence": "persistent",
                "ibm-mq-md-replyto": "R@QM1",
            }


def test_a_message_is_chosen_by_its_id_and_waited_for(rest: Rest):
    ids = [rest.ask("POST", queue("R.TWO", 3), text, **TEXT)[1]["ibm-mq-md-messageId"] for text in ("a", "b", "c")]
    assert ids[0].startswith("ID:")
    assert rest.ask("DELETE", queue("R.TWO", 3) + f"?messageId={ids[1]}&wait=100", **CSRF)[2] == "b"
    assert rest.ask("DELETE", queue("R.TWO", 3) + f"?messageId={ids[1]}&wait=100", **CSRF)[0] == 204
    rest.ask("POST", queue("R.TWO", 3), "mine", **TEXT | {"ibm-mq-md-correlationId": "corr", "ibm-mq-md-priority": "0"})
    corr = b"corr".hex()
    assert rest.ask("DELETE", queue("R.TWO", 3) + f"?correlationId=ID:{corr}", **CSRF)[2] == "mine"
    rest.ask("POST", queue("R%2F%25.ODD", 1), "odd", **TEXT)
    assert rest.ask("DELETE", queue("R%2F%25.ODD", 1), **CSRF)[2] == "odd"


def test_user_properties_go_before_the_text_and_come_back(rest: Rest, one):
    with one.connect() as qm:
        define(qm, "R.PROPERTIES")
    headers = TEXT | {"ibm-mq-usr": r'count;5;integer, place;"a \"b\", c";string, done;TRUE;boolean'}
    assert rest.ask("POST", queue("R.PROPERTIES", 3), "café", **headers)[0] == 201
    with one.connect() as qm, qm.open("R.PROPERTIES", "browse") as opened:
        message = opened.get(browse_first=True)
    of, data, properties = without_typed_properties(message.descriptor, message.data)
    assert (of.format, data.decode()) == ("MQSTR", "café")
    assert properties == {
        "mcd.Msd": ("", "jms_text"),
        "usr.count": ("i4", "5"),
        "usr.place": ("", 'a "b", c'),
        "usr.done": ("boolean", "1"),
    }
    listed = json.loads(rest.ask("GET", queue("R.PROPERTIES", what="messagelist"))[2])
    assert [each["format"] for each in listed["messages"]] == ["MQSTR"]
    seen = rest.ask("GET", queue("R.PROPERTIES"))
    assert (seen[0], seen[2], seen[1]["ibm-mq-usr"]) == (200, "café", None)
    seen = rest.ask("DELETE", queue("R.PROPERTIES", 3), **CSRF)
    assert (seen[0], seen[2], seen[1]["ibm-mq-usr"]) == (200, "café", headers["ibm-mq-usr"])
    assert rest.ask("POST", queue("R.PROPERTIES", 2), "x", **headers)[0] == 400
    assert rest.ask("POST", queue("R.PROPERTIES", 3), "x", **TEXT | {"ibm-mq-usr": "a;b"})[0] == 400


LOGIN = {"Content-Type": "application/json"}


def login(rest: Rest, name: str = "alice", secret: str = "") -> tuple[int, str]:
    """The status of a login, and the cookie."""
    body = json.dumps({"username": name, "password": secret or f"secret of {name}"})
    status, found, _ = rest.ask("POST", "/v3/login", body, user="", **LOGIN)
    return status, found["Set-Cookie"] or ""


def test_a_token_proves_its_user_until_the_user_logs_out(rest: Rest):
    status, cookie = login(rest)
    assert status == 204
    assert cookie.startswith("LtpaToken2")
    attributes = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert attributes == {"httponly", "path=/", "samesite=strict", "secure"}
    token = {"Cookie": cookie.split(";")[0]}
    assert json.loads(rest.ask("GET", "/v3/login", user="", **token)[2]) == {
        "user": [{"name": "alice", "role": ["MQWebUser"], "authenticationMechanism": "form"}]
    }
    assert rest.ask("POST", queue("R.TOKEN"), "by token", user="", **TEXT | token)[0] == 201
    assert rest.ask("DELETE", queue("R.TOKEN"), user="", **token)[0] == 403  # a cookie alone changes nothing
    assert rest.ask("DELETE", queue("R.TOKEN"), user="", **CSRF | token)[2] == "by token"
    assert rest.ask("POST", queue("R.ALICE"), "x", user="bob", **TEXT | token)[0] == 403  # Authorization counts first
    status, found, _ = rest.ask("DELETE", "/v3/login", user="", **CSRF | token)
    assert (status, "Max-Age=0" in found["Set-Cookie"]) == (204, True)
    for method, path in (("GET", "/v3/login"), ("DELETE", "/v3/login"), ("GET", queue("R.TOKEN"))):
        assert rest.ask(method, path, user="", **CSRF | token)[0] == 401


def test_a_login_with_a_wrong_password_begins_no_session(rest: Rest):
    assert login(rest, "alice", "wrong") == (401, "")
    assert rest.ask("POST", "/v3/login", "{}", user="", **TEXT)[0] == 415
    assert rest.ask("POST", "/v3/login", "{}", user="", **LOGIN)[0] == 400
    assert rest.ask("POST", "/v3/login", " " * 5000, user="", **LOGIN)[0] == 413
    assert rest.ask("GET", "/v3/login", user="", Cookie="LtpaToken2=x")[0] == 401
    way = json.loads(rest.ask("GET", "/v1/login")[2])["user"][0]
    assert (way["name"], way["authenticationMechanism"]) == ("alice", "basic")


@pytest.mark.parametrize("method", ["OPTIONS", "PUT", "PATCH"])
def test_other_methods_are_405_with_those_that_are_there(rest: Rest, method: str):
    status, found, body = rest.ask(method, queue("R.ONE"), **CSRF)
    assert (status, found["Allow"]) == (405, "GET, HEAD, POST, DELETE")
    assert json.loads(body)["error"][0]["type"] == "rest"
    assert rest.ask(method, "/v3/nowhere", **CSRF)[0] == 404


def test_connections_that_never_end_their_handshake_keep_nobody_out_and_are_cut(rest: Rest):
    held = []
    for number in range(MOST_STRANGERS + 100):
        held.append(socket.create_connection(("127.0.0.1", rest.port), timeout=60))
        if number % 50 == 0:
            held[-1].sendall(b"\x16\x03\x01")  # the begin of a handshake
            assert rest.ask("GET", queue("R.ONE"))[0] == 204
    until(lambda: sum(map(is_cut, held)) >= 100)  # there are at most so many places
    for link in held:
        until(lambda link=link: is_cut(link))
        link.close()
    assert rest.ask("GET", queue("R.ONE"))[0] == 204


def is_cut(link: socket.socket) -> bool:
    """Says whether the other end has closed the connection."""
    try:
        return link.recv(1, socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def of_alice(one) -> set[int]:
    with one.connect() as qm:
        return {row["connection"] for row in qm.ask(DisplayConnections(), Listing).rows if row["user"] == "alice"}


def test_a_known_user_is_asked_for_the_password_once_a_minute(rest: Rest, one):
    rest.ask("GET", queue("R.ONE"))
    before = of_alice(one)
    for _ in range(5):
        assert rest.ask("GET", queue("R.ONE"))[0] == 204
    after = of_alice(one)
    assert after
    assert len(after - before) <= 1  # the minute may have ended in between


def test_who_has_not_proved_a_user_gets_401_and_what_is_not_allowed_403(rest: Rest):
    status, found, body = rest.ask("GET", queue("R.ONE"), user="eve")
    assert (status, found["WWW-Authenticate"]) == (401, 'Basic realm="trigmon"')
    (error,) = json.loads(body)["error"]
    assert (error["type"], error["msgId"]) == ("rest", "MQWB0104E")
    status, _, body = rest.ask("POST", queue("R.ALICE"), "x", user="bob", **TEXT)
    assert (status, json.loads(body)["error"][0]["reasonCode"]) == (403, 2035)
    assert rest.ask("POST", queue("R.ALICE"), "x", **TEXT)[0] == 201


def test_other_refusals_have_their_statuses_and_reasons(rest: Rest, one):
    with one.connect() as qm:
        define(qm, "R.INHIBITED", inhibit_put="inhibited")
        define(qm, "R.BYTES")
        qm.put("R.BYTES", b"\xff\xfe")

    def reason(answer) -> tuple[int, int]:
        return answer[0], json.loads(answer[2])["error"][0].get("reasonCode", 0)

    assert reason(rest.ask("POST", queue("R.NONE"), "x", **TEXT)) == (404, 2085)
    assert reason(rest.ask("POST", queue("R.INHIBITED"), "x", **TEXT)) == (405, 2051)
    assert reason(rest.ask("GET", "/v2/messaging/qmgr/QM9/queue/R.ONE/message")) == (404, 0)
    assert reason(rest.ask("POST", queue("R.ONE"), "x", **CSRF)) == (415, 0)
    assert reason(rest.ask("POST", queue("R.ONE"), b"\xff", **TEXT)) == (400, 0)
    assert reason(rest.ask("POST", queue("R.ONE"), b"x" * ((4 << 20) + 1), **TEXT)) == (413, 0)
    for method in ("GET", "DELETE"):
        assert reason(rest.ask(method, queue("R.BYTES"), **CSRF)) == (501, 0)
    with one.connect() as qm, qm.open("R.BYTES", "browse") as opened:
        assert opened.get(browse_first=True).backout_count == 0


def test_a_put_by_rest_starts_the_program_of_a_first_queue(rest: Rest, one, tmp_path: Path):
    seen = tmp_path / "seen"
    script = (
        f"DEF PROCESS(R.PROC) APPLICID('/usr/bin/touch {seen}') TMCARG(NO)\n"
        "DEF QL(R.TRIGGER) TRIGGER TRIGTYPE(FIRST) INITQ(SYSTEM.DEFAULT.INITIATION.QUEUE) PROCESS(R.PROC)\n"
    )
    done = one.trigmon("mqsc", input=script)
    assert done.returncode == 0, done.stdout
    assert rest.ask("POST", queue("R.TRIGGER"), "go", **TEXT)[0] == 201
    until(seen.exists, 60.0)


def test_passwords_go_over_nothing_that_others_can_read(one, site: Site):
    refused = one.trigmon("--qmgr", f"tls://localhost:{site.port}/QM1", "rest", "--listen", "0.0.0.0:0")
    assert (refused.returncode, "it needs --certificate and --key" in refused.stderr) == (2, True)
    plain = one.trigmon("rest")
    assert (plain.returncode, "is no address of TLS" in plain.stderr) == (2, True)
