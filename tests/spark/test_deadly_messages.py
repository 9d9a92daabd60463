"""A message that kills the job that reads it, again and again: it is set aside, and the rest is in the table once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest

from tests.daemons import define
from tests.spark.conftest import depth, spark_environment
from trigmon.mq.calls import Alter
from trigmon.mq.enums import MsgFlag

pytestmark = [pytest.mark.spark]
JOB = Path(__file__).with_name("deadly_job.py")
MOST_RUNS = 8


@pytest.fixture
def aside(qm, q_name):
    name = f"{q_name}.ASIDE"
    define(qm, name, def_persistence="persistent")
    qm.call(Alter(object_type="QLOCAL", name=q_name, attributes={"backout_requeue_q_name": name}))
    return name


@pytest.fixture
def run(shared_daemon, q_name, tmp_path):
    """Runs the job, as a trigger would again and again while messages are left."""

    def run(how, max_rows):
        environment = shared_daemon.env | spark_environment(tmp_path)
        argv = [sys.executable, str(JOB), how, str(tmp_path / "table"), q_name, shared_daemon.address, str(max_rows)]
        return subprocess.run(argv, env=environment, capture_output=True, text=True, check=False, timeout=600)

    return run


def in_table(directory):
    return sorted(pyarrow.parquet.read_table(directory, columns=["data"])["data"].to_pylist())


@pytest.mark.slow
@pytest.mark.parametrize("how", ["signal", "exit", "java"])
def test_it_goes_to_the_backout_queue_with_what_is_known_and_all_others_are_in_the_table_once(
    qm, q_name, aside, run, tmp_path, how
):
    bodies = [b"%02d" % n for n in range(12)]
    bodies[7] = b"bad"
    qm.put_many(q_name, bodies)
    runs = 0
    while depth(qm, q_name):
        runs += 1
        assert runs <= MOST_RUNS
        ended = run(how, 12)
        if how == "signal" and depth(qm, q_name):
            assert ended.returncode == -9, ended.stderr
        if runs == 1:  # one death parts nothing
            assert [row["left"] for row in qm.reservations(q_name)] == [12]
            assert list(tmp_path.glob("table*")) == []
    assert in_table(tmp_path / "table") == sorted(set(bodies) - {b"bad"})
    assert (depth(qm, aside), qm.reservations(q_name)) == (1, [])
    with qm.open(aside, "input_shared") as q:
        message = q.get()
    assert message.body == b"bad"
    assert message.rejection.why.startswith("2 jobs died while they worked on it alone; the last one was ")


@pytest.mark.slow
def test_a_group_with_it_goes_as_a_whole_and_no_other_is_cut(qm, q_name, aside, run, tmp_path):
    with qm.open(q_name, "output") as q:
        for group in range(8):
            for number in range(1, 4):
                flag = MsgFlag.LAST_MSG_IN_GROUP if number == 3 else MsgFlag.MSG_IN_GROUP
                body = b"bad" if (group, number) == (5, 2) else b"%d-%d" % (group, number)
                q.put(body, group_id=b"%d" % group, msg_seq_number=number, msg_flags=flag)
    for _ in range(MOST_RUNS):
        if depth(qm, q_name):
            run("signal", 24)
    assert in_table(tmp_path / "table") == sorted(b"%d-%d" % (g, n) for g in range(8) if g != 5 for n in (1, 2, 3))
    assert (depth(qm, q_name), depth(qm, aside), qm.reservations(q_name)) == (0, 3, [])
    for directory in (tmp_path / "table").glob("batch=*"):
        groups = (
            pyarrow.parquet.ParquetDataset(directory).read()["group_id"].to_pylist()
            if any(directory.glob("*.parquet"))
            else []
        )
        assert all(groups.count(group) == 3 for group in groups)
