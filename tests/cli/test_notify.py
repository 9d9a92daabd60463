"""``trigmon notify``: the ways to send, what is refused before anything is read, and how it ends."""

import json
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import objects, run_cli
from tests.daemons import define
from trigmon.cli.notify import _host_and_port, _value

RUN_FAILED = {"event": "run_failed", "at_ms": 1, "q_name": "ORDERS", "process_name": "P", "text": "it failed"}


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((), "give one of --smtp, --webhook, --webhook-secret and --command"),
        (("--webhook", "http://a", "--command", "b"), "give one of --smtp, --webhook, --webhook-secret and --command"),
        (("--smtp", "localhost"), "--smtp needs --to"),
        (("--webhook", "http://a", "--to", "root"), "--to needs --smtp"),
        (("--smtp", "localhost:mail", "--to", "root"), "the port is a number"),
        (("--smtp", "::1", "--to", "root"), "[ADDRESS]:PORT for an IPv6 address"),
        (("--webhook-secret", "s"), "--webhook-secret s: CREDENTIALS_DIRECTORY is not set"),
        (("--command", "'a"), "--command: No closing quotation"),
        (("--command", " "), "--command is blank"),
        (("--command", "a", "--secret", "s"), "CREDENTIALS_DIRECTORY is not set"),
    ],
)
def test_what_cannot_be_sent_is_refused_with_the_remedy(arguments, error):
    result = run_cli("notify", *arguments, env={"CREDENTIALS_DIRECTORY": None})
    assert result.exit_code == 2
    assert error in result.stderr


def command(*words):
    return " ".join(f"'{word}'" for word in (sys.executable, *words))


def test_what_is_sent_is_counted_and_gone(trigmon, qm, tmp_path):
    define(qm, "SENT")
    qm.put("SENT", json.dumps(RUN_FAILED))
    script = tmp_path / "write.py"
    script.write_text("import pathlib, sys; pathlib.Path(sys.argv[1]).write_bytes(sys.stdin.buffer.read())")
    out = tmp_path / "out"
    way = ("--command", command(script, out), "--json", "--collect", "0")
    result = trigmon("notify", "--queue", "SENT", *way)
    assert result.exit_code == 0, result.stderr
    assert json.loads(out.read_text())["groups"][0]["about"] == "ORDERS"
    (counted,) = objects(trigmon("--output", "json", "notify", "--queue", "SENT", *way))
    assert counted == {"action": "notified", "count": 0}


def test_what_is_not_sent_stays_and_the_command_fails_with_why(trigmon, qm):
    define(qm, "KEPT")
    qm.put("KEPT", json.dumps(RUN_FAILED))
    result = trigmon("notify", "--queue", "KEPT", "--command", command("-c", "exit(7)"), "--collect", "0")
    assert result.exit_code == 1
    assert result.stderr.startswith("trigmon: not sent, the events stay on KEPT: command ")
    assert "status 7" in result.stderr
    assert trigmon("browse", "KEPT").exit_code == 0


def test_a_secret_is_the_content_of_its_file(tmp_path: Path, monkeypatch):
    (tmp_path / "token").write_text("s3cret\n")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert _value("--secret", "token") == "s3cret"


def test_the_address_of_a_web_hook_may_be_a_secret_and_no_error_shows_it(trigmon, qm, tmp_path: Path, monkeypatch):
    define(qm, "HOOKED")
    qm.put("HOOKED", json.dumps(RUN_FAILED))
    for address in ("http://localhost:9/services/T0/s3cret", "localhost/s3cret", "http://localhost:9/s3cret x"):
        (tmp_path / "hook.url").write_text(f"{address}\n")
        monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
        result = trigmon("notify", "--queue", "HOOKED", "--webhook-secret", "hook.url", "--collect", "0")
        assert result.exit_code == 1
        assert "web hook" in result.stderr
        assert "s3cret" not in result.stderr


@pytest.mark.parametrize(
    ("smtp", "expected"),
    [("[::1]:25", ("::1", 25)), ("[::1]", ("::1", 25)), ("a:587", ("a", 587)), ("a", ("a", 25))],
)
def test_a_mail_server_has_a_port_also_behind_an_ipv6_address(smtp, expected):
    assert _host_and_port(smtp) == expected


def test_a_queue_that_is_not_there_is_no_such_object(trigmon):
    result = trigmon("notify", "--queue", "NO.SUCH.QUEUE", "--command", "true")
    assert result.exit_code == 3
