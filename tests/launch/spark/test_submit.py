from __future__ import annotations

import os
import subprocess
import sys

import pytest

from trigmon.launch.grants import Grants
from trigmon.launch.port import LaunchError
from trigmon.launch.spark import with_keytab
from trigmon.launch.spark.submit import SparkSubmitLauncher, spark_home
from trigmon.mq.enums import ApplType


def test_spark_home_wins_when_it_has_a_spark_submit(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "spark-submit").touch()
    assert spark_home({"SPARK_HOME": str(tmp_path)}) == tmp_path
    assert (spark_home({"SPARK_HOME": str(tmp_path / "gone")}) / "bin" / "spark-submit").is_file()


@pytest.fixture
def job(order, tmp_path):
    """An order for a job that is there."""
    (tmp_path / "job.py").touch()
    return lambda **said: order("job.py", appl_type=ApplType.SPARK, working_directory=str(tmp_path), **said)


def test_the_definitions_variables_reach_the_job_and_choose_its_spark(job, tmp_path):
    home = tmp_path / "spark"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "spark-submit").touch()
    said = f"DAY='a b' PYSPARK_PYTHON=/opt/py SPARK_HOME={home}"
    plan = SparkSubmitLauncher(tmp_path).plan(job(spark_environment=said))
    assert plan.argv[0] == f"{home}/bin/spark-submit"
    told = {"DAY": "a b", "PYSPARK_PYTHON": "/opt/py", "PYSPARK_DRIVER_PYTHON": sys.executable, "SPARK_HOME": str(home)}
    assert {name: plan.environment[name] for name in told} == told


def test_a_keytab_is_the_runs_own_copy_of_a_secret(job, tmp_path):
    safe = tmp_path / "safe"
    safe.mkdir()
    for name in ("db", "load.keytab"):
        (safe / name).write_text("a value")
        (safe / name).chmod(0o600)
    launcher = SparkSubmitLauncher(tmp_path, Grants(secrets_directory=safe))
    plan = launcher.plan(job(spark_principal="load@R", spark_keytab="load.keytab", secrets="db"))
    assert plan.secrets == {"db": str(safe / "db"), "load.keytab": str(safe / "load.keytab")}
    assert plan.argv[:3] == [sys.executable, "-I", with_keytab.__file__]
    assert plan.argv[-5:] == ["--principal", "load@R", "--keytab", "load.keytab", str(tmp_path / "job.py")]
    assert "a value" not in str(plan)


def test_the_program_is_told_where_its_keytab_lies_when_it_runs(tmp_path):
    said = ["/bin/echo", "--principal", "p", "--keytab", "load.keytab", "job.py", "--keytab", "its own"]
    run = [sys.executable, "-I", with_keytab.__file__, *said]
    environment = os.environ | {"CREDENTIALS_DIRECTORY": "/run/x"}
    told = subprocess.run(run, env=environment, capture_output=True, text=True, check=True).stdout
    assert told == "--principal p --keytab /run/x/load.keytab job.py --keytab its own\n"


def test_a_keytab_this_monitor_has_not_is_told_with_the_remedy(job, tmp_path):
    with pytest.raises(LaunchError, match=r"SECRETS\(load\): this monitor has no secrets; give"):
        SparkSubmitLauncher(tmp_path).plan(job(spark_principal="p", spark_keytab="load"))


def test_a_missing_script_is_refused_before_a_jvm_is_started(order, tmp_path):
    launcher = SparkSubmitLauncher(tmp_path)
    with pytest.raises(LaunchError, match=r"no PySpark file .*gone\.py"):
        launcher.plan(order("gone.py", appl_type=ApplType.SPARK, working_directory=str(tmp_path)))


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Connected to Spark cluster with app ID app-20261121180130-0007\n", "app-20261121180130-0007"),
        ("Submitted application application_1700000000000_0042 to ResourceManager", "application_1700000000000_0042"),
        ("Driver pod of spark-0123456789abcdef0123456789abcdef is up", "spark-0123456789abcdef0123456789abcdef"),
        ("my-app-2026 and app-1 and application_1", ""),
        ("", ""),
    ],
)
def test_the_id_a_cluster_gave_the_application_is_told(tmp_path, said, told):
    (tmp_path / "stderr").write_text(said)
    expected = {"application_id": told} if told else {}
    assert SparkSubmitLauncher(tmp_path).told(tmp_path) == expected
    assert SparkSubmitLauncher(tmp_path).told(tmp_path / "gone") == {}
