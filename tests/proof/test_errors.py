"""Whichever read, write or sync of the disk fails: no answer is given that a restart contradicts."""

import pytest

from tests.proof.amounts import NORMAL, SLOW
from tests.proof.errors import fail_everywhere


def test_an_error_at_every_eleventh_position_contradicts_no_answer(tmp_path):
    found = fail_everywhere(tmp_path, NORMAL.error_seeds[0], NORMAL.stride)
    assert not found.violations, found.violations[:20]
    assert found.count > 100


@pytest.mark.slow
@pytest.mark.parametrize("seed", SLOW.error_seeds)
def test_an_error_at_every_position_contradicts_no_answer(tmp_path, seed):
    found = fail_everywhere(tmp_path, seed)
    assert not found.violations, found.violations[:20]
    assert found.count > 1000
