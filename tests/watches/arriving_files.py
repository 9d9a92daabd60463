"""Files that arrive all the time in a directory that is watched."""

from __future__ import annotations

import random
import threading
import time

from tests.watches.watched_queue import WatchedQueue


class ArrivingFiles:
    """Files arrive in the directory of ``watched`` while the context lasts; ``names`` are those that came so far."""

    def __init__(self, watched: WatchedQueue, chance: random.Random) -> None:
        self.names: list[str] = []
        self._watched = watched
        self._chance = chance
        self._is_over = threading.Event()
        self._producer = threading.Thread(target=self._arrive)

    def __enter__(self) -> ArrivingFiles:
        self._producer.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._is_over.set()
        self._producer.join()

    def _arrive(self) -> None:
        while not self._is_over.is_set():
            for _ in range(self._chance.randrange(1, 20)):
                name = f"f{len(self.names):06}"
                self._watched.put_file(name, name.encode())
                self.names.append(name)
            time.sleep(self._chance.random() / 5)

    def assert_each_once(self) -> None:
        """Waits until as many messages came as files, and asserts that each file has one and lies in ``done``."""
        self._watched.until_delivered(len(self.names))
        self._watched.each_once(self.names)
