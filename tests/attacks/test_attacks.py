"""Nobody gets what is another's: each way of the table is tried against a real queue manager and a real monitor."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.attacks.everything import counts, play
from tests.attacks.stage import Stage
from tests.attacks.table import ATTACKS


@pytest.fixture(scope="module")
def stage():
    if os.geteuid() != 0:
        pytest.skip("only root can become other users")
    one = Stage()
    yield one
    one.end()


@pytest.fixture(scope="module")
def verdicts(stage):
    return play(stage)


def test_there_are_enough_and_each_has_its_own_name(capsys):
    assert len(ATTACKS) >= 200
    assert len({attack.id for attack in ATTACKS}) == len(ATTACKS)
    with capsys.disabled():
        print(f"\n{len(ATTACKS)} attacks: {', '.join(f'{number} as {role}' for role, number in counts().items())}")


def test_what_daemon_monitor_and_keeper_have_in_memory_is_root_s_alone_and_a_program_s_is_its_user_s(stage):
    # Of a process whose memory is private root has the files (proc(5)); else its own user has them.
    owners = {which: Path(f"/proc/{pid}/environ").stat().st_uid for which, pid in stage.pids().items()}
    private = ("daemon", "monitor", "keeper")
    assert {which: owners[which] for which in private} == dict.fromkeys(private, 0)
    assert owners["program"] == stage.monitors.uid


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.id)
def test_it_gets_nothing(verdicts, attack):
    verdict = verdicts[attack.id]
    assert verdict.is_fair, verdict.said
    assert not verdict.succeeded, f"{attack.tries}: {attack.success} ({verdict.how}: {verdict.said})"


def test_behind_all_of_them_everything_is_alive_and_serves(stage, verdicts):
    assert stage.daemon.process.poll() is None
    assert not stage.daemon.events("a call failed by a bug")
    assert stage.monitor_said() is not None
    assert stage.is_served()
    stage.settle()
