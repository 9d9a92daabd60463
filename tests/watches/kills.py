"""Files that arrive while the queue manager and the process of its watches are killed."""

from __future__ import annotations

import random
import threading
import time

from tests.waiting import until
from tests.watches.watched_queue import WatchedQueue


class Siege:
    """A watch over ``directory`` in which files arrive all the time while processes die."""

    def __init__(self, daemon, directory, seed):
        self.chance = random.Random(seed)
        self.watched = WatchedQueue(daemon, directory)
        self.daemon = daemon
        self.names = []
        self.over = threading.Event()

    def arrive(self):
        """Lets files arrive until it is over."""
        while not self.over.is_set():
            for _ in range(self.chance.randrange(1, 20)):
                name = f"f{len(self.names):06}"
                self.watched.put_file(name, name.encode())
                self.names.append(name)
            time.sleep(self.chance.random() / 20)

    def go(self, kills):
        """Kills so many times, the queue manager one time and the other process two; each lived for chance's time."""
        producer = threading.Thread(target=self.arrive)
        producer.start()
        try:
            for number in range(kills):
                until(self.watched.process)
                time.sleep(self.chance.random() / 3)
                if number % 3:
                    self.watched.kill_process()
                else:
                    self.daemon.kill()
                    self.daemon.start()
        finally:
            self.over.set()
            producer.join()
        self.watched.until_delivered(len(self.names))
