"""Every port of every kind of Spark process that is started here, attacked by another user of this machine."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import tempfile
import uuid
import zipfile
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path

import pytest

from tests.launch.conftest import make_order
from tests.launch.spark.attacks import fetched, listeners, page
from tests.launch.spark.attempts import PAGES, all_at_once, broken_into, read
from tests.launch.spark.homes import REAL, linked
from tests.spark.clusters import QUICK
from tests.spark.connect_server import ConnectServer
from tests.strangers import as_nobody
from tests.waiting import until
from trigmon.launch.spark.cold.submit import SparkSubmitLauncher
from trigmon.launch.spark.cold.web_page import headers, new_key
from trigmon.launch.spark.warm.connect_server import remote_of
from trigmon.launch.unix import environment
from trigmon.mq.enums import ApplType, SparkShort
from trigmon.rules.runs.spark_ports import is_loopback

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(os.geteuid() != 0, reason="another user of this machine is needed, and only root may be one"),
]
READY_S = 200.0
JOB = """\
import sys, time
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
total = spark.sparkContext.accumulator(0)
spark.sparkContext.parallelize([1], 1).foreach(total.add)
assert total.value == 1
loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()
assert len(sys.argv) == 1 or loader.getResource(sys.argv[1]) is not None
print("ready", flush=True)
time.sleep(600)
"""
QUIET = f"spark.log.level=WARN 'spark.driver.extraJavaOptions={QUICK}'"
OPEN = "spark.authenticate=false spark.driver.host=127.0.0.1 spark.driver.bindAddress=0.0.0.0 spark.ui.filters="


class Cold:
    """A driver by SPKSTART(SUBMIT), whose job is done and waits."""

    def __init__(self, directory, conf="", argument="", **fields):
        (directory / "job.py").write_text(JOB)
        order = make_order(
            f"job.py {argument}".strip(),
            appl_type=ApplType.SPARK,
            working_directory=str(directory),
            **{"spark_conf": f"{QUIET} {conf}", "spark_driver_memory": "600m"} | fields,
        )
        launcher = SparkSubmitLauncher(directory, makes_archives=False)
        plan = launcher.plan(order)
        self.log = directory / "log"
        self.lead = lambda: launcher.lead(order, directory, self.process.pid)
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                plan.argv,
                env=environment(plan),
                cwd=directory,
                umask=0o077,  # as a keeper has it
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        until(self._is_ready, READY_S)

    def _is_ready(self):
        assert self.process.poll() is None, self.log.read_text()
        return "ready" in self.log.read_text()

    def end(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    @property
    def session(self):
        return self.process.pid


class Maker:
    """The Java machine that makes an archive of classes; its job does not go on once its ports are there."""

    def __init__(self, directory):
        held = directory / "held"
        (directory / "hold.py").write_text(HOLD.format(held=str(held)))
        python = directory / "python"
        python.write_text(AS_PYTHON.format(python=sys.executable, hold=directory / "hold.py"))
        python.chmod(0o755)
        code = "import sys; from pathlib import Path; from trigmon.launch.spark.cold import make_archive as it; "
        code += "from trigmon.launch.spark.cold.class_archive import Archives; "
        code += "from trigmon.launch.spark.cold.java import find_java; "
        code += "sys.executable = sys.argv[3]; "
        code += "it.make(Archives(Path(sys.argv[1])), Path(sys.argv[2]), find_java(Path(sys.argv[1])))"
        argv = [sys.executable, "-c", code, str(directory), str(REAL), str(python)]
        self.process = subprocess.Popen(argv, start_new_session=True)
        until(lambda: held.is_file() or self.process.poll() is not None, READY_S)
        self.session = int(held.read_text())

    def end(self):
        os.killpg(self.session, signal.SIGKILL)
        self.process.wait()


AS_PYTHON = """\
#!/bin/sh
case "$1" in */archive_workload.py) exec {python} {hold} "$@" ;; esac
exec {python} "$@"
"""
HOLD = """\
import os, pathlib, runpy, sys, time
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceRegistration

def hold(self, source):
    total = SparkSession.getActiveSession().sparkContext.accumulator(0)
    SparkSession.getActiveSession().sparkContext.parallelize([1], 1).foreach(total.add)
    written = pathlib.Path({held!r} + ".new")
    written.write_text(str(os.getsid(0)))
    written.rename({held!r})
    time.sleep(600)

DataSourceRegistration.register = hold
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


class Warm:
    """A Spark Connect server as a monitor has it, by itself."""

    def __init__(self, directory, *conf):
        self.server = ConnectServer(directory, *conf).start()
        self.session = self.server.process.pid

    def end(self):
        self.server.kill()


def by_spark_submit(directory):
    """A Spark with a conf directory, which is left to its own spark-submit."""
    home = linked(directory / "spark")
    (home / "conf").mkdir()
    (home / "conf" / "spark-defaults.conf").write_text("spark.authenticate false\nspark.driver.host 0.0.0.0\n")
    return Cold(directory, spark_environment=f"SPARK_HOME={home}")


def with_a_jar(directory):
    """Whose job has a jar, which Spark would hand out by its name."""
    with zipfile.ZipFile(directory / "own.jar", "w") as jar:
        jar.writestr("found.txt", "in the jar")
    return Cold(directory, argument="found.txt", spark_jars="own.jar", spark_master="local[2]")


KINDS = {
    "cold": with_a_jar,
    "short": lambda directory: Cold(directory, spark_short=SparkShort.YES),
    "executors beside it": lambda directory: Cold(
        directory, "spark.executor.memory=600m", spark_master="local-cluster[1,1,600]"
    ),
    "by spark-submit": by_spark_submit,
    "warm": Warm,
    "an archive's maker": Maker,
}


LONG = ("short", "executors beside it", "by spark-submit", "an archive's maker")
"""Kinds whose start takes longest."""
KEPT = ("cold", "warm")
"""Kinds that more than one test looks at, each started once."""


@contextmanager
def running(make, directory, *given):
    made = make(directory, *given)
    try:
        yield made
    finally:
        made.end()


@pytest.fixture
def place():
    """A directory with a name as short as a monitor's: that of a socket is limited."""
    with tempfile.TemporaryDirectory(prefix="trigmon-") as directory:
        yield Path(directory)


@pytest.fixture(scope="module")
def kept():
    """Starts one of :data:`KEPT`."""
    with ExitStack() as until_end:

        def started(kind):
            if kind not in found:
                directory = until_end.enter_context(tempfile.TemporaryDirectory(prefix="trigmon-"))
                found[kind] = until_end.enter_context(running(KINDS[kind], Path(directory)))
            return found[kind]

        found = {}
        yield started


@pytest.fixture
def warm(kept):
    return kept("warm")


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.slow) if kind in LONG else kind for kind in KINDS]
)
def test_no_port_of_a_spark_process_takes_anything_from_a_stranger(kind, kept, place):
    with nullcontext(kept(kind)) if kind in KEPT else running(KINDS[kind], place) as spark:
        _is_closed(spark)


def _is_closed(spark):
    addresses = {address for address, _ in listeners(spark.session)}
    assert all(map(is_loopback, addresses)), addresses
    assert broken_into(spark.session) == set()
    assert read(spark.session) == set()
    assert listeners(spark.session, "python") == set()


@pytest.mark.slow
@pytest.mark.parametrize(("make", "expected"), [(Cold, (OPEN,)), (Warm, tuple(OPEN.split()))])
def test_the_attack_succeeds_where_a_definition_opens_the_ports_itself(make, expected, place):
    with running(make, place, *expected) as spark:
        assert not all(is_loopback(address) for address, _ in listeners(spark.session))
        assert broken_into(spark.session) == {"uploads_a_block", "hears"}
        assert "/environment/" in read(spark.session)


CLIENT = """\
import sys, time
from pyspark.sql import SparkSession

spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
spark.addArtifacts(sys.argv[2], file=True)
spark.range(1).collect()
print("ready", flush=True)
time.sleep(600)
"""


def test_without_the_token_of_a_warm_server_nobody_is_heard_by_it(warm):
    grpc = pytest.importorskip("grpc")
    importlib.import_module("grpc._channel")  # the stranger may not read this environment, and has what is imported

    def attack():
        with grpc.insecure_channel(f"localhost:{warm.server.server.port}") as channel:
            try:
                return channel.unary_unary("/spark.connect.SparkConnectService/AnalyzePlan")(b"", timeout=60)
            except grpc.RpcError as error:
                return error.code().name

    assert as_nobody(attack) == "UNAUTHENTICATED"


def test_the_page_of_a_warm_server_asks_for_its_token(warm):
    address = ("127.0.0.1", warm.server.server.ui_port)
    assert as_nobody(lambda: {page(address, path) for path in PAGES}) == {403}
    assert as_nobody(lambda: page(address, headers=headers(new_key()))) == 403
    shown = headers(warm.server.page_key)
    assert {page(address, path, shown) for path in PAGES} <= {200, 302}
    words = Path(f"/proc/{warm.session}/cmdline").read_text()
    assert warm.server.page_key not in words
    assert warm.server.server.token not in words


def test_a_sessions_file_is_found_by_nobody_who_knows_its_session_and_its_name(warm, tmp_path):
    """Spark serves a file to each client that names it: only the secret name protects the file."""
    file = tmp_path / f"{uuid.uuid4()}.txt"
    file.write_text("nobody's business")
    session = str(uuid.uuid4())
    argv = [sys.executable, "-c", CLIENT, remote_of(warm.server.url, "u", session), str(file)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as client:
        try:
            assert client.stdout.readline() == "ready\n"
            (stored,) = (
                each for each in Path(tempfile.gettempdir()).glob("artifacts-*/*/files/*") if each.name == file.name
            )
            name = stored.relative_to(stored.parents[2])
            assert not any(session in part for part in name.parts)
            assert uuid.UUID(name.parts[0]).version == 4
            ports = {port for _, port in listeners(warm.session)}
            guesses = [
                f"{each}/{file.name}" for each in (f"/artifacts/{session}/files", "/artifacts/files", "/files", "/jars")
            ]
            guesses += ["/artifacts/../../../log", "/artifacts", "/artifacts/", str(stored)]

            def attack(names):
                return {each for each in names for port in ports if fetched(("127.0.0.1", port), each) is not None}

            assert as_nobody(lambda: attack(guesses)) == set()
            assert as_nobody(lambda: attack([f"/artifacts/{name}"])) == {f"/artifacts/{name}"}
            assert name.parts[0] not in Path(f"/proc/{warm.session}/cmdline").read_text()
            with pytest.raises(PermissionError):
                as_nobody(lambda: list(stored.parents[2].iterdir()))
        finally:
            client.kill()


def test_a_local_drivers_jar_is_handed_to_nobody(kept):
    addresses = [("127.0.0.1", port) for _, port in listeners(kept("cold").session)]
    tried = as_nobody(lambda: all_at_once(fetched, addresses, ["/jars/own.jar"]))
    assert {data for _, data in tried} == {None}
