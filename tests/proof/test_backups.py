"""Backups of a queue manager that serves, with kills: what was acknowledged before one began is in it."""

import pytest

from tests.proof.archiving import ENOUGH as ENOUGH_FILES
from tests.proof.archiving import archive_and_kill
from tests.proof.backups import ENOUGH, back_up_again_and_again

SLOW = pytest.param(100, marks=pytest.mark.slow)


@pytest.mark.parametrize("rounds", [4, SLOW])
def test_every_backup_under_load_is_whole_and_has_all_that_was_acknowledged_before(daemon, rounds):
    found = back_up_again_and_again(daemon(), rounds, seed=18)
    assert not found.violations, found.violations[:20]
    assert found.count >= rounds
    assert found.more["messages acknowledged before a backup"] > ENOUGH * rounds, found


@pytest.mark.parametrize("kills", [6, pytest.param(100, marks=pytest.mark.slow)])
def test_a_backup_and_the_archive_of_a_killed_daemon_have_all_that_was_acknowledged(daemon, tmp_path, kills):
    found = archive_and_kill(daemon(settings={"store.journal_archive": tmp_path / "archive"}), kills, seed=63)
    assert not found.violations, found.violations[:20]
    assert found.count >= kills
    assert found.more["files"] > ENOUGH_FILES * kills, found
