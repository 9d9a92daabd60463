"""Workers that are hosts of their own read by tickets: through a cut cable, and in place of a killed one.

Each worker has a network namespace, with an address of its own and a cable to the queue manager's TLS listener.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest

from tests.daemons import define
from tests.spark.clusters import QUICK, Cluster, Network, ip, why_no_namespaces
from tests.spark.conftest import ROOT, depth, spark_environment
from tests.tls.authorities import Site
from tests.waiting import until
from trigmon.launch.spark.cold.submit import spark_home
from trigmon.mq.calls import DisplayConnections, EndConnection
from trigmon.mq.replies import Listing
from trigmon.rules.model.ticket import Ticket
from trigmon.spark import options
from trigmon.spark.reader import QueueReader
from trigmon.tls.tickets import ticket_key

TASK = Path(__file__).with_name("ticket_task.py")
MESSAGES, LONG = 200, 100_000
"""Of a part of 100 messages of 100 KB the queue manager sends 40 at a time."""


@pytest.fixture(scope="module")
def network():
    if why := why_no_namespaces():
        pytest.skip(why)
    made = Network(2, f"10.79.{os.getpid() % 200 + 20}", "t")
    try:
        made.make()
        yield made
    finally:
        made.remove()


@pytest.fixture
def site(network, tmp_path):
    return Site(tmp_path / "tls", (network.address,))


@pytest.fixture
def one(daemon, network, site):
    """A queue manager whose TLS listener is on the bridge. No user may come there: only tickets open it."""
    made = daemon(settings=site.settings | {"tls.listen": f"{network.address}:{site.port}"})
    with made.connect() as qm:
        define(qm, "Q", def_persistence="persistent", max_q_depth=100_000)
    return made


@pytest.fixture
def task_address(network, site):
    return f"tls://{network.address}:{site.port}/QM1?authority={site.directory / 'authority.crt'}"


class Task:
    """One task in a worker's namespace; ``seen`` is what it has read so far."""

    def __init__(self, network, number, reader, partition):
        environment = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]}
        argv = ["ip", "netns", "exec", network.names[number], sys.executable, str(TASK)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(argv, env=environment, stdin=pipe, stdout=pipe, stderr=pipe)
        self.process.stdin.write(pickle.dumps((reader, partition)))
        self.process.stdin.flush()
        self.seen = []

    def batch(self):
        """Waits for the next batch; False at the end."""
        line = self.process.stdout.readline()
        if line:
            self.seen += json.loads(line)
        else:
            assert self.process.wait(60) == 0, self.process.stderr.read().decode()
        return bool(line)

    def go_on(self):
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def finish(self):
        """Lets it read to its end; returns all that it has read."""
        self.go_on()
        while self.batch():
            self.go_on()
        self.process.communicate(timeout=60)
        return self.seen

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()


def cut(network, number):
    ip("link", "set", network.outside[number], "down")


def mend(network, number):
    ip("link", "set", network.outside[number], "up")


def is_stuck(network, number):
    """Whether a connection of the worker has sent what nobody took."""
    shown = subprocess.run(
        ["ip", "netns", "exec", network.names[number], "cat", "/proc/net/tcp", "/proc/net/tcp6"],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line.split() for line in shown.stdout.splitlines()]
    return any(int(line[4].partition(":")[0], 16) for line in lines if line[3] == "01")


def connections_by_ticket(qm):
    return [row for row in qm.ask(DisplayConnections(), Listing).rows if row["application"] == "spark reading"]


def test_each_message_is_read_once_through_a_cut_cable_a_dropped_link_and_a_killed_worker(one, network, task_address):
    with one.connect() as qm, qm.open("Q", "input_shared") as queue:
        qm.put_many("Q", [b"%06d" % n + b"." * (LONG - 6) for n in range(MESSAGES)])
        made = queue.reserve("JOB")
        given = {"queue": "Q", "address": one.address, "reservation": str(made.number), "partitions": "2"}
        given = options.read(given | {"taskAddress": task_address, "columns": "data"})
        reader = QueueReader(given, pyarrow.schema([("data", pyarrow.binary())]))
        first, second = pickle.loads(pickle.dumps(reader.partitions()))
        steady, doomed = Task(network, 0, reader, first), Task(network, 1, reader, second)
        assert steady.batch()
        assert doomed.batch()
        doomed.kill()
        until(lambda: len(connections_by_ticket(qm)) == 1)
        cut(network, 0)
        steady.go_on()
        until(lambda: is_stuck(network, 0))
        mend(network, 0)
        assert steady.batch()
        # The queue manager has given the connection up meanwhile: the task comes again by its ticket.
        cut(network, 0)
        steady.go_on()
        until(lambda: is_stuck(network, 0))
        (row,) = connections_by_ticket(qm)
        qm.call(EndConnection(connection=row["connection"]))
        mend(network, 0)
        again = Task(network, 0, reader, second)
        assert again.batch()
        assert steady.batch()
        assert sorted(steady.finish() + again.finish()) == list(range(MESSAGES))
        (row,) = qm.reservations("Q")
        assert (row["left"], row["readers"], row["held"]) == (MESSAGES, 0, True)
        made.settle()
        assert depth(qm, "Q") == 0


A_TICKET = re.compile(r"[\w-]{30,}=*\.[\w-]{43}=")
"""A text that would be a ticket: a body and a signature of 32 bytes."""
DRAINED, BATCH = 12_000, 1000
JOB = """\
import sys
from pyspark.sql import SparkSession
from trigmon.spark import drain

spark = SparkSession.builder.getOrCreate()
done = drain(spark, queue="Q", table=sys.argv[1], max_rows=int(sys.argv[2]), options={"partitions": 4})
print("drained", done.rows)
"""


@pytest.fixture
def cluster(network, tmp_path):
    with Cluster(tmp_path, network, memory="1g") as made:
        yield made


def submit(one, cluster, task_address, directory):
    """Starts a job as a monitor would: its driver is on the queue manager's machine, its executors are not."""
    (directory / "job.py").write_text(JOB)
    conf = {
        "spark.driver.host": cluster.host,
        "spark.driver.bindAddress": cluster.host,
        "spark.executor.memory": "600m",
        "spark.executor.cores": 1,
        "spark.cores.max": 2,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": 2,
        "spark.driver.extraJavaOptions": QUICK,
        "spark.executor.extraJavaOptions": QUICK,
    }
    words = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    argv = [str(spark_home(os.environ) / "bin" / "spark-submit"), "--master", cluster.address, *words]
    ours = {"TRIGMON_QMGR": one.address, "TRIGMON_TASK_ADDRESS": task_address, "SPARK_LOCAL_IP": cluster.host}
    environment = os.environ | spark_environment(directory) | ours
    with (directory / "job.log").open("wb") as log:
        job = [*argv, str(directory / "job.py"), str(directory / "table"), str(BATCH)]
        return subprocess.Popen(job, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(1700)
def test_a_cluster_drains_by_tickets_alone_through_a_cut_cable_and_a_killed_worker(
    one, network, cluster, task_address, tmp_path
):
    with one.connect() as qm:
        qm.put_many("Q", [b"%d" % n for n in range(DRAINED)])
        job = submit(one, cluster, task_address, tmp_path)
        try:

            def is_beyond(left):
                assert job.poll() is None, (tmp_path / "job.log").read_text()[-5000:]
                return depth(qm, "Q") <= left

            until(lambda: is_beyond(DRAINED - 2 * BATCH), 600)
            until(lambda: {row["ticket"] > 0 for row in connections_by_ticket(qm)} == {True}, 60)
            cut(network, 0)
            until(lambda: is_stuck(network, 0), 60)
            mend(network, 0)
            until(lambda: is_beyond(DRAINED // 2), 600)
            cluster.kill_worker(1)
            assert job.wait(900) == 0, (tmp_path / "job.log").read_text()[-5000:]
        finally:
            job.kill()
            job.wait()
        assert depth(qm, "Q") == 0
    rows = pyarrow.parquet.read_table(tmp_path / "table", columns=["data"])
    assert sorted(int(data) for data in rows["data"].to_pylist()) == list(range(DRAINED))
    told = [tmp_path / "job.log", one.log, *tmp_path.glob("log*"), *tmp_path.glob("worker*/*/*/std*")]
    assert len(told) > 5
    assert A_TICKET.search(
        ticket_key(tmp_path / "tls" / "ticket.key", "QM1").signed(Ticket(1, "Q", 1 << 40, "root", 1 << 40))
    )
    assert not any(A_TICKET.search(path.read_text(errors="replace")) for path in told)
