"""The data source from a classic session and from one of Spark Connect, by a real server: the same for both."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from pyarrow.parquet import read_table

from tests.daemons import define
from tests.spark import source_on_spark
from tests.spark.conftest import depth, spark_environment, writers
from tests.spark.connect_server import ConnectServer
from tests.waiting import until

pytestmark = [pytest.mark.spark]
FULL = 1500
"""More messages than may come in Spark's plan."""


@pytest.fixture(params=["classic", pytest.param("connect", marks=pytest.mark.slow)])
def remote(request, tmp_path):
    if request.param == "classic":
        yield ()
        return
    (tmp_path / "server").mkdir()
    server = ConnectServer(tmp_path / "server")
    try:
        yield (server.start().url,)
    finally:
        server.kill()


@pytest.fixture
def said(qm, q_name, shared_daemon, tmp_path, remote):
    """What a program of its own says: a process has one kind of session."""
    (tmp_path / "out").mkdir()
    define(qm, f"{q_name}.TOO")
    define(qm, f"{q_name}.FULL")
    qm.put_many(f"{q_name}.FULL", [b"%d" % n for n in range(FULL)])
    given = [source_on_spark.__file__, shared_daemon.address, q_name, str(tmp_path / "out"), *remote]
    environment = os.environ | spark_environment(tmp_path)
    done = subprocess.run([sys.executable, *given], env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads((tmp_path / "out" / "said.json").read_text())


def test_a_reader_a_writer_a_stream_a_drain_headers_and_a_schema_are_the_same(qm, q_name, said, tmp_path):
    every = range(200)
    assert said["read"] == [[str(n), {"usr.color": f"c{n}", "mcd.Msd": "x"}, 3, n // 50] for n in every]
    assert said["whole"] == "MQHRF2"
    assert said["colors"] == sorted(f"c{n}" for n in every)
    assert said["least partitions"] == [0, 1, 2]
    lag = [[rows, offset["current_q_depth"]] for rows, offset in said["stream"] if rows]
    assert lag == [[150, 50], [50, 0]]
    assert said["stream's partitions"] == [0, 1, 2]
    assert said["schema of texts"] == "struct<id:bigint,name:string>"
    assert said["objects"] == [[1, {"usr.a": "b"}], [2, {}], [2, {}]]
    assert until(lambda: depth(qm, q_name) == 4)  # the objects: nothing was taken but by the stream

    sql = said["sql"]
    assert sql["rows"] == ['{"id": 1}', "no json"]
    assert sql["view"] == [1, None]
    assert said["modes"]["PERMISSIVE"] == [[1, None], [None, "no json"]]
    assert said["modes"]["DROPMALFORMED"] == [[1, None]]
    assert depth(qm, f"{q_name}.TOO") == 2  # reading takes nothing

    def first_line(what):
        return said[what][0]

    assert f"{q_name} is empty: a schema is inferred from the messages that are there" in first_line("empty")
    assert f"none of the first 10 messages of {q_name} is a JSON object" in first_line("not objects")
    assert "there is no option maxrow: is maxRows meant?" in first_line("typing error")
    assert "option minpartitions is a whole number from 1, not 'x'" in first_line("no number")
    two_values = "maxRows and maxOffsetsPerTrigger are one option, and have two values: 1 and 2"
    assert two_values in first_line("two values")
    assert "there is no option maxrow: is maxRows meant?" in sql["typing error"][0]
    assert "leave the columns out, or use CREATE TEMPORARY VIEW" in sql["columns of its own"][0]
    assert "option mode is one of PERMISSIVE, DROPMALFORMED, FAILFAST, not 'STRICT'" in said["modes"]["STRICT"][0]
    assert "is no JSON object of the schema" in "\n".join(said["modes"]["FAILFAST"])
    of_another = f"the checkpoint is of the queue {q_name}, and this query reads {q_name}.TOO: name another checkpoint"
    assert of_another in "\n".join(said["another's checkpoint"])
    for what in ("no queue", "no queue to write"):
        assert "(2085): NO.SUCH.QUEUE: the queue manager has no such queue; DEFINE QLOCAL" in first_line(what)
    assert "nothing answers at /none: no such file or directory; start the queue manager" in first_line("nobody there")

    drained = read_table(tmp_path / "out" / "drained").column("data").to_pylist()
    assert said["drained"] == FULL and sorted(map(int, drained)) == list(range(FULL))
    assert writers(tmp_path / "out" / "drained") == {"parquet-cpp-arrow"}  # by the tasks that have read them
