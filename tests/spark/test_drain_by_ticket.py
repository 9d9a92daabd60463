"""A drain and a stream whose driver comes by the socket and whose tasks come by TLS, with tickets and nothing else."""

from __future__ import annotations

import pyarrow.parquet
import pytest

from tests.daemons import queue_managers
from tests.spark.conftest import depth
from tests.tls.authorities import Site
from trigmon.mq.calls import Define
from trigmon.spark import drain

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("default::ResourceWarning", "default::DeprecationWarning", "default::FutureWarning"),
]
MESSAGES = 2500


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return Site(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def one(tmp_path_factory, site):
    """A queue manager where no user may come by TLS."""
    with queue_managers(lambda: tmp_path_factory.mktemp("qm")) as make:
        yield make(settings=site.settings)


@pytest.fixture
def of_tasks(one, site):
    """The options by which only a ticket reads: nobody has an account."""
    with one.connect() as qm:
        attributes = {"def_persistence": "persistent", "max_q_depth": 100_000}
        qm.call(Define(object_type="QLOCAL", name="Q", attributes=attributes, replace=True))
        qm.put_many("Q", [b"%d" % n for n in range(MESSAGES)])
    return {"taskAddress": site.address(), "partitions": 2}


def check(one, table):
    rows = pyarrow.parquet.read_table(table, columns=["data"])
    assert sorted(int(data) for data in rows["data"].to_pylist()) == list(range(MESSAGES))
    with one.connect() as qm:
        assert depth(qm, "Q") == 0


def test_a_drain_gives_its_tasks_tickets(one, of_tasks, spark, tmp_path):
    done = drain(spark, queue="Q", qmgr=one.address, table=tmp_path / "table", max_rows=1000, options=of_tasks)
    assert (done.batches, done.rows, done.rejected) == (3, MESSAGES, [])
    check(one, tmp_path / "table")


def test_a_stream_gives_its_tasks_tickets(one, of_tasks, spark, tmp_path):
    def into(rows):
        return rows.writeStream.format("parquet").option("path", str(tmp_path / "table"))

    done = drain(
        spark,
        queue="Q",
        qmgr=one.address,
        stream=into,
        checkpoint=tmp_path / "checkpoint",
        max_rows=1000,
        options=of_tasks,
    )
    assert done.rows == MESSAGES
    check(one, tmp_path / "table")


def test_a_server_that_tasks_do_not_trust_blames_no_message(one, of_tasks, spark, site, tmp_path):
    """The job fails, and all messages are back uncounted."""
    away = of_tasks | {"taskAddress": site.address(authority="foreign")}
    with pytest.raises(Exception, match="did not prove that it is localhost"):
        drain(spark, queue="Q", qmgr=one.address, table=tmp_path / "table", max_rows=1000, options=away)
    with one.connect() as qm:
        assert depth(qm, "Q") == MESSAGES
        with qm.open("Q", "browse") as queue:
            assert queue.get(browse_first=True).backout_count == 0
