"""Who gets into the web console, and what a browser is told to keep to."""

from __future__ import annotations

import os
import pty
import re
import signal
import socket
import stat
import subprocess
import sys
import time

import pytest

from tests.cli.conftest import run_cli
from tests.console.web.populated import MARKUP, SECRET
from trigmon.console.web.web_access import Keys

ACTIONS = ("retry-run", "cancel-run", "pause-queue", "resume-queue", "start-process", "dead-letters", "alter-queue")


def test_the_address_gives_a_cookie_and_leads_to_the_page_without_the_token(reader):
    answer = reader.enter()
    assert (answer.status, answer.headers["location"]) == (303, "/")
    words = answer.headers["set-cookie"].split("; ")
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(words)
    assert reader.token not in answer.headers["set-cookie"]
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert reader.get("/").status == 200


@pytest.mark.parametrize("path", ["/", "/runs", "/queues/ORDERS", "/static/console.js", "/events/overview", "/none"])
def test_without_the_cookie_there_is_nothing(reader, path):
    for headers in ({}, {"Cookie": "trigmon_web_0=x"}, {"Cookie": f"{reader.cookie}x"}, {"Cookie": '=;"\x7f'}):
        answer = reader.ask("GET", path, **headers)
        assert (answer.status, "QM1" in answer.text) == (403, False)


@pytest.mark.parametrize("token", ["", "x", "A" * 43, "%00", "%ff%fe"])
def test_another_token_opens_nothing(reader, token):
    answer = reader.ask("GET", f"/?token={token}")
    assert (answer.status, answer.headers["set-cookie"]) == (403, None)
    if token:
        assert reader.get(f"/?token={token}").status == 403


def test_a_token_has_256_bits_and_is_another_one_at_each_start():
    tokens = {Keys().token for _ in range(20)}
    assert len(tokens) == 20
    assert all(len(token) == 43 for token in tokens)  # 32 bytes in base64
    assert Keys().cookie_name != Keys().cookie_name


# -- where the token is


def test_it_is_printed_on_a_terminal_and_nowhere_else_unless_it_is_asked_for(populated):
    command, env = [sys.executable, "-m", "trigmon", "web"], populated.daemon.env
    refused = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "standard output is no terminal: give --token-file FILE, or --output json" in refused.stderr
    master, terminal = pty.openpty()
    web = subprocess.Popen(command, env=env, stdout=terminal, stderr=subprocess.DEVNULL)
    try:
        assert re.search(rb"Open http://127\.0\.0\.1:\d+/\?token=[\w-]{43}\r\n", os.read(master, 4096))
    finally:
        web.send_signal(signal.SIGINT)
        web.wait(60)
        os.close(master)
        os.close(terminal)


def test_a_file_of_this_user_alone_holds_it_in_place_of_the_output(populated, web_of, tmp_path):
    file = tmp_path / "token"
    web = web_of(populated.daemon, "--token-file", str(file))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert web.where["url"].endswith("/")
    assert web.token not in str(web.where)
    assert web.get("/").status == 200
    again = web_of(populated.daemon, "--token-file", str(file), "--listen", f"unix:{tmp_path / 'sock'}")
    assert again.where == {"path": str(tmp_path / "sock"), "token_file": str(file)}
    assert again.token == web.token
    assert again.get("/").status == 200


@pytest.mark.parametrize("text", ["", "short", "x" * 42, "x" * 129, "x" * 43 + " y", "\xff" * 43])
def test_a_file_that_holds_no_token_is_refused(tmp_path, text):
    file = tmp_path / "token"
    file.touch(0o600)
    file.write_bytes(text.encode("latin-1"))
    result = run_cli("web", "--token-file", str(file))
    assert (result.exit_code, "holds no token" in result.stderr) == (2, True)


def test_a_file_that_others_may_read_is_refused_and_so_are_a_link_and_a_pipe(tmp_path):
    file = tmp_path / "token"
    file.write_text("x" * 43)
    for mode in (0o640, 0o604, 0o660):
        file.chmod(mode)
        result = run_cli("web", "--token-file", str(file))
        assert (result.exit_code, "chmod 600" in result.stderr) == (2, True)
    file.chmod(0o600)
    (tmp_path / "link").symlink_to(file)
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name in ("link", "pipe"):
        assert run_cli("web", "--token-file", str(tmp_path / name)).exit_code in (1, 2)


# -- who gets in


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "10.0.0.1", "", "[::2]:80"]
)
def test_a_name_that_leads_here_from_another_site_is_refused(reader, host):
    reader.get("/")
    answer = reader.ask("GET", "/", Cookie=reader.cookie, Host=host)
    assert answer.status in (400, 421)
    assert "QM1" not in answer.text


@pytest.mark.parametrize("host", ["127.0.0.1:1", "localhost:8080", "LOCALHOST", "[::1]:99"])
def test_a_forwarded_port_may_have_another_number(reader, host):
    reader.get("/")
    assert reader.ask("GET", "/runs", Cookie=reader.cookie, Host=host).status == 200


def test_the_address_that_is_printed_is_the_one_it_listens_on(populated, web_of):
    web = web_of(populated.daemon, "--listen", "localhost:0")
    assert web.host.startswith("127.0.0.1:")
    assert web.get("/").status == 200


def test_a_further_name_is_let_in_with_a_cookie_for_tls_alone(populated, web_of):
    web = web_of(populated.daemon, "--host", "mq.example")
    answer = web.ask("GET", f"/?token={web.token}", Host="mq.example")
    assert answer.status == 303
    assert "Secure" in answer.headers["set-cookie"]
    assert "Secure" not in web.enter().headers["set-cookie"]


@pytest.mark.parametrize("path", ["/", "/queues/ORDERS", "/none", "/static/console.css", "/dead-letters"])
def test_a_browser_is_made_to_run_keep_and_load_nothing_from_elsewhere(reader, path):
    answer = reader.get(path)
    policy = dict(part.strip().partition(" ")[::2] for part in answer.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert {policy[f"{kind}-src"] for kind in ("style", "script", "img", "connect")} == {"'self'"}
    assert (policy["frame-ancestors"], policy["base-uri"], policy["form-action"]) == ("'none'", "'none'", "'self'")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["access-control-allow-origin"] is None
    assert "://" not in answer.text.replace("http://www.w3.org/2000/svg", "")
    assert answer.headers["server"] is None


@pytest.mark.parametrize("action", ACTIONS)
def test_a_console_that_only_shows_refuses_every_action_by_itself(reader, actor, action):
    csrf = actor.get("/queues/PLAIN").fields("/actions/pause-queue")["csrf"]
    own = reader.get("/queues/PLAIN")
    assert "<form" not in own.text or 'method="post"' not in own.text
    for given in (csrf, reader.token, ""):
        answer = reader.post(f"/actions/{action}", {"csrf": given, "queue": "PLAIN", "run": "0"})
        assert (answer.status, "--allow-actions" in answer.plain) == (403, True)


@pytest.mark.parametrize("action", ACTIONS)
def test_a_form_from_elsewhere_is_refused(actor, populated, action):
    fields = actor.get("/queues/PLAIN").fields("/actions/pause-queue")
    path = f"/actions/{action}"
    wrong = [
        actor.post(path, fields, Origin="http://evil.example"),
        actor.post(path, fields, Origin="null"),
        actor.post(path, fields, Origin=""),
        actor.post(path, fields, Sec_Fetch_Site="cross-site"),
        actor.post(path, fields, Sec_Fetch_Site="same-site"),
        actor.post(path, fields, Cookie=""),
        actor.post(path, fields | {"csrf": ""}),
        actor.post(path, fields | {"csrf": fields["csrf"][:-1] + "x"}),
        actor.ask("POST", path, "queue=PLAIN", Cookie=actor.cookie),
    ]
    assert [answer.status for answer in wrong] == [403] * len(wrong)
    assert actor.ask("GET", path, Cookie=actor.cookie).status == 405
    with populated.daemon.connect() as qm:
        assert not qm.explain("PLAIN").values["pauses"]


def test_a_form_of_any_size_does_not_fill_the_memory(actor):
    fields = actor.get("/queues/PLAIN").fields("/actions/pause-queue")
    assert actor.post("/actions/pause-queue", fields | {"text": "x" * 100_000}).status == 413


def test_data_of_messages_is_withheld_unless_it_is_asked_for(reader, actor):
    paths = ("/queues/PLAIN", "/dead-letters", "/dead-letters?queue=PLAIN", "/", "/runs", "/rehearse?queue=PLAIN")
    for path in paths:
        assert SECRET not in reader.get(path).plain
    assert SECRET in actor.get("/queues/PLAIN").plain
    assert SECRET in actor.get("/dead-letters?queue=PLAIN").plain
    assert "--show-data" in reader.get("/queues/PLAIN").plain


def test_what_a_program_wrote_is_shown_always_and_the_page_says_so(reader, actor, populated):
    path = f"/runs/{populated.run_of('FAILS', 'exited')['run_id']}"
    for web, says_so in ((reader, True), (actor, False)):
        page = web.get(path).plain
        assert "no such column" in page
        assert ("is shown without --show-data too" in page) is says_so
        assert "no such column" in web.get("/").plain  # its last line


@pytest.mark.parametrize(
    "path", ["/queues/ORDERS", "/queues/PLAIN", "/dead-letters?queue=PLAIN", "/rehearse?queue=ORDERS"]
)
def test_what_messages_and_definitions_hold_is_text_and_no_markup(actor, path):
    answer = actor.get(path)
    assert answer.status == 200
    assert MARKUP not in answer.text
    assert "rehearse" in path or MARKUP in answer.plain


@pytest.mark.parametrize(
    "path", [f"/queues/{MARKUP}", f"/runs/{MARKUP}", f"/?note={MARKUP}", f"/runs?outcome={MARKUP}"]
)
def test_what_an_address_holds_is_text_and_no_markup(reader, path):
    answer = reader.get(path.replace("<", "%3C").replace(">", "%3E").replace(" ", "%20").replace("'", "%27"))
    assert MARKUP not in answer.text


@pytest.mark.parametrize(
    "address", ["0.0.0.0:0", "10.1.2.3:80", "[::]:0", "example.com:80", "127.0.0.1", "127.0.0.1:x", "8080"]
)
def test_it_listens_on_loopback_alone(address):
    result = run_cli("--output", "json", "web", "--listen", address)
    assert result.exit_code == 2
    assert "neither a loopback address" in result.stderr


def test_a_unix_socket_is_this_users_alone_and_goes_at_the_end(populated, web_of, tmp_path):
    path = tmp_path / "web.sock"
    left_behind = socket.socket(socket.AF_UNIX)
    left_behind.bind(str(path))
    left_behind.close()
    web = web_of(populated.daemon, "--listen", f"unix:{path}")
    assert web.where["path"] == str(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.stat().st_uid == os.geteuid()
    assert web.get("/").status == 200
    taken = run_cli("--output", "json", "web", "--listen", f"unix:{path}")
    assert (taken.exit_code, "another process listens there" in taken.stderr) == (1, True)
    assert web.end() == ""
    assert not path.exists()


def test_a_file_is_not_taken_for_a_socket(tmp_path):
    file = tmp_path / "file"
    file.write_text("kept")
    assert run_cli("--output", "json", "web", "--listen", f"unix:{file}").exit_code == 1
    assert file.read_text() == "kept"


def test_without_a_queue_manager_it_does_not_start(tmp_path):
    result = run_cli("--output", "json", "web", env={"TRIGMON_HOME": str(tmp_path), "TRIGMON_QMGR": "NONE"})
    assert result.exit_code == 6


def test_without_the_extra_the_error_names_it():
    code = (
        "import sys; sys.modules['jinja2'] = None; from trigmon.cli.main import main; sys.argv = ['x', 'web']; main()"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "pip install 'trigmon[web]'" in result.stderr


def test_a_live_page_does_not_keep_the_process_from_its_end(populated, web_of):
    web = web_of(populated.daemon)
    web.enter()
    with socket.create_connection(web.host.split(":"), 20) as link:
        link.sendall(f"GET /events/overview HTTP/1.1\r\nHost: {web.host}\r\nCookie: {web.cookie}\r\n\r\n".encode())
        assert b"200 OK" in link.recv(4096)
        began = time.monotonic()
        assert web.end() == ""
        assert time.monotonic() - began < 30
