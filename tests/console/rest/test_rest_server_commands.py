"""MQSC by ``trigmon rest``, as text and as JSON: commands are run with the rights of their user."""

from __future__ import annotations

import json

import pytest

from tests.console.rest.conftest import CSRF, TEXT, Rest, queue
from tests.daemons import define
from trigmon.mq.calls import SetAuthority
from trigmon.mq.rights import SELF, record_name


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
