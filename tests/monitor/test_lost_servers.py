"""Spark Connect servers that end again and again: counted over ten minutes, and forgotten behind them."""

import time

from trigmon.monitor.spark_servers.lost_servers import WITHIN_S, LostServers
from trigmon.mq.calls import LostServer


def test_one_end_is_none_and_two_within_ten_minutes_are_reported(monkeypatch):
    lost, now = LostServers(), 1000.0
    monkeypatch.setattr(time, "time", lambda: now)
    lost.note("local[2]", "it ended", "one\nlast words\n\n")
    assert lost.found() == []
    lost.note("yarn", "it did not start")
    now += 5
    lost.note("local[2]", "it ended", "one\nnew words\n")
    assert lost.found() == [LostServer("local[2]", 2, 1_000_000, "it ended", "new words")]
    now += WITHIN_S - 4
    assert lost.found() == []
    lost.note("local[2]", "it did not start")
    assert lost.found() == [LostServer("local[2]", 2, 1_005_000, "it did not start")]
