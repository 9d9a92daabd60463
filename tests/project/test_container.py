"""The container of docs/how-to/container.md: built where a container tool works, else its process 1 in namespaces.

In the namespaces the command and the variables are those of the page's Containerfile, and directories of the test are
mounted where the container has its volumes. The user and the packages are those of the test.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from tests.postgres import dsn_of
from tests.waiting import until

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "container.md").read_text()
CONTAINERFILE = re.search(r"```dockerfile\n(.*?)```", PAGE, re.DOTALL)[1]
COMMANDS = re.search(r"```bash\n(.*?)```", PAGE, re.DOTALL)[1]
COMPOSE, DEFINITIONS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
COMPOSED = yaml.safe_load(COMPOSE)["services"]["qm1"]
VARIABLES = dict(
    word.split("=") for line in re.findall(r"^ENV (.*)", CONTAINERFILE, re.MULTILINE) for word in line.split()
)
ARGV = [*json.loads(re.search(r"^ENTRYPOINT (.*)", CONTAINERFILE, re.MULTILINE)[1])]
ARGV += json.loads(re.search(r"^CMD (.*)", CONTAINERFILE, re.MULTILINE)[1])
NAMESPACES = ["--mount", "--pid", "--uts", "--ipc"]
INSIDE = """
mount --bind "$1" /var/lib && mount --bind "$2" /run && mkdir -p /var/lib/trigmon /run/trigmon
shift 2
exec "$@"
"""
WAIT_S = 600.0


def tool():
    """Returns the container tool that works on this machine, None for none."""
    names = (name for name in ("podman", "docker") if shutil.which(name))
    return next((name for name in names if not subprocess.run([name, "info"], capture_output=True).returncode), None)


@pytest.fixture(scope="module", autouse=True)
def _namespaces():
    if subprocess.run(["unshare", *NAMESPACES, "--fork", "true"], capture_output=True).returncode:
        pytest.skip("this user may not make namespaces")


class Container:
    """Process 1 and what is executed beside it. ``volumes`` holds ``state`` and ``run``, ``env`` variables more."""

    def __init__(self, volumes, env):
        self.volumes = volumes
        for name in ("state", "run"):
            (volumes / name).mkdir(parents=True, exist_ok=True)
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.env = {"PATH": path, "HOME": str(volumes), "TRIGMON_MONITOR_CLASS_ARCHIVES": "false"}
        self.env |= VARIABLES | env
        self.log = volumes / "log"
        with self.log.open("wb") as log:
            self.outside = subprocess.Popen(
                [*("unshare", *NAMESPACES, "--mount-proc", "--fork", "--kill-child"), *self.inside(ARGV)],
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.children = Path(f"/proc/{self.outside.pid}/task/{self.outside.pid}/children")

    def inside(self, argv):
        """Returns the command behind the mounts of the volumes."""
        return ["sh", "-euc", INSIDE, "sh", str(self.volumes / "state"), str(self.volumes / "run"), *argv]

    @property
    def pid(self):
        return int(self.children.read_text())

    def execute(self, *argv):
        """Executes a command in the container."""
        enter = ["nsenter", f"--target={self.pid}", *NAMESPACES, "--", *argv]
        return subprocess.run(enter, env=self.env, capture_output=True, text=True, timeout=WAIT_S)

    def trigmon(self, *words):
        done = self.execute("trigmon", *words)
        assert done.returncode == 0, (words, done.stdout, done.stderr, self.log.read_text())
        return done.stdout

    def events(self):
        return [json.loads(line)["event_name"] for line in self.log.read_text().splitlines() if '"event_name"' in line]

    def wait_for(self, event_name):
        until(lambda: event_name in self.events() or self.outside.poll() is not None, WAIT_S)
        assert event_name in self.events(), self.log.read_text()

    def stop(self, signal="TERM"):
        """Sends a signal to process 1 and returns its exit status."""
        subprocess.run(["kill", f"-{signal}", str(self.pid)], check=True)
        return self.outside.wait(WAIT_S)


@contextmanager
def container(volumes, **env):
    one = Container(volumes, env)
    try:
        yield one
    finally:
        one.outside.kill()
        one.outside.wait()


def put_for_a_lasting_program(one):
    """Puts a message that starts a program that does not get it, and waits for the program."""
    one.wait_for("monitor_serves")
    one.trigmon("process", "define", "LASTING", "appl_type=unix", 'appl_id=/bin/sh -c "exec sleep 100"')
    attributes = ("process_name=LASTING", "initiation_q_name=SYSTEM.DEFAULT.INITIATION.QUEUE")
    one.trigmon("queue", "define", "ORDERS", "TRIGGER", "trigger_type=first", "def_persistence=persistent", *attributes)
    one.trigmon("put", "ORDERS", "kept")
    one.wait_for("program_started")


def first_run(one):
    *_, run = map(json.loads, one.trigmon("runs", "list", "--all", "--output", "json").splitlines())
    return run["state"], run["why"]


def test_process_1_serves_starts_programs_and_ends_them_in_order(tmp_path):
    with container(tmp_path) as one:
        put_for_a_lasting_program(one)
        assert one.execute("cat", "/proc/1/cmdline").stdout.rstrip("\0").endswith("trigmon\0run")
        one.trigmon("status")
        assert one.stop() == 0
        assert one.events()[-1] == "stopped"
    # The next container over the same volumes.
    with container(tmp_path) as again:
        again.wait_for("monitor_serves")
        assert first_run(again) == ("exited", "ended by its monitor's stop: killed by SIGTERM")
        assert again.trigmon("get", "ORDERS") == "kept\n"
        assert again.stop("INT") == 0


def test_a_client_of_another_container_needs_the_socket_alone(tmp_path):
    with container(tmp_path) as one:
        one.wait_for("ready")
        one.trigmon("queue", "define", "ORDERS")
        beside = {**one.env, "TRIGMON_RUNTIME": str(tmp_path / "run" / "trigmon")}
        subprocess.run(["trigmon", "put", "ORDERS", "from outside"], env=beside, check=True, timeout=WAIT_S)
        assert one.trigmon("get", "ORDERS") == "from outside\n"


def test_a_second_container_over_the_state_ends_with_status_5(tmp_path):
    with container(tmp_path) as one:
        one.wait_for("ready")
        (tmp_path / "second").mkdir()
        (tmp_path / "second" / "state").symlink_to(tmp_path / "state")
        with container(tmp_path / "second") as second:
            assert second.outside.wait(WAIT_S) == 5
        assert one.stop() == 0


def test_behind_a_kill_the_message_is_there_and_the_end_of_its_program_is_unknown(tmp_path):
    with container(tmp_path) as one:
        put_for_a_lasting_program(one)
        one.stop("KILL")
    with container(tmp_path) as again:
        again.wait_for("monitor_serves")
        until(lambda: first_run(again)[0] == "unknown")
        assert again.trigmon("get", "ORDERS") == "kept\n"


def test_the_composed_queue_manager_keeps_messages_in_postgresql_and_its_job_starts(tmp_path, server):
    env = COMPOSED["environment"]
    assert env["TRIGMON_QMGR_DEFINITIONS"] in COMPOSED["volumes"][1]
    definitions = tmp_path / "orders.yaml"
    definitions.write_text(DEFINITIONS)
    env |= {"TRIGMON_QMGR_DEFINITIONS": str(definitions), "TRIGMON_STORE_POSTGRES": dsn_of(server)}
    with container(tmp_path, **env) as one:
        one.wait_for("monitor_serves")
        one.trigmon("queue", "define", "KEPT", "def_persistence=persistent")
        one.trigmon("put", "KEPT", "kept")
        one.trigmon("put", "ORDERS", "an order")
        until(lambda: first_run(one)[0] == "exited")
        assert one.execute("cat", "/var/lib/trigmon/orders.txt").stdout == "an order\n"
        assert one.stop() == 0
    # Made anew elsewhere: nothing of the volumes is there.
    with container(tmp_path / "elsewhere", **env) as again:
        again.wait_for("monitor_serves")
        assert again.trigmon("get", "KEPT") == "kept\n"
        assert again.stop() == 0


@pytest.mark.slow
def test_the_image_is_built_and_the_commands_of_the_page_work(tmp_path):
    if (name := tool()) is None:
        pytest.skip("no container tool works here")
    (tmp_path / "Containerfile").write_text(CONTAINERFILE)
    script = COMMANDS.replace("podman", name).replace("--file Containerfile", f"--file {tmp_path}/Containerfile")
    try:
        done = subprocess.run(["bash", "-euc", script], cwd=ROOT, capture_output=True, text=True, timeout=1200)
        assert done.returncode == 0, (done.stdout, done.stderr)
    finally:
        subprocess.run([name, "rm", "--force", "qm1"], capture_output=True)
        subprocess.run([name, "volume", "rm", "qm1-state", "qm1-run"], capture_output=True)
