"""What warm jobs do on a real Spark Connect server: files of their own, a queue drained, and how far they are.

One server for all tests of the file.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import zipfile

import pyarrow.parquet
import pytest

from tests.daemons import queue_managers
from tests.monitor.warm_machine import JOB, NOTE, WarmMachine
from tests.spark.conftest import depth
from tests.waiting import until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# What javac makes of: public class Said { public static String it() { return "from the jar"; } }
SAID = base64.b64decode(
    "yv66vgAAADQADgoAAgADBwAEDAAFAAYBABBqYXZhL2xhbmcvT2JqZWN0AQAGPGluaXQ+AQADKClWCAAIAQAMZnJvbSB0aGUgamFyBwAKAQAEU2Fp"
    "ZAEABENvZGUBAAJpdAEAFCgpTGphdmEvbGFuZy9TdHJpbmc7ACEACQACAAAAAAACAAEABQAGAAEACwAAABEAAQABAAAABSq3AAGxAAAAAAAJAAwA"
    "DQABAAsAAAAPAAEAAAAAAAMSB7AAAAAAAAA="
)

# In the job's own process and in a worker of the server's; as what is not there, "".
USES = """\
def found(batches):
    import pathlib
    import pandas
    from pyspark import SparkFiles

    def text(name):
        path = pathlib.Path(SparkFiles.getRootDirectory(), name)
        return path.read_text() if path.exists() else ""

    for _ in batches:
        try:
            import of_the_run
            module = of_the_run.SAID
        except ImportError:
            module = ""
        texts = [module, text("words.txt"), text("unpacked/inside.txt")]
        yield pandas.DataFrame({"text": texts})

there = [row.text for row in spark.range(1, numPartitions=1).mapInPandas(found, "text string").collect()]
try:
    import of_the_run
    here = of_the_run.SAID
except ImportError:
    here = ""
try:
    jar = spark.sql("SELECT reflect('Said', 'it')").first()[0]
except Exception as error:
    jar = type(error).__name__
note(here=here, there=there, jar=jar)
"""

DRAINS = (
    NOTE
    + """\
from trigmon.spark import drain

spark = SparkSession.builder.getOrCreate()

def wait_for(name):
    while not os.path.exists(os.path.join(sys.argv[1], name)):
        time.sleep(0.05)

done = drain(spark, table=sys.argv[2], max_rows=40, options={"columns": "data", "partitions": 2})
note(rows=done.rows, batches=done.batches)
wait_for("more")
note(again=spark.read.parquet(sys.argv[2]).groupBy("batch").count().count())
wait_for("enough")
spark.stop()
"""
)


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    settings = {"connect.runs": 2, "monitor.grace_s": 2, "connect.deadline_s": 60}
    with queue_managers(lambda: tmp_path_factory.mktemp("qm")) as make:
        made = WarmMachine(make, tmp_path_factory.mktemp("warm"), **settings)
        try:
            made.job(beginning=JOB, text=USES, name="bare")
            made.wait_until_there(event="Spark Connect server is warm")
            yield made
        finally:
            made.end()


def of_queue(machine, q_name, **where):
    """The runs of a queue's, what joined one left out."""
    return [run for run in machine.runs(**where) if run["q_name"] == q_name and run["state"] != "joined"]


def put_and_wait(machine, q_name):
    """Returns the notes of the run that a message starts; it must end well."""
    before = len(of_queue(machine, q_name))
    machine.qm.put(q_name, b"go")
    run = until(lambda: next((run for run in of_queue(machine, q_name)[before:] if run["end_ms"]), None))
    assert run["exit_status"] == 0, run["stderr_tail"]
    return machine.wait_for_line(run["run_id"], "there")


def test_a_job_has_the_files_that_its_definition_names_and_another_in_the_same_server_has_none_of_them(
    machine, tmp_path
):
    (tmp_path / "of_the_run.py").write_text("SAID = 'from the module'\n")
    (tmp_path / "words.txt").write_text("from the file")
    with zipfile.ZipFile(tmp_path / "some.zip", "w") as archive:
        archive.writestr("inside.txt", "from the archive")
    with zipfile.ZipFile(tmp_path / "said.jar", "w") as jar:
        jar.writestr("Said.class", SAID)
    named = {
        "spark_py_files": "of_the_run.py",
        "spark_files": "words.txt",
        "spark_archives": "some.zip#unpacked",
        "spark_jars": "said.jar",
    }
    uses = machine.job(USES, "uses", working_directory=str(tmp_path), **named)
    line = put_and_wait(machine, uses)
    assert (line["here"], line["jar"]) == ("from the module", "from the jar")
    assert line["there"] == ["from the module", "from the file", "from the archive"]
    bare = put_and_wait(machine, "BARE.Q")
    assert (bare["here"], bare["there"]) == ("", ["", "", ""])
    assert bare["jar"] != "from the jar"


def test_a_drain_is_followed_found_again_by_the_next_monitor_and_takes_each_message_once(machine, tmp_path):
    table = tmp_path / "table"
    arguments = f"{machine.notes} {table}"
    queue = machine.job(beginning=DRAINS, name="drains", trigger_type="first", spark_arguments=arguments)
    machine.qm.put_many(queue, [b"%d" % n for n in range(100)])
    (run,) = until(lambda: of_queue(machine, queue))
    line = machine.wait_for_line(run["run_id"], "rows")
    assert (line["rows"], line["batches"]) == (100, 3)

    def record():
        (run,) = of_queue(machine, queue)
        return run

    def progress():
        return record().get("progress") or {}

    until(lambda: progress().get("rows_written", 0) >= 100)
    before = progress()
    assert before["tasks_done"] == before["tasks"] > 0
    assert before["stages_done"] == before["stages"] > 0
    assert record()["ui"] == machine.wait_until_there().ui
    monitor = machine.daemon.events("monitor started")[-1]["pid"]
    os.kill(monitor, signal.SIGKILL)
    until(lambda: machine.daemon.events("Spark Connect server found"))
    (machine.notes / "more").touch()
    assert machine.wait_for_line(run["run_id"], "again")["again"] == 3
    until(lambda: progress()["tasks_done"] > before["tasks_done"])
    assert "tasks" in machine.daemon.trigmon("runs", "show", run["run_id"]).stdout
    (machine.notes / "enough").touch()
    ended = until(lambda: run if (run := record())["end_ms"] else None)
    assert (ended["state"], ended["exit_status"], ended["committed"], ended["batches"]) == ("exited", 0, 100, 3)
    shown = json.loads(machine.daemon.trigmon("runs", "show", run["run_id"], "--output", "json").stdout)
    assert shown["submit_s"] >= 0
    assert shown["first_row_s"] > 0
    assert sorted(map(int, pyarrow.parquet.read_table(table)["data"].to_pylist())) == list(range(100))
    assert depth(machine.qm, queue) == 0
    assert machine.qm.reservations(queue) == []
    server = machine.wait_until_there()
    until(lambda: not machine.shelf.session(run["run_id"]))
    until(lambda: machine.sessions(server) == 0)
    assert [one["run_id"] for one in machine.runs() if one["q_name"] == queue] == [
        run["run_id"]
    ]  # nothing triggered again
