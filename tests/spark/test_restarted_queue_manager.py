"""A drain by Spark goes on over a restart of the queue manager: each message is there once, and none is blamed."""

from __future__ import annotations

import threading
import time
from functools import partial

import pytest

from tests.daemons import define
from trigmon.spark import batches
from trigmon.spark.file_table import refuse_batch, write_batch

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("default::ResourceWarning", "default::DeprecationWarning", "default::FutureWarning"),
]
Q = "SPARK.RESTARTED"
COUNT, A_BATCH = 200, 50


@pytest.fixture
def one(daemon, monkeypatch):
    monkeypatch.setenv("TRIGMON_RECONNECT", "300")
    made = daemon()
    with made.connect(reconnect_s=0) as qm:
        attributes = {"backout_threshold": 2, "backout_requeue_q_name": "ASIDE", "def_persistence": "persistent"}
        define(qm, "ASIDE")
        define(qm, Q, max_q_depth=9999, **attributes)
        qm.put_many(Q, [b"%d" % number for number in range(COUNT)])
    return made


def restart(one, how):
    getattr(one, how)()
    one.start()


def away_for_a_while(one, how):
    """Ends it, and starts it again in a thread, which is returned."""
    getattr(one, how)()
    later = threading.Thread(target=lambda: (time.sleep(1.5), one.start()))
    later.start()
    return later


def drained(one, spark, where, meanwhile):
    """Drains the queue into a table, with ``meanwhile(number)`` before each batch is written; returns the rows."""
    with batches(spark, Q, qmgr=one.address, max_rows=A_BATCH, refuse=partial(refuse_batch, where)) as all_:
        for number, batch in enumerate(all_):
            with batch:
                frame = batch.frame.selectExpr("cast(data as string) as body")
                meanwhile(number)
                write_batch(frame, where, batch.id)
    assert all_.rejected == []
    return sorted(int(row.body) for row in spark.read.parquet(str(where)).select("body").collect())


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_restart_between_reading_and_settling_loses_and_doubles_nothing(one, spark, tmp_path, how):
    def meanwhile(number):
        if number in (1, 2):
            restart(one, how)

    assert drained(one, spark, tmp_path / "table", meanwhile) == list(range(COUNT))


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_batch_that_failed_as_the_queue_manager_was_away_comes_once_more_and_is_not_blamed(
    one, spark, tmp_path, how, capfd
):
    gone = []

    def meanwhile(number):
        if number == 1:
            gone.append(away_for_a_while(one, how))

    assert drained(one, spark, tmp_path / "table", meanwhile) == list(range(COUNT))
    gone[0].join()
    with one.connect() as qm, qm.open("ASIDE", "inquire") as aside:
        assert aside.inquire("current_q_depth") == {"current_q_depth": 0}
    assert "trigmon: batch" not in capfd.readouterr().err
