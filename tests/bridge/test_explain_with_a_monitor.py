"""What this side shows in an explanation while its monitor serves the bridge: the handle, the process, pauses, runs."""

from __future__ import annotations

import json

import pytest

from tests.bridge.bench import INITQ
from tests.bridge.queues_elsewhere import load_library
from tests.cli.conftest import run_cli
from tests.daemons import define


@pytest.fixture
def in_this_process(library_directory, monkeypatch):
    """Lets programs of the MQI in this process find a bench's queue managers by their names."""

    def enter(bench):
        load_library(library_directory)
        monkeypatch.setenv("TRIGMON_HOME", str(bench.home))
        monkeypatch.delenv("TRIGMON_QMGR", raising=False)
        return bench

    return enter


def explained(bench, *more):
    """Returns the explanation of queue Q at FAR, as the command line of this side prints it."""
    ours = {name: value for name, value in bench.here.env.items() if name.startswith("TRIGMON_")}
    result = run_cli("explain", "Q@FAR", "--config", str(bench.home / "trigmon.yaml"), *more, env=ours)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_its_monitor_its_process_its_pauses_and_its_last_runs_are_shown(bench, in_this_process):
    one = in_this_process(bench())
    one.process()
    one.queue()
    one.monitored()
    one.far.put("Q", b"one")
    (run,) = one.ended(1)
    text = explained(one)
    assert "A monitor of trigmon's has it open now." in text
    assert "Process P is defined here." in text
    assert f"Run {run['run_id']} of" in text
    assert "exited, exit status 0" in text
    one.here.trigmon("process", "pause", "P", "--reason", "the disk is full")
    shown = json.loads(explained(one, "--output", "json"))
    assert (shown["fires"], shown["bridge"]["initiation_q_is_open"]) == (True, True)
    assert "the disk is full" in shown["bridge"]["paused"][0]
    define(one.far, "OTHER.INIT")
    one.far.open("OTHER.INIT", "input_shared")
    one.queue("Q2", initiation_q_name="OTHER.INIT")
    ours = {name: value for name, value in one.here.env.items() if name.startswith("TRIGMON_")}
    other = run_cli("explain", "Q2@FAR", "--config", str(one.home / "trigmon.yaml"), env=ours).stdout
    assert "Bridge FAR does NOT read the queue's initiation queue" in other
    assert "No monitor of trigmon's has it open now." in other
    assert INITQ not in other
