"""Nobody gets what is another's: each way of the table is tried against a real queue manager and a real monitor."""

from __future__ import annotations

import os
from fnmatch import fnmatchcase

import pytest

from tests.attacks.everything import counts, play
from tests.attacks.stage import Stage
from tests.attacks.table import ATTACKS

# Attacks that are known to succeed, by patterns of their names. Each must: what is mended leaves this list.
_PATTERNS = [
    "*-set-*",
    "*-settle*-of-another",
    "*-reject*-of-another",
    "monitor-ledger-*",
    "*-misname-*-queue",
    "*-misname-queue-of-another",
    "*-misname-path-as-queue",
    "*-misname-lower-case",
    "*-misname-dots",
    "*-wrapper-?",
    "*-wrapper-1?",
    "*-wrapper-2[0-4]",
    "*-wrapper-2[89]",
    "*-connections",
    "*-listen-1*",
    "*-listen-::1",
]
_NOT = ["*-misname-blank-queue", "*-misname-option-as-queue", "*-set-all-context", "*-set-identity"]
# A connection by TCP proves no user, and workers of a cluster come that way, so it may name any run as its own.
_ACCEPTED = ["tcp-seem-run"]
# These take what others need only if they come first.
_SOMETIMES = {"member-silent", "tcp-silent", "member-half-hellos", "tcp-half-hellos"}


class SucceededError(AssertionError):
    """An attacker got what is another's."""


def _fits(name, patterns):
    return any(fnmatchcase(name, pattern) for pattern in patterns)


SUCCEEDS_TODAY = {
    attack.id for attack in ATTACKS if _fits(attack.id, _PATTERNS + _ACCEPTED) and not _fits(attack.id, _NOT)
}


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


def _entries():
    for attack in ATTACKS:
        strict = attack.id not in _SOMETIMES
        is_known = attack.id in SUCCEEDS_TODAY | _SOMETIMES
        known = [pytest.mark.xfail(strict=strict, raises=SucceededError, reason="known")] if is_known else []
        yield pytest.param(attack, id=attack.id, marks=known)


def test_there_are_enough_and_each_has_its_own_name(capsys):
    assert len(ATTACKS) >= 200
    assert len({attack.id for attack in ATTACKS}) == len(ATTACKS)
    with capsys.disabled():
        print(f"\n{len(ATTACKS)} attacks: {', '.join(f'{number} as {role}' for role, number in counts().items())}")


@pytest.mark.parametrize("attack", list(_entries()))
def test_it_gets_nothing(verdicts, attack):
    verdict = verdicts[attack.id]
    assert verdict.is_fair, verdict.said
    if verdict.succeeded:
        raise SucceededError(f"{attack.tries}: {attack.success} ({verdict.how}: {verdict.said})")


def test_behind_all_of_them_everything_is_alive_and_serves(stage, verdicts):
    assert stage.daemon.process.poll() is None
    assert not stage.daemon.events("a call failed by a bug")
    assert stage.monitor_said() is not None
    assert stage.is_served()
    stage.settle()
