"""The play that a user starts against an own IBM MQ, and its script: here a second trigmon takes the place of MQ."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bridge.conftest import NEEDS_IBMMQ
from tests.tls.authorities import Site

ROOT = Path(__file__).resolve().parents[2]
PLAY = ROOT / "config" / "ibm-mq"
INITIATION = "TRIGMON.PLAY.INIT"


@pytest.fixture
def played(bench):
    """Makes a bench whose far queue manager has the objects of the play."""
    one = bench(initiation_queues=[INITIATION])
    done = one.there.trigmon("mqsc", str(PLAY / "play.mqsc"))
    assert done.returncode == 0, done.stdout
    return one


def play(bench, *more):
    """Returns the finished ``trigmon bridge check FAR --play``."""
    env = bench.here.env | {
        "TRIGMON_CONFIG": bench.config(),
        "LD_LIBRARY_PATH": bench.library,
        "PYTHONWARNINGS": "ignore",
    }
    argv = [sys.executable, "-m", "trigmon", "bridge", "check", "FAR", "--play", *more]
    return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=300)


def test_what_is_missing_is_named_and_the_rest_is_not_tried(played):
    done = play(played)
    assert done.returncode == 1
    assert "condition 8" in done.stdout
    assert "start the monitor with this bridge" in done.stdout
    assert done.stdout.count("not tried") == 5


def test_the_container_needs_the_user_s_own_acceptance_of_its_license():
    env = {name: value for name, value in os.environ.items() if name != "LICENSE"}
    done = subprocess.run(["sh", str(PLAY / "play.sh")], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "LICENSE=accept" in done.stderr


class Container:
    """The script in an environment whose docker is :mod:`tests.bridge.container_tool`."""

    def __init__(self, home, library):
        self.state = home / "container"
        self.state.mkdir()
        self.temporary = home / "tmp"
        self.temporary.mkdir()
        site = Site(home / "tls")
        (self.state / "settings.json").write_text(json.dumps(site.settings, default=str))
        client = home / "client.ini"
        client.write_text(f"[QM1]\naddress = tls://localhost:{site.port}\nauthority = tls/authority.crt\n")
        self.programs = home / "bin"
        self.programs.mkdir()
        tool = self.programs / "docker"
        run = f"exec {sys.executable} -m tests.bridge.container_tool {self.state}"
        tool.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} PYTHONWARNINGS=ignore {run} "$@"\n')
        tool.chmod(0o755)
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(("TRIGMON_", "MQ"))}
        self.env |= {"LD_LIBRARY_PATH": library, "PYTHONWARNINGS": "ignore", "LICENSE": "accept"}
        self.env |= {"TRIGMON_HOME": str(home), "TRIGMON_CLIENT_FILE": str(client), "TMPDIR": str(self.temporary)}
        self.env["PATH"] = f"{self.programs}:{Path(sys.executable).parent}:{self.env['PATH']}"

    def play(self, *arguments):
        """Returns the finished script; it has left nothing behind."""
        argv = ["/bin/sh", str(PLAY / "play.sh"), *arguments]
        done = subprocess.run(argv, env=self.env, capture_output=True, text=True, timeout=300)
        assert not (self.state / "pid").exists()
        assert not list(self.temporary.iterdir())
        return done

    def calls(self, command):
        """Returns the words of each call of a command of docker's."""
        made = [json.loads(line) for line in (self.state / "calls").read_text().splitlines()]
        return [words for name, *words in made if name == command]


@pytest.fixture
def container(tmp_path_factory, library_directory):
    return Container(tmp_path_factory.mktemp("c"), str(library_directory))


@NEEDS_IBMMQ
def test_the_script_plays_with_a_container_whose_user_has_the_shipped_rights_alone(container):
    done = container.play()
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "PASS"), done.stdout + done.stderr
    ((*options, image),) = container.calls("run")
    assert image == "icr.io/ibm-messaging/mq:latest"
    assert "127.0.0.1:14140:1414" in options
    name = options[options.index("--name") + 1]
    assert container.calls("exec") == [[name, "chkmqready"]] * 2
    assert container.calls("rm") == [["-f", name]]


@pytest.mark.parametrize(
    ("fails", "why"),
    [
        ("info", "FAIL: no answer from docker (info): is its daemon running?"),
        ("run", "FAIL: docker run of icr.io/ibm-messaging/mq:latest failed: see above; PORT=14140 may be in use"),
        ("start", "FAIL: the container of icr.io/ibm-messaging/mq:latest ended: see above"),
    ],
)
def test_a_container_that_does_not_come_ends_the_script_with_a_sentence(container, fails, why):
    (container.state / "fails").write_text(fails)
    container.env["TOOL"] = "docker"
    done = container.play()
    assert (done.returncode, done.stdout) == (1, f"{why}\n"), done.stderr
    assert ("the container's log" in done.stderr) == (fails == "start")


def test_what_is_not_installed_ends_the_script_with_a_sentence(container):
    container.env["TOOL"] = "no-such-tool"
    done = container.play()
    assert (done.returncode, done.stdout) == (1, "FAIL: there is no no-such-tool here\n")
    for name in ("dirname", "mktemp", "rm", "sed"):
        (container.programs / name).symlink_to(shutil.which(name))
    container.env["PATH"] = str(container.programs)
    done = container.play()
    assert (done.returncode, done.stdout) == (
        1,
        "FAIL: there is no trigmon on the PATH: pip install 'trigmon[bridge]'\n",
    )


@NEEDS_IBMMQ
def test_a_check_that_fails_ends_the_play_and_a_wrong_call_says_how_it_is_called(container):
    done = container.play("--queue-manager", "NOWHERE")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "FAIL: a check above: its remedy stands below it")
    assert "remedy: see whether the queue manager and its listener run" in done.stdout
    done = container.play("--queue-manager")
    assert done.returncode == 2
    assert "sh play.sh --queue-manager NAME" in done.stderr
