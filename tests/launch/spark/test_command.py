"""The arguments of spark-submit: every field of a definition beside the words that it becomes."""

from __future__ import annotations

import pytest

from trigmon.launch.arguments import variables
from trigmon.launch.launch_plan import LaunchError
from trigmon.launch.spark.cold.command import settings, submitted
from trigmon.mq.attributes import ATTRIBUTES, Process
from trigmon.mq.enums import ApplType, ObjectType, SparkDeployMode

DIRECTORY = "/srv/jobs"
LOAD = "/srv/jobs/load.py"

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
    "a master and where the driver runs": (
        "load.py",
        {"spark_master": "yarn", "spark_deploy_mode": SparkDeployMode.CLUSTER},
        ["--master", "yarn", "--deploy-mode", "cluster", "/srv/jobs/load.py"],
    ),
    "spark-submit's own deploy mode is not given": (
        "load.py",
        {"spark_deploy_mode": SparkDeployMode.CLIENT},
        ["/srv/jobs/load.py"],
    ),
    "a name, its placeholders filled": (
        "load.py",
        {"spark_name": "flights of {queue} ({trigdata})", "trigger_data": "a b"},
        ["--name", "flights of ORDERS (a b)", "/srv/jobs/load.py"],
    ),
    "a main class in a jar": (
        "load.jar x",
        {"spark_class": "org.example.Load"},
        ["--class", "org.example.Load", "/srv/jobs/load.jar", "x"],
    ),
    "of a setting given twice the last": (
        "load.py",
        {"spark_conf": "a=1 b= a=2"},
        ["--conf", "a=2", "--conf", "b=", LOAD],
    ),
    "files": ("load.py", {"spark_files": "a.txt, /b.txt"}, ["--files", "/srv/jobs/a.txt,/b.txt", LOAD]),
    "archives and the names they get": (
        "load.py",
        {"spark_archives": "env.tar.gz#environment,hdfs://nn/e.zip#e"},
        ["--archives", "/srv/jobs/env.tar.gz#environment,hdfs://nn/e.zip#e", LOAD],
    ),
    "jars": ("load.py", {"spark_jars": "a.jar,local:/b.jar"}, ["--jars", "/srv/jobs/a.jar,local:/b.jar", LOAD]),
    "packages": ("load.py", {"spark_packages": "g:a:1, h:b:2"}, ["--packages", "g:a:1,h:b:2", LOAD]),
    "the driver's size": (
        "load.py",
        {"spark_driver_memory": "2g", "spark_driver_cores": 2},
        ["--driver-memory", "2g", "--driver-cores", "2", LOAD],
    ),
    "the executors' number and size": (
        "load.py",
        {"spark_executor_memory": "512m", "spark_executor_cores": 3, "spark_num_executors": 4},
        ["--executor-memory", "512m", "--executor-cores", "3", "--num-executors", "4", LOAD],
    ),
    "a principal and where its keytab lies": (
        "load.py",
        {"spark_principal": "load/h@R", "spark_keytab": "name"},
        ["--principal", "load/h@R", "--keytab", "/run/creds/name", LOAD],
    ),
    "variables of a driver here are none of spark-submit's words": (
        "load.py",
        {"spark_environment": "A=1", "spark_master": "yarn"},
        ["--master", "yarn", LOAD],
    ),
    "variables of a driver on yarn": (
        "load.py",
        {"spark_environment": "A='1 2'", "spark_master": "yarn", "spark_deploy_mode": SparkDeployMode.CLUSTER},
        ["--master", "yarn", "--deploy-mode", "cluster", "--conf", "spark.yarn.appMasterEnv.A=1 2", LOAD],
    ),
    "variables of a driver on kubernetes, where a setting says otherwise": (
        "load.py",
        {
            "spark_environment": "A=1 B=2",
            "spark_conf": "spark.kubernetes.driverEnv.B=3",
            "spark_master": "k8s://https://h:6443",
            "spark_deploy_mode": SparkDeployMode.CLUSTER,
        },
        [
            *("--master", "k8s://https://h:6443", "--deploy-mode", "cluster"),
            *("--conf", "spark.kubernetes.driverEnv.A=1", "--conf", "spark.kubernetes.driverEnv.B=3", LOAD),
        ],
    ),
    "everything in one order": (
        "load.py first",
        {
            "spark_arguments": "second",
            "spark_conf": "a=1",
            "spark_jars": "j.jar",
            "spark_archives": "z.zip",
            "spark_files": "f",
            "spark_py_files": "p.py",
            "spark_packages": "g:a:1",
            "spark_name": "n",
            "spark_master": "local",
            "spark_driver_memory": "1g",
            "env_data": "third",
        },
        [
            *("--master", "local", "--name", "n", "--conf", "a=1", "--py-files", "/srv/jobs/p.py"),
            *("--files", "/srv/jobs/f", "--archives", "/srv/jobs/z.zip", "--jars", "/srv/jobs/j.jar"),
            *("--packages", "g:a:1", "--driver-memory", "1g", LOAD, "first", "second", "third"),
        ],
    ),
    "no mqtmc2 unless asked for": ("load.py", {"spark_arguments": "x"}, ["/srv/jobs/load.py", "x"]),
}

ON_YARN = {"spark_master": "yarn", "spark_deploy_mode": SparkDeployMode.CLUSTER}
REFUSED = {
    "no script": ("", {}, "must begin with the PySpark file"),
    "an option instead of a script": ("--master=x load.py", {}, "must begin with the PySpark file"),
    "a script from outside": ("{userdata}", {}, "must begin with the PySpark file"),
    "a conf without a value": ("load.py", {"spark_conf": "spark.ui.enabled"}, "form key=value"),
    "an option from outside": ("load.py {trigdata}", {"trigger_data": "--jars=x"}, "may not begin an option"),
    "a conf without a key": ("load.py", {"spark_conf": "=x"}, "form key=value"),
    "a variable without a value": ("load.py", {"spark_environment": "A", **ON_YARN}, "form NAME=value"),
    "a name that is an option": (
        "load.py",
        {"spark_name": "{trigdata}", "trigger_data": "-x"},
        "may not begin an option",
    ),
    "an open quote": ("load.py", {"spark_arguments": "'a"}, "SPKARGS cannot be split"),
}


@pytest.mark.parametrize(("appl_id", "definition", "expected"), TABLE.values(), ids=TABLE)
def test_the_words_behind_spark_submit_of(order, appl_id, definition, expected):
    ordered = order(appl_id, appl_type=ApplType.SPARK, working_directory=DIRECTORY, **definition)
    assert submitted(ordered, "/run/creds/name") == expected


def test_every_attribute_of_spark_is_in_the_table_but_those_that_say_how_to_start():
    reported = {name for _, definition, _ in TABLE.values() for name in definition if name.startswith("spark_")}
    all_of_them = {name for name in ATTRIBUTES[ObjectType.PROCESS] if name.startswith("spark_")}
    assert all_of_them - reported == {"spark_start", "spark_isolation", "spark_short"}


@pytest.mark.parametrize(("appl_id", "definition", "why"), REFUSED.values(), ids=REFUSED)
def test_refused_is(order, appl_id, definition, why):
    with pytest.raises(LaunchError, match=why):
        submitted(order(appl_id, appl_type=ApplType.SPARK, working_directory=DIRECTORY, **definition))


def test_settings_and_variables_are_reported_to_the_other_ways_too():
    process = Process(name="P", spark_conf="a=1 'b=x y=z'", spark_environment="A= B=c=d")
    assert settings(process) == {"a": "1", "b": "x y=z"}
    assert variables(process) == {"A": "", "B": "c=d"}
