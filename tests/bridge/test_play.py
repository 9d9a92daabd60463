"""The play that a user starts against an own IBM MQ: here a second trigmon plays that queue manager."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
    config = bench.home / "trigmon.yaml"
    lines = ["bridges:", "  FAR:", *(f"    {key}: {value}" for key, value in bench.settings.items())]
    config.write_text("\n".join(lines) + "\n")
    env = bench.here.env | {"TRIGMON_CONFIG": str(config), "LD_LIBRARY_PATH": bench.library, "PYTHONWARNINGS": "ignore"}
    argv = [sys.executable, "-m", "trigmon", "bridge", "check", "FAR", "--play", *more]
    return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=300)


def test_what_is_missing_is_named_and_the_rest_is_not_tried(played):
    done = play(played)
    assert done.returncode == 1
    assert "condition 8" in done.stdout
    assert "start the monitor with this bridge" in done.stdout
    assert done.stdout.count("not tried") == 5


def test_the_script_starts_a_program_for_each_of_twenty_messages_and_finds_bad_triggers_as_dead_letters(played):
    home = str(Path(sys.executable).parent)
    env = {name: value for name, value in os.environ.items() if not name.startswith("TRIGMON_")}
    env |= {"PATH": f"{home}:{env['PATH']}", "LD_LIBRARY_PATH": played.library, "PYTHONWARNINGS": "ignore"}
    env |= {"TRIGMON_HOME": str(played.home), "TRIGMON_PLAY_HOME": str(played.home)}
    done = subprocess.run(
        ["sh", str(PLAY / "play.sh"), "--queue-manager", "PROD"], env=env, capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "PASS"), done.stdout + done.stderr
    steps = [line for line in done.stdout.splitlines() if line.startswith("ok        ")][-6:]
    assert [step.partition(":")[0].removeprefix("ok        ") for step in steps] == [
        "TRIGMON.PLAY there",
        "20 messages are put",
        "each starts TRIGMON.PLAY here once",
        "the messages are still there, each once",
        "a message that is no trigger message is a dead letter",
        "a trigger message for an unknown process is a dead letter",
    ]
    assert played.depth("TRIGMON.PLAY") == played.depth(INITIATION) == played.depth("SYSTEM.DEAD.LETTER.QUEUE") == 0


def test_the_container_needs_the_user_s_own_acceptance_of_its_license():
    env = {name: value for name, value in os.environ.items() if name != "LICENSE"}
    done = subprocess.run(["sh", str(PLAY / "play.sh")], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "LICENSE=accept" in done.stderr
