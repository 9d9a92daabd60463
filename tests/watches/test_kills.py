"""Each file becomes one message and lies in done, whichever process is killed, and at whichever moment."""

import random
import time

import pytest

from tests.waiting import until
from tests.watches.arriving_files import ArrivingFiles
from tests.watches.watched_queue import WatchedQueue


@pytest.mark.parametrize("seed", [1, 2])
def test_a_few_kills_lose_no_file_and_double_none(daemon, tmp_path, seed):
    chance = random.Random(seed)
    one = daemon()
    watched = WatchedQueue(one, tmp_path / "in")
    with ArrivingFiles(watched, chance) as arriving:
        for number in range(5):
            until(watched.process)
            time.sleep(chance.random() / 3)
            if number % 3:
                watched.kill_process()
            else:
                one.kill()
                one.start()
    arriving.assert_each_once()
