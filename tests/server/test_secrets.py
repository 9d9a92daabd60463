"""No password, private key or token is in a log, a command line, the status, an error or a core dump."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

import trigmon
from tests.cli.conftest import objects, run_cli
from tests.tls.authorities import Site
from tests.waiting import until
from trigmon.mq.calls import Define, Delete
from trigmon.tls.accounts import Account

CORE_DUMPED = 0x80


def ended_with(pid):
    """Returns the status of waitpid(2) behind SIGABRT, by which a process has its core dumped."""
    resource.prlimit(pid, resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    os.kill(pid, signal.SIGABRT)
    return os.waitpid(pid, 0)[1]


@pytest.fixture
def cores(tmp_path, monkeypatch):
    """Returns a directory in which core dumps are written, as a process without secrets shows."""
    monkeypatch.chdir(tmp_path)
    argv = [sys.executable, "-c", "import sys; print(1, flush=True); sys.stdin.read()"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as plain:
        plain.stdout.readline()
        status = ended_with(plain.pid)
        plain.returncode = -signal.SIGABRT
    if not status & CORE_DUMPED:
        pytest.skip("no core dumps are written here")
    for core in tmp_path.iterdir():
        core.unlink()
    return tmp_path


def test_of_the_daemon_and_the_monitor_no_core_dump_is_written(daemon, cores):
    one = daemon()
    monitor = subprocess.Popen([sys.executable, "-m", "trigmon", "monitor"], env=one.env, stderr=subprocess.PIPE)
    while b"monitor serves" not in monitor.stderr.readline():
        assert monitor.poll() is None
    with monitor.stderr:
        statuses = [ended_with(process.pid) for process in (monitor, one.process)]
    monitor.returncode = one.process.returncode = -signal.SIGABRT
    assert statuses == [int(signal.SIGABRT)] * 2
    assert list(cores.iterdir()) == []


SECRET = f"5ecret-{os.urandom(8).hex()}"
REFUSED = "the files of TLS cannot be used; those from before stay in force"


def errors_of(address):
    """Returns everything that a failed connect shows, with its traceback."""
    with pytest.raises(trigmon.MQError) as failed:
        trigmon.connect(address, reconnect_s=0)
    return "".join(traceback.format_exception(failed.value)) + repr(failed.value)


@pytest.mark.parametrize(
    "address",
    [
        "tls://localhost:1415/QM1?user=batch&password={}",
        "tls://localhost:1415/QM1?user={}",
        "tls://batch:{}@localhost:1415/QM1",
        "tls:batch:{}@localhost/QM1",
        "tls://batch:{}?x@localhost:x/QM 1",
        "tcp://batch:{}@127.0.0.1:1414/QM1",
        "tcp://127.0.0.1:1414/QM1?password={}",
        "https://batch:{}@localhost/QM1",
        "tls://localhost:x?credential={0}@y&{0}@{0}",
        "tls://localhost:1415?user={0}@y&pw={0}",
        "tls://localhost:1415?user=x@y&pw={}",
        "tcp://127.0.0.1:1414?x@y&pw={}",
        "tls://batch:a?{0}@{0}@localhost:x",
        "batch:{}@localhost//x@y",
    ],
)
def test_a_password_in_an_address_is_in_no_error(address):
    assert SECRET not in errors_of(address.format(SECRET))


@pytest.mark.parametrize(
    "text",
    [
        "[QM9]\naddress = tls://localhost\npassword = {}\n",
        "[QM9]\n{}\n",
        "{} = 1\n",
        "[QM9]\nuser = a\nuser = {}\n",
        "[QM9]\naddress = tls://batch:{}@localhost\n",
    ],
)
def test_a_password_in_the_client_s_file_is_in_no_error(tmp_path, monkeypatch, text):
    (tmp_path / "client.ini").write_text(text.format(SECRET))
    monkeypatch.setenv("TRIGMON_CLIENT_FILE", str(tmp_path / "client.ini"))
    assert SECRET not in errors_of("QM9")


def shown_by(one, *words, **variables):
    """Returns all that a command prints."""
    argv = [sys.executable, "-m", "trigmon", *words]
    done = subprocess.run(argv, env=one.env | variables, capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


def test_a_password_in_a_setting_is_not_shown(daemon):
    one = daemon(start=False)
    url = f"//trigmon:{SECRET}@localhost:4318"
    traced = shown_by(one, "config", "show", TRIGMON_TRACES_ENDPOINT=f"http:{url}")
    assert "//trigmon:***@localhost:4318" in traced
    for output in (traced, shown_by(one, "config", "show", TRIGMON_STORE_POSTGRES=f"postgresql:{url}/x")):
        assert SECRET not in output
    one.settings["store.postgres"] = f"postgresql:{url}/x"
    assert one.launch().wait() == 2
    assert SECRET not in one.log.read_text()


@pytest.mark.parametrize("before", ["u:p@{}", "u:{}@p", "{}", "u:p/{}", ":{}", "u/{}"])
def test_whatever_stands_before_the_host_of_a_setting_is_not_shown(before):
    shown = shown_setting(f"http://{before.format(SECRET)}@localhost:4318/v1")
    assert shown.endswith("***@localhost:4318/v1")
    assert SECRET not in shown


def shown_setting(endpoint):
    """Returns the address of the traces as ``config show`` shows it."""
    result = run_cli("config", "show", "--output", "json", env={"TRIGMON_TRACES_ENDPOINT": endpoint})
    (row,) = (row for row in objects(result) if row["key"] == "traces.endpoint")
    return row["value"]


def test_a_setting_without_a_secret_is_shown_whole():
    assert shown_setting("http://localhost:4318/v1") == "http://localhost:4318/v1"


def key_lines(path):
    """Returns the lines of a private key."""
    return [line for line in path.read_text().splitlines() if "-----" not in line]


def command_lines():
    """Returns the words of all processes of the machine, which every user may read."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                found.append((entry / "cmdline").read_bytes().decode(errors="replace"))
    return "".join(found)


def damage(one, site):
    """Writes files of TLS that cannot be used, with a secret in each, and waits until each was refused."""
    key = (site.directory / "server.key").read_text()
    wrong = [
        (site.users, f"- user: batch\n  password: {SECRET}\n"),
        (site.users, f"- user: batch\n  password: [{SECRET}\n  certificates: []\n"),
        (site.users, f"- user: batch\n  {SECRET}\n  password:\n"),
        (site.directory / "server.key", key[: len(key) // 2]),
    ]
    for at, (path, text) in enumerate(wrong, start=1):
        path.write_text(text)
        until(lambda at=at: len(one.events(REFUSED)) >= at)


def test_no_secret_of_a_daemon_with_tls_is_in_a_log_a_command_line_the_status_or_an_error(daemon, tmp_path):
    site = Site(tmp_path / "tls")
    site.client("alice")
    site.let_in(Account("alice", certificates=("CN=alice",)), Account("batch", site.password(f"right {SECRET}")))
    hashed = re.findall(r"[\w+/=]{20,}", site.users.read_text())
    keys = [line for name in ("server", "alice", "authority") for line in key_lines(site.directory / f"{name}.key")]
    audit = tmp_path / "audit.jsonl"
    one = daemon(with_monitor=True, settings={**site.settings, "server.audit_file": audit, "log.level": "debug"})
    seen = {}
    with trigmon.connect(site.address(user="batch")) as qm, one.connect() as root:
        qm.put("SYSTEM.DEFAULT.LOCAL.QUEUE", SECRET.encode())
        with pytest.raises(trigmon.NotAuthorized) as denied:
            qm.call(Delete(object_type="QLOCAL", name="SYSTEM.DEFAULT.LOCAL.QUEUE"))
        root.call(Define(object_type="PROCESS", name="P", attributes={"env_data": f"DB_PASSWORD={SECRET}"}))
        seen |= {"a denial": repr(denied.value), "command lines": command_lines()}
    site.password(f"wrong {SECRET}")
    seen["a wrong password"] = errors_of(site.address(user="batch"))
    damage(one, site)
    for words in (("status",), ("connections", "list"), ("tls", "show")):
        seen[" ".join(words)] = shown_by(one, *words)
    seen |= {"log": one.log.read_text(), "audit file": audit.read_text(), "command lines later": command_lines()}
    assert "a password was refused" in seen["log"]
    assert "administrative_act" in seen["audit file"]
    assert len(hashed) == 2
    found = {what for what, output in seen.items() for text in (SECRET, *hashed, *keys) if text in output}
    assert found == set()
