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
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.launch.conftest import make_order
from tests.launch.spark.attacks import at_each, fetched, hears, listeners, page, uploads_a_block
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
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.geteuid() != 0, reason="another user of this machine is needed, and only root may be one"),
]
READY_S = 200.0
JOB = """\
import sys, time
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sparkContext.parallelize([1], 1).map(lambda one: one + 1).collect()
loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()
assert len(sys.argv) == 1 or loader.getResource(sys.argv[1]) is not None
print("ready", flush=True)
time.sleep(600)
"""
QUIET = f"spark.log.level=WARN 'spark.driver.extraJavaOptions={QUICK}'"
PAGES = ("/", "/environment/", "/connect/", "/executors/threadDump/?executorId=driver", "/api/v1/applications")
OPEN = "spark.authenticate=false spark.driver.host=127.0.0.1 spark.driver.bindAddress=0.0.0.0 spark.ui.filters="


class Cold:
    """A driver by SPKSTART(SUBMIT), whose job is done and waits."""

    def __init__(self, directory, conf="", argument="", **said):
        (directory / "job.py").write_text(JOB)
        order = make_order(
            f"job.py {argument}".strip(),
            appl_type=ApplType.SPARK,
            working_directory=str(directory),
            **{"spark_conf": f"{QUIET} {conf}", "spark_driver_memory": "600m"} | said,
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
    """The Java machine that makes an archive of classes; the job that it runs is stopped in the middle."""

    def __init__(self, directory):
        code = "import sys; from pathlib import Path; from trigmon.launch.spark.cold import make_archive as it; "
        code += "from trigmon.launch.spark.cold.class_archive import Archives; "
        code += "from trigmon.launch.spark.cold.java import find_java; "
        code += "it.make(Archives(Path(sys.argv[1])), Path(sys.argv[2]), find_java(Path(sys.argv[1])))"
        argv = [sys.executable, "-c", code, str(directory), str(REAL)]
        self.process = subprocess.Popen(argv, start_new_session=True)
        job = until(self._job, READY_S)
        self.session = os.getsid(job)
        until(lambda: len(listeners(self.session)) >= 4 or not Path(f"/proc/{job}").exists(), READY_S)
        os.kill(job, signal.SIGSTOP)

    def _job(self):
        for job in (each for java in children(self.process.pid) for each in children(java)):
            with suppress(OSError):  # it was another one, and has gone
                if "training.py" in Path(f"/proc/{job}/cmdline").read_text():
                    return job
        return 0

    def end(self):
        os.killpg(self.session, signal.SIGKILL)
        self.process.wait()


class Warm:
    """A Spark Connect server as a monitor has it, by itself."""

    def __init__(self, directory, *conf):
        self.server = ConnectServer(directory, *conf).start()
        self.session = self.server.process.pid

    def end(self):
        self.server.kill()


def children(pid):
    """Of all threads: a Java machine starts processes from whichever is at it."""
    found = []
    for task in Path("/proc").glob(f"{pid}/task/*/children"):
        with suppress(OSError):
            found += map(int, task.read_text().split())
    return found


def by_spark_submit(directory):
    """A Spark with a conf directory, which is left to its own spark-submit."""
    home = linked(directory / "spark")
    (home / "conf").mkdir()
    (home / "conf" / "spark-defaults.conf").write_text("spark.authenticate false\nspark.driver.host 0.0.0.0\n")
    return Cold(directory, spark_environment=f"SPARK_HOME={home}")


KINDS = {
    "cold": Cold,
    "short": lambda directory: Cold(directory, spark_short=SparkShort.YES),
    "by spark-submit": by_spark_submit,
    "warm": Warm,
    "an archive's maker": Maker,
}


@contextmanager
def running(make, directory, *given):
    made = make(directory, *given)
    try:
        yield made
    finally:
        made.end()


def broken_into(session):
    """What a stranger achieved at any port."""
    ports = {port for _, port in listeners(session)}
    assert len(ports) >= 2, "Spark listens for RPC and for blocks at least"

    def attack(address):
        return {each.__name__ for each in (uploads_a_block, hears) if each(address)}

    return as_nobody(lambda: set().union(*at_each(ports, attack)))


def read(session):
    """The pages that a stranger may read at any port."""
    ports = {port for _, port in listeners(session)}

    def attack(address):
        return {path for path in PAGES if page(address, path) in (200, 302)} if page(address) else set()

    return as_nobody(lambda: set().union(*at_each(ports, attack)))


# A cold driver's silent ports are waited for, for more than a minute: one way of starting it is looked at every day. A
# maker's job may have ended before it is stopped.
_SELDOM = ("short", "by spark-submit", "an archive's maker")


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.slow] if kind in _SELDOM else []) for kind in KINDS]
)
def test_no_port_of_a_spark_process_takes_anything_from_a_stranger(kind, tmp_path):
    with running(KINDS[kind], tmp_path) as spark:
        addresses = {address for address, _ in listeners(spark.session)}
        assert all(map(is_loopback, addresses)), addresses
        assert broken_into(spark.session) == set()
        assert read(spark.session) == set()


@pytest.mark.parametrize(
    ("make", "said"), [pytest.param(Cold, (OPEN,), marks=pytest.mark.slow), (Warm, tuple(OPEN.split()))]
)
def test_the_attack_succeeds_where_a_definition_opens_the_ports_itself(make, said, tmp_path):
    with running(make, tmp_path, *said) as spark:
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


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    with running(Warm, tmp_path_factory.mktemp("warm")) as server:
        yield server


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
    """Spark hands a file to whoever names it: what keeps a stranger out is a name of its own making, told to no one."""
    file = tmp_path / f"{uuid.uuid4()}.txt"
    file.write_text("nobody's business")
    session = str(uuid.uuid4())
    argv = [sys.executable, "-c", CLIENT, remote_of(warm.server.url, "u", session), str(file)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as client:
        try:
            assert client.stdout.readline() == "ready\n"
            (kept,) = (
                each for each in Path(tempfile.gettempdir()).glob("artifacts-*/*/files/*") if each.name == file.name
            )
            name = kept.relative_to(kept.parents[2])
            assert not any(session in part for part in name.parts)
            assert uuid.UUID(name.parts[0]).version == 4
            ports = {port for _, port in listeners(warm.session)}
            guesses = [
                f"{each}/{file.name}" for each in (f"/artifacts/{session}/files", "/artifacts/files", "/files", "/jars")
            ]
            guesses += ["/artifacts/../../../log", "/artifacts", "/artifacts/", str(kept)]

            def attack(names):
                return {each for each in names for port in ports if fetched(("127.0.0.1", port), each) is not None}

            assert as_nobody(lambda: attack(guesses)) == set()
            assert as_nobody(lambda: attack([f"/artifacts/{name}"])) == {f"/artifacts/{name}"}
            assert name.parts[0] not in Path(f"/proc/{warm.session}/cmdline").read_text()
            with pytest.raises(PermissionError):
                as_nobody(lambda: list(kept.parents[2].iterdir()))
        finally:
            client.kill()


def test_a_local_drivers_jar_is_handed_to_nobody_and_its_page_to_the_monitor_alone(tmp_path):
    with zipfile.ZipFile(tmp_path / "own.jar", "w") as jar:
        jar.writestr("found.txt", "in the jar")
    spark = Cold(tmp_path, argument="found.txt", spark_jars="own.jar", spark_master="local[2]")
    try:
        ports = {port for _, port in listeners(spark.session)}
        asked = as_nobody(lambda: at_each(ports, lambda address: fetched(address, "/jars/own.jar")))
        assert asked == [None] * len(ports)
    finally:
        spark.end()
