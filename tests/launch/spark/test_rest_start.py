"""The arguments of a supervisor, from a process definition."""

from __future__ import annotations

import itertools

import pytest
from msgspec.structs import replace

from trigmon.launch.launch_plan import LaunchError
from trigmon.launch.spark.cluster import driver_journal
from trigmon.launch.spark.cluster.rest_start import Cluster, SparkRestLauncher, cluster_of, supervised
from trigmon.mq.enums import ApplType, SparkDeployMode, SparkStart

ASKING = "2026-11-21T20:01:02.123Z asking http://m:6066 1795291262123\n"
SUBMITTED = "2026-11-21T20:01:02.456Z submitted driver-20261121200102-0000\n"


@pytest.fixture
def job(order):
    def made(**fields):
        known = {"appl_type": ApplType.SPARK, "spark_start": SparkStart.REST, "spark_master": "spark://m:7077"}
        return order("/jobs/job.py", **known | fields)

    return made


@pytest.mark.parametrize(
    ("master", "settings", "wanted"),
    [
        ("spark://m:7077", {}, Cluster(["http://m:6066"], ["http://m:8080"], "spark://m:7077")),
        (
            "spark://m:7077,n:7078",
            {"spark.master.rest.port": "1", "spark.master.ui.port": "2"},
            Cluster(["http://m:1", "http://n:1"], ["http://m:2", "http://n:2"], "spark://m:7077,n:7078"),
        ),
        ("spark://[::1]:7077", {}, Cluster(["http://[::1]:6066"], ["http://[::1]:8080"], "spark://[::1]:7077")),
        ("https://p/spark", {}, Cluster(["https://p/spark"], ["http://p:8080"], "spark://p:7077")),
        ("https://p", {"spark.master": "spark://m:1"}, Cluster(["https://p"], ["http://p:8080"], "spark://m:1")),
    ],
)
def test_where_a_cluster_is_asked(master, settings, wanted):
    assert cluster_of(master, settings) == wanted


@pytest.mark.parametrize("master", ["spark://", "https://", "spark://m:7077,", "http://[::1"])
def test_a_master_without_a_host_is_refused(master):
    with pytest.raises(LaunchError, match="SPKMASTER"):
        cluster_of(master, {})


def test_the_driver_gets_what_spark_submit_would_get_and_its_jvm_what_comes_before(job):
    options, there = supervised(
        job(
            spark_conf="spark.driver.host=h spark.authenticate=true spark.sql.ansi.enabled=true",
            spark_driver_memory="1g",
            spark_driver_cores=2,
            spark_executor_memory="2g",
            spark_py_files="/jobs/a.py",
            spark_arguments="--day {trigdata}",
            spark_name="load {queue}",
            trigger_data="1 2",
        )
    )
    properties = [value for name, value in itertools.pairwise(options) if name == "--property"]
    assert sorted(properties) == [
        "spark.app.name=load ORDERS",
        "spark.authenticate=true",
        "spark.driver.cores=2",
        "spark.driver.host=h",
        "spark.driver.memory=1g",
        "spark.master=spark://m:7077",
    ]
    assert there[:2] == ["--master", "spark://m:7077"]
    assert there[there.index("--executor-memory") :][:2] == ["--executor-memory", "2g"]
    assert there[there.index("--py-files") + 1] == "/jobs/a.py"
    assert there[-3:] == ["/jobs/job.py", "--day", "1 2"]


def test_there_spark_submit_is_in_client_mode_for_the_driver_is_there(job):
    assert "--deploy-mode" not in supervised(job(spark_deploy_mode=SparkDeployMode.CLUSTER))[1]


def test_the_variables_are_named_and_their_values_stay_out_of_the_command(job):
    plan = SparkRestLauncher().plan(job(spark_environment="SECRET=x1y2z3"))
    assert plan.environment["SECRET"] == "x1y2z3"
    assert "x1y2z3" not in " ".join(plan.argv)
    named = [value for name, value in zip(plan.argv, plan.argv[1:], strict=False) if name == "--variable"]
    assert {"SECRET", "TRIGMON_RUN", "TRIGMON_QMGR"} <= set(named)


def test_the_queue_manager_is_named_by_its_address(job):
    assert SparkRestLauncher().plan(job()).environment["TRIGMON_QMGR"].startswith("unix:/")
    far = replace(job(), address="tcp://h:1414")
    assert SparkRestLauncher().plan(far).environment["TRIGMON_QMGR"] == "tcp://h:1414"


class TestAfterAKill:
    def test_a_driver_that_was_written_down_is_attached_to(self, job, tmp_path):
        (tmp_path / "stdout").write_text(ASKING + SUBMITTED)
        argv = SparkRestLauncher().again(job(), tmp_path, ends=False).argv
        at = argv.index("--driver")
        assert argv[at : at + 3] == ["--driver", "driver-20261121200102-0000", "--"]
        assert "--kill" in SparkRestLauncher().again(job(), tmp_path, ends=True).argv

    def test_a_driver_that_was_asked_for_is_looked_for(self, job, tmp_path):
        (tmp_path / "stdout").write_text(ASKING)
        argv = SparkRestLauncher().again(job(), tmp_path, ends=False).argv
        assert argv[argv.index("--asked") + 1] == "1795291262123"

    @pytest.mark.parametrize("last", ["refused no", "over FINISHED"])
    def test_where_none_can_run_nothing_is_to_be_done(self, job, tmp_path, last):
        (tmp_path / "stdout").write_text(f"{ASKING}2026-11-21T20:01:02.456Z {last}\n")
        assert SparkRestLauncher().again(job(), tmp_path, ends=True) is None
        assert SparkRestLauncher().again(job(), tmp_path / "gone", ends=True) is None

    def test_what_the_second_supervisor_wrote_counts_as_well(self, job, tmp_path):
        (tmp_path / "stdout").write_text(ASKING + SUBMITTED)
        (tmp_path / "again-1").mkdir()
        (tmp_path / "again-1" / "stdout").write_text("2026-11-21T20:01:02.456Z over FINISHED\n")
        assert SparkRestLauncher().record_fields(job(), tmp_path) == {
            "driver_id": "driver-20261121200102-0000",
            "status": "0",
        }

    def test_what_nobody_saw_to_is_reported(self, job, tmp_path):
        (tmp_path / "stdout").write_text(ASKING + SUBMITTED)
        assert "driver-20261121200102-0000 may run on" in SparkRestLauncher().record_fields(job(), tmp_path)["unknown"]
        (tmp_path / "stdout").write_text(
            f"{ASKING}{SUBMITTED}2026-11-21T20:01:02.456Z over {driver_journal.UNKNOWN} why\n"
        )
        assert SparkRestLauncher().record_fields(job(), tmp_path)["unknown"] == "why"

    def test_what_a_job_prints_by_itself_is_no_supervisors_word(self, job, tmp_path):
        (tmp_path / "stdout").write_text(f"hello\n{ASKING}{SUBMITTED}")
        assert SparkRestLauncher().record_fields(job(), tmp_path) == {}


@pytest.mark.parametrize("asked", ["foo", "http://m:6066 x", f"http://m:6066 {'9' * 5000}", "http://m:6066 \u0661"])
def test_a_job_that_writes_what_looks_like_a_journal_is_no_driver_that_was_asked_for(asked):
    assert not driver_journal.DriverRecord(f"2026-11-21T20:01:02.123Z asking {asked}\n").may_run
