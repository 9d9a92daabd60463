"""Whoever is killed, and whenever: each file becomes one message and lies in done."""

import pytest

from tests.watches.kills import Siege


@pytest.mark.parametrize("seed", [1, 2])
def test_a_few_kills_lose_no_file_and_double_none(daemon, tmp_path, seed):
    siege = Siege(daemon(), tmp_path / "in", seed)
    siege.go(5)
    siege.watched.each_once(siege.names)


@pytest.mark.slow
def test_200_kills_lose_no_file_and_double_none(daemon, tmp_path):
    siege = Siege(daemon(), tmp_path / "in", 3)
    siege.go(200)
    print(f"200 kills, {len(siege.names)} files")
    siege.watched.each_once(siege.names)
