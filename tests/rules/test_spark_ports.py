"""Which drivers are closed to strangers by themselves, and what of a definition opens one."""

from __future__ import annotations

import pytest

from trigmon.mq.attributes import Process
from trigmon.mq.enums import ApplType, SparkDeployMode, SparkIsolation, SparkStart
from trigmon.rules.runs.spark_ports import closing, is_local, is_loopback, open_to_others, opened

OPEN = "spark.driver.host=10.0.0.1"


@pytest.mark.parametrize("master", ["", "local", "local[2]", "local[*]", "local[*, 3]", "local-cluster[1,1,1024]"])
def test_a_driver_that_needs_no_other_machine_is_closed(master):
    assert is_local(master)
    assert closing(master, {}) == {
        "spark.authenticate": "true",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }


@pytest.mark.parametrize("master", ["spark://m:7077", "yarn", "k8s://https://k"])
def test_a_driver_of_a_cluster_is_as_its_definition_says(master):
    assert not is_local(master)
    assert closing(master, {}) == {}


def test_what_a_definition_sets_stays():
    assert closing("", {"spark.authenticate": "false", "spark.driver.host": "h"}) == {
        "spark.driver.bindAddress": "127.0.0.1"
    }


@pytest.mark.parametrize("address", ["127.0.0.1", "127.1.2.3", "::1", "[::1]", "localhost"])
def test_loopback(address):
    assert is_loopback(address)


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "10.0.0.1", "db", "localhost.example", ""])
def test_not_loopback(address):
    assert not is_loopback(address)


def test_what_opens_a_server():
    assert opened({"spark.authenticate": "TRUE", "spark.driver.host": "127.0.0.1"}) == []
    assert opened({"spark.authenticate": "false", "spark.driver.bindAddress": "::"}) == [
        "spark.driver.bindAddress=::",
        "spark.authenticate=false",
    ]


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ({}, []),
        ({"spark_conf": "spark.driver.host=127.0.0.1 spark.authenticate=true"}, []),
        ({"spark_conf": "spark.driver.host='"}, []),
        ({"spark_conf": OPEN}, [f"SPKCONF({OPEN})"]),
        ({"spark_conf": "spark.authenticate=no"}, ["SPKCONF(spark.authenticate=no)"]),
        ({"spark_environment": "SPARK_LOCAL_IP=0.0.0.0"}, ["SPKENV(SPARK_LOCAL_IP=0.0.0.0)"]),
        ({"spark_master": "spark://m:1"}, ["SPKMASTER(spark://m:1) without spark.authenticate=true"]),
        ({"spark_conf": "spark.master=yarn"}, ["SPKMASTER(yarn) without spark.authenticate=true"]),
        ({"spark_master": "yarn", "spark_conf": f"spark.authenticate=true {OPEN}"}, []),
        ({"spark_master": "yarn", "spark_conf": "spark.authenticate=false"}, ["SPKCONF(spark.authenticate=false)"]),
        (
            {"spark_master": "spark://m:1", "spark_start": SparkStart.REST, "spark_conf": OPEN},
            ["SPKMASTER(spark://m:1) without spark.authenticate=true"],
        ),
        (
            {"spark_master": "yarn", "spark_deploy_mode": SparkDeployMode.CLUSTER},
            ["SPKMASTER(yarn) without spark.authenticate=true"],
        ),
        ({"spark_start": SparkStart.CONNECT, "spark_conf": OPEN}, []),
        (
            {"spark_start": SparkStart.CONNECT, "spark_isolation": SparkIsolation.PROCESS, "spark_conf": OPEN},
            [f"SPKCONF({OPEN})"],
        ),
    ],
)
def test_what_of_a_definition_opens_its_driver(said, found):
    assert list(open_to_others(Process(name="P", appl_type=ApplType.SPARK, **said))) == found


def test_another_type_of_program_is_no_driver():
    assert list(open_to_others(Process(name="P", spark_conf=OPEN))) == []
