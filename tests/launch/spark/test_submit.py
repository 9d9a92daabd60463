from __future__ import annotations

import pytest

from trigmon.launch.port import LaunchError
from trigmon.launch.spark.submit import SparkSubmitLauncher, command, spark_home
from trigmon.mq.enums import ApplType

DIRECTORY = "/srv/jobs"

# APPLICID, what the definition adds -> what stands after spark-submit
TABLE = {
    "only a script": ("load.py", {}, ["/srv/jobs/load.py"]),
    "a master": ("load.py", {"spark_master": "local[2]"}, ["--master", "local[2]", "/srv/jobs/load.py"]),
    "conf words, quoted ones whole": (
        "load.py",
        {"spark_conf": "spark.ui.enabled=false 'spark.driver.extraJavaOptions=-Da=b -Dc=d'"},
        [
            "--conf",
            "spark.ui.enabled=false",
            "--conf",
            "spark.driver.extraJavaOptions=-Da=b -Dc=d",
            "/srv/jobs/load.py",
        ],
    ),
    "py-files beside the definition and elsewhere": (
        "load.py",
        {"spark_py_files": "lib.zip, hdfs://nn/more.zip,/opt/x.py"},
        ["--py-files", "/srv/jobs/lib.zip,hdfs://nn/more.zip,/opt/x.py", "/srv/jobs/load.py"],
    ),
    "arguments with placeholders, the script's own words first": (
        "load.py --table=flights",
        {"spark_arguments": "--queue {queue} --data {trigdata}", "trigger_data": "a b", "env_data": "last &"},
        ["/srv/jobs/load.py", "--table=flights", "--queue", "ORDERS", "--data", "a b", "last"],
    ),
    "an absolute script": ("/opt/load.py", {}, ["/opt/load.py"]),
    "a script on a file system of the cluster": ("hdfs://nn/load.py", {}, ["hdfs://nn/load.py"]),
    "a script on every worker": ("local:/opt/load.py", {}, ["local:/opt/load.py"]),
    "no mqtmc2 unless asked for": ("load.py", {"spark_arguments": "x"}, ["/srv/jobs/load.py", "x"]),
}

REFUSED = {
    "no script": ("", {}, "must begin with the PySpark file"),
    "an option instead of a script": ("--master=x load.py", {}, "must begin with the PySpark file"),
    "a script from outside": ("{userdata}", {}, "must begin with the PySpark file"),
    "a conf without a value": ("load.py", {"spark_conf": "spark.ui.enabled"}, "form key=value"),
    "an option from outside": ("load.py {trigdata}", {"trigger_data": "--jars=x"}, "may not begin an option"),
    "an open quote": ("load.py", {"spark_arguments": "'a"}, "SPKARGS cannot be split"),
}


@pytest.mark.parametrize(("appl_id", "definition", "expected"), TABLE.values(), ids=TABLE)
def test_the_command_line_of(order, appl_id, definition, expected):
    made = command("spark-submit", order(appl_id, appl_type=ApplType.SPARK, working_directory=DIRECTORY, **definition))
    assert made == ["spark-submit", *expected]


@pytest.mark.parametrize(("appl_id", "definition", "why"), REFUSED.values(), ids=REFUSED)
def test_refused_is(order, appl_id, definition, why):
    with pytest.raises(LaunchError, match=why):
        command("spark-submit", order(appl_id, appl_type=ApplType.SPARK, working_directory=DIRECTORY, **definition))


def test_spark_home_wins_when_it_has_a_spark_submit(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "spark-submit").touch()
    assert spark_home({"SPARK_HOME": str(tmp_path)}) == tmp_path
    assert (spark_home({"SPARK_HOME": str(tmp_path / "gone")}) / "bin" / "spark-submit").is_file()


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
