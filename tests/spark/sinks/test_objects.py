"""Parquet on an object store: each batch once, by one manifest. The store is moto which speaks S3, a process."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.request import Request, urlopen

import pyarrow.parquet
import pytest
from deltalake import DeltaTable

from tests.spark.clusters import free_port
from tests.spark.sinks.plays import TablePlays, name
from tests.waiting import until
from trigmon.spark.sinks.delta_table import DeltaSink
from trigmon.spark.sinks.object_table import ObjectSink, object_files, read_objects
from trigmon.spark.sinks.place import is_url, place_of
from trigmon.spark.sinks.sink import BatchRefusedError, SinkError

pytestmark = [pytest.mark.spark]
SERVER = """
import sys
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple
run_simple("127.0.0.1", int(sys.argv[1]), DomainDispatcherApplication(create_backend_app), threaded=False)
"""
"""One request at a time: in moto the look at a condition and the write are two steps."""


@pytest.fixture(scope="module")
def store():
    """The options of a store with a bucket."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    argv = [sys.executable, "-W", "ignore", "-c", SERVER, str(port)]
    server = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: made_bucket(url), 120)
        yield {
            "aws_endpoint_url": url,
            "aws_access_key_id": "test",
            "aws_secret_access_key": "test",
            "aws_region": "us-east-1",
            "aws_allow_http": "true",
        }
    finally:
        server.kill()
        server.wait()


def made_bucket(url):
    with suppress(OSError), urlopen(Request(f"{url}/bucket", method="PUT")) as made:
        return made.status == 200
    return False


@pytest.fixture
def table(request):
    return f"s3://bucket/{abs(hash(request.node.nodeid))}"


class TestObjects(TablePlays):
    @pytest.fixture
    def made(self, store, table):
        return lambda **more: ObjectSink(table, options=store, **more)

    @pytest.fixture
    def rows(self, store, table, spark):
        return lambda: [row.asDict() for row in read_objects(spark, table, store).collect()]

    @pytest.fixture
    def files(self, store, table):
        place = place_of(table, store)
        return lambda: [path for path in place.names("") if path.endswith(".parquet")]


class TestDirectory(TablePlays):
    """The same on a file system of this machine, where a link is the conditional write."""

    @pytest.fixture
    def made(self, tmp_path):
        return lambda **more: ObjectSink(str(tmp_path / "a table"), **more)

    @pytest.fixture
    def rows(self, tmp_path, spark):
        return lambda: [row.asDict() for row in read_objects(spark, str(tmp_path / "a table")).collect()]

    @pytest.fixture
    def files(self, tmp_path):
        return lambda: sorted(tmp_path.rglob("*.parquet"))


def test_a_url_with_a_scheme_that_cannot_be_is_refused_and_no_directory():
    with pytest.raises(SinkError, match="my_s3://b"):
        place_of("my_s3://b")


def test_a_directory_whose_name_has_a_colon_is_a_path_and_no_url(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert all(map(is_url, ("s3://b/x", Path("s3://b/x"), "my_s3://b", "file:///x")))
    assert not any(map(is_url, ("day:1", "a/b:/c", "/x")))
    assert place_of("day:1").put_new("it", b"1")
    assert (tmp_path / "day:1" / "it").read_bytes() == b"1"


def test_of_many_conditional_writes_one_writes(store, table):
    place = place_of(table, store)
    with ThreadPoolExecutor(8) as threads:
        took = list(threads.map(lambda n: place.put_new("it", b"%d" % n), range(16)))
    assert took.count(True) == 1
    assert place.get("it") == b"%d" % took.index(True)


def test_other_engines_get_the_urls_of_the_files_that_belong_to_the_table(spark, store, table):
    place = place_of(table, store)
    with place.open("b1/of a killed task.parquet") as left:
        left.write(b"no Parquet")
    with place.open("b2/of another batch.parquet") as left:
        left.write(b"no Parquet")
    assert ObjectSink(table, options=store).write(spark.range(3).coalesce(1), name(1))
    (url,) = object_files(table, store)
    assert url.startswith(f"{table}/b1/")
    assert place.names("b1") == [url.removeprefix(f"{table}/")]
    data = place.get(url.removeprefix(f"{table}/"))
    assert pyarrow.parquet.read_table(pyarrow.BufferReader(data)).num_rows == 3


def test_a_delta_table_lies_on_an_object_store_too_and_takes_each_batch_once(spark, table, store):
    for _ in range(2):
        is_new = DeltaSink(table, options=store, partition_by=["at"]).write(
            spark.range(4).selectExpr("id", "'a b' as at"), name(1)
        )
    assert not is_new
    (path,) = {Path(url).parent.name for url in DeltaTable(table, storage_options=store).file_uris()}
    assert path == "at=a%20b"
    assert DeltaSink(table, options=store).refuse(name(2))
    with pytest.raises(BatchRefusedError):
        DeltaSink(table, options=store).write(spark.range(1), name(2))


def test_a_store_that_does_not_answer_is_the_sink_s_fault(table, store):
    nobody = store | {"aws_endpoint_url": f"http://127.0.0.1:{free_port()}"}
    with pytest.raises(SinkError, match=table):
        ObjectSink(table, options=nobody).check()


def test_a_table_that_is_not_there_is_named(spark, table, store):
    with pytest.raises(SinkError, match=f"{table} is no table"):
        read_objects(spark, table, store)
