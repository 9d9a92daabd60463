"""``trigmon rest`` as a process by HTTPS, with accounts of the TLS listener and a monitor that starts programs."""

from __future__ import annotations

import base64
import http.client
import json
import signal
import socket
import ssl
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.daemons import define
from tests.tls.authorities import Site
from tests.waiting import until
from trigmon.console.web.web_connections import MOST_STRANGERS
from trigmon.mq.calls import DisplayConnections, SetAuthority
from trigmon.mq.replies import Listing
from trigmon.mq.rfh2 import without_typed_properties
from trigmon.mq.rights import SELF, record_name
from trigmon.tls.accounts import Account
from trigmon.tls.passwords import hashed

CSRF = {"ibm-mq-rest-csrf-token": ""}
TEXT = CSRF | {"Content-Type": "text/plain;charset=utf-8"}


class Rest:
    """The running interface; ``ask`` returns status, headers and body."""

    def __init__(self, site: Site, env: dict[str, str], *options: str) -> None:
        to = f"tls://localhost:{site.port}/QM1?authority={site.directory / 'authority.crt'}"
        argv = [sys.executable, "-m", "trigmon", "--output", "json", "--qmgr", to, "rest", *options]
        self.process = subprocess.Popen(argv, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        self.port = urlsplit(json.loads(line)["url"]).port
        self.context = ssl.create_default_context(cafile=site.directory / "authority.crt")

    def ask(self, method: str, path: str, body: str | bytes | None = None, *, user: str = "alice", **headers: str):
        secret = base64.b64encode(f"{user}:secret of {user}".encode()).decode()
        proof = {"Authorization": f"Basic {secret}"} if user else {}
        link = http.client.HTTPSConnection("localhost", self.port, context=self.context, timeout=60)
        sent = proof | headers
        data = body.encode() if isinstance(body, str) else body
        link.request(method, f"/ibmmq/rest{path}", data, sent)
        answer = link.getresponse()
        found = answer.status, answer.headers, answer.read().decode()
        link.close()
        return found

    def end(self) -> str:
        self.process.send_signal(signal.SIGTERM)
        return self.process.communicate(timeout=60)[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Site:
    made = Site(tmp_path_factory.mktemp("tls"))
    made.let_in(*(Account(user=name, password=hashed(f"secret of {name}")) for name in ("alice", "bob")))
    return made


@pytest.fixture(scope="module")
def one(site: Site, tmp_path_factory):
    """Yields a queue manager with a monitor and a TLS listener."""
    from tests.daemons import queue_managers

    with queue_managers(lambda: tmp_path_factory.mktemp("qm")) as make:
        made = make(settings=site.settings, with_monitor=True)
        with made.connect() as qm:
            for name in ("R.ONE", "R.TWO", "R.TOKEN", "R.ALICE", "R/%.ODD"):
                define(qm, name)
            for profile, rights in (("**", ["put", "get", "browse"]), ("R.SHOWN.**", ["dsp", "inq"])):
                qm.call(SetAuthority(name=str(record_name("queue", profile, "user", "alice")), add=rights))
        yield made


@pytest.fixture(scope="module")
def rest(one, site: Site):
    made = Rest(
        site,
        one.env,
        *("--listen", "127.0.0.1:0", "--certificate", str(site.directory / "server.crt")),
        *("--key", str(site.directory / "server.key")),
    )
    try:
        yield made
        assert made.end() == ""
    finally:
        made.process.kill()


def queue(name: str, version: int = 2, what: str = "message") -> str:
    return f"/v{version}/messaging/qmgr/QM1/queue/{name}/{what}"


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


def test_an_mqsc_command_is_run_with_the_rights_of_its_user(rest: Rest, one):
    def run(command: str, user: str = "alice"):
        body = json.dumps({"type": "runCommand", "parameters": {"command": command}})
        headers = CSRF | {"Content-Type": "application/json"}
        status, _, text = rest.ask("POST", "/v2/admin/action/qmgr/QM1/mqsc", body, user=user, **headers)
        assert status == 200
        return json.loads(text)

    with one.connect() as qm:
        define(qm, "R.SHOWN.A", max_q_depth=7)
        define(qm, "R.SHOWN.B")
    assert run("DISPLAY QLOCAL(R.SHOWN.A) MAXDEPTH") == {
        "commandResponse": [
            {
                "completionCode": 0,
                "reasonCode": 0,
                "text": [
                    "AMQ8409I: Display Queue details.",
                    "   QUEUE(R.SHOWN.A)                        TYPE(QLOCAL)",
                    "   MAXDEPTH(7)",
                ],
            }
        ],
        "overallCompletionCode": 0,
        "overallReasonCode": 0,
    }
    refused = run("DELETE QLOCAL(R.SHOWN.A)")
    assert (refused["overallCompletionCode"], refused["overallReasonCode"]) == (2, 3008)
    assert refused["commandResponse"][0]["text"][0] == "AMQ8135E: Not authorized."
    assert run("DEFN QL(X)")["commandResponse"][0]["text"][0].startswith("AMQ8405I")
    assert rest.ask("GET", "/v2/admin/action/qmgr/QM1/mqsc")[0] == 405


def json_command(rest: Rest, verb: str, noun: str, name: str | None = None, *, version: int = 2, **asked: object):
    """Returns overall completion and reason code and the responses of a command as JSON."""
    said = {"type": "runCommandJSON", "command": verb, "qualifier": noun} | ({"name": name} if name else {}) | asked
    headers = CSRF | {"Content-Type": "application/json"}
    status, _, text = rest.ask("POST", f"/v{version}/admin/action/qmgr/QM1/mqsc", json.dumps(said), **headers)
    assert status == 200, text
    found = json.loads(text)
    return found["overallCompletionCode"], found["overallReasonCode"], found["commandResponse"]


@pytest.fixture
def administrator(one):
    """Gives alice every right to objects for a test."""
    profiles = [("qmgr", SELF), *((kind, "**") for kind in ("queue", "process", "namelist"))]
    names = [str(record_name(kind, profile, "user", "alice")) for kind, profile in profiles]
    with one.connect() as qm:
        for each in names:
            qm.call(SetAuthority(name=each, add=["alladm"]))
        yield
        for each in names:
            qm.call(SetAuthority(name=each, remove=["alladm"]))


@pytest.mark.usefixtures("administrator")
def test_objects_are_defined_displayed_altered_and_deleted_by_json(rest: Rest):
    parameters = {"replace": "yes", "maxdepth": 7, "descr": "it's; one", "trigger": "yes", "trigtype": "depth"}
    made = json_command(rest, "define", "qlocal", "J.Local", parameters=parameters)
    assert made == (
        0,
        0,
        [{"completionCode": 0, "reasonCode": 0, "message": ["AMQ8006I: trigmon queue created."]}],
    )
    shown = ["maxdepth", "descr", "trigger", "trigtype", "curdepth", "initq"]
    assert json_command(rest, "DISPLAY", "QLOCAL", "J.Local", responseParameters=shown)[2] == [
        {
            "completionCode": 0,
            "reasonCode": 0,
            "parameters": {
                "queue": "J.Local",
                "type": "QLOCAL",
                "curdepth": 0,
                "descr": "it's; one",
                "initq": "",
                "maxdepth": 7,
                "trigger": "YES",
                "trigtype": "DEPTH",
            },
        }
    ]
    for noun, name, parameters in (
        ("qalias", "J.ALIAS", {"target": "J.Local"}),
        ("qremote", "J.REMOTE", {"rname": "FAR", "rqmname": "QM2"}),
        ("qmodel", "J.MODEL", {"deftype": "permdyn"}),
        ("process", "J.PROCESS", {"applicid": "/bin/true 'a b'"}),
        ("namelist", "J.NAMES", {"names": ["J.Local", "J.ALIAS"]}),
    ):
        assert json_command(rest, "define", noun, name, parameters=parameters)[:2] == (0, 0)
        (found,) = json_command(rest, "display", noun, name, version=3, responseParameters=["all"])[2]
        wanted = {key: value.upper() if key == "deftype" else value for key, value in parameters.items()}
        assert found["parameters"].items() >= wanted.items()
        assert json_command(rest, "alter", noun, name, parameters={"descr": "again"})[:2] == (0, 0)
        assert json_command(rest, "delete", noun, name)[:2] == (0, 0)
    names = [each["parameters"]["queue"] for each in json_command(rest, "display", "queue", "J.*")[2]]
    assert names == ["J.Local"]
    assert json_command(rest, "alter", "qmgr", parameters={"descr": "by JSON"})[:2] == (0, 0)
    (found,) = json_command(rest, "display", "qmgr", responseParameters=["descr", "ccsid"])[2]
    assert found["parameters"] == {"qmname": "QM1", "ccsid": 1208, "descr": "by JSON"}


@pytest.mark.usefixtures("administrator")
def test_messages_are_counted_and_cleared_by_json(rest: Rest):
    json_command(rest, "define", "qlocal", "R.CLEARED")
    rest.ask("POST", queue("R.CLEARED"), "x", **TEXT)
    (found,) = json_command(rest, "display", "qstatus", "R.CLEARED", responseParameters=["CURDEPTH"])[2]
    assert found["parameters"]["curdepth"] == 1
    chosen = json_command(rest, "display", "qlocal", "R.*", parameters={"where": "curdepth gt 0"})[2]
    assert "R.CLEARED" in [each["parameters"]["queue"] for each in chosen]
    assert json_command(rest, "clear", "qlocal", "R.CLEARED")[2][0]["message"] == ["AMQ8022I: trigmon queue cleared."]
    (found,) = json_command(rest, "display", "qlocal", "R.CLEARED", responseParameters=["CURDEPTH"])[2]
    assert found["parameters"]["curdepth"] == 0


def test_a_json_command_that_fails_has_its_reason_beside_the_overall_one(rest: Rest):
    def failed(*asked: object, **more: object) -> tuple[int, str]:
        overall, reason, (one_response,) = json_command(rest, *asked, **more)
        assert (overall, reason, one_response["completionCode"]) == (2, 3008, 2)
        return one_response["reasonCode"], one_response["message"][0][:8]

    assert failed("display", "qlocal", "R.SHOWN.NONE") == (2085, "AMQ8147E")
    assert failed("delete", "qlocal", "R.ONE") == (2035, "AMQ8135E")
    assert failed("define", "qlocal", "R.NEW", parameters={"maxdepht": 1})[1] == "AMQ8405I"
    assert failed("define", "qlocal", "R.NEW", parameters={"maxdepth": -1})[1] == "AMQ8412E"
    assert failed("define", "qlocal", "R.NEW", parameters={"descr": "\ud800"})[1] == "AMQ8405I"
    assert failed("define", "qlocal")[1] == "AMQ8405I"
    body = '{"type": "runCommandJSON", "command": "display", "qualifier": "qmgr"}'
    headers = CSRF | {"Content-Type": "application/json"}
    assert rest.ask("POST", "/v1/admin/action/qmgr/QM1/mqsc", body, **headers)[0] == 400
    assert rest.ask("POST", "/v2/admin/action/qmgr/QM1/mqsc", " " * (65 << 10), **headers)[0] == 413


def test_a_line_end_of_another_kind_begins_no_second_command(rest: Rest):
    text = json.dumps({"type": "runCommand", "parameters": {"command": "PING QMGR\u2028PING QMGR"}})
    headers = CSRF | {"Content-Type": "application/json"}
    found = json.loads(rest.ask("POST", "/v2/admin/action/qmgr/QM1/mqsc", text, **headers)[2])
    assert found["overallReasonCode"] == 3008
    assert len(found["commandResponse"]) == 1


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
