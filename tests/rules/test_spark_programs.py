"""What a process definition may say of Spark: each refusal names the attribute, what it said, and the remedy."""

from __future__ import annotations

import pytest

from tests.in_process import InProcess
from trigmon.mq.attributes import ATTRIBUTES, Process
from trigmon.mq.calls import Alter, Define
from trigmon.mq.enums import ObjectType
from trigmon.mq.errors import AttrValueError
from trigmon.rules.runs.check_program import faults
from trigmon.rules.runs.check_spark import environment_of, is_warm, names_in

MEMORY = "a whole number with its unit, k, m, g or t: 512m or 2g"
LITTLE = "at least 512m: Spark starts with no less than 450m"
FILES = "names of files divided by commas, none blank and none with a blank, not "
PACKAGES = "packages divided by commas, each group:artifact:version, not "
MASTER = "local, local[N], local[*], spark://HOST:PORT, yarn, k8s://..., or (SPKSTART(CONNECT)) sc://HOST:PORT"
PRINCIPAL = "the name of a Kerberos principal, such as load/host@REALM, without a blank"
KEYTAB = "the name of a secret, not a path: a file of that name lies where this monitor's secrets do"
CLASS = "the name of a Java class, such as org.example.Load"

# One attribute alone: its value, and what it must be.
WRONG = [
    *(
        ("spark_master", text, MASTER)
        for text in ("locale", "local[]", "local[2", "spark:/h", "spark://", "h:7077", "a b")
    ),
    *(
        (name, text, MEMORY)
        for name in ("spark_driver_memory", "spark_executor_memory")
        for text in ("2", "2gb", "1.5g", "-2g", "0g", "2 g", "g", "2x")
    ),
    ("spark_driver_memory", "460799k", LITTLE),
    ("spark_executor_memory", "449m", LITTLE),
    *((f"spark_{one}", "a,,b", FILES + "''") for one in ("py_files", "files", "archives", "jars")),
    ("spark_files", "a b.txt", FILES + "'a b.txt'"),
    ("spark_jars", "a.jar,", FILES + "''"),
    ("spark_packages", "g:a", PACKAGES + "'g:a'"),
    ("spark_packages", "g:a:1,", PACKAGES + "''"),
    ("spark_class", "org.example.", CLASS),
    ("spark_class", "9to5", CLASS),
    ("spark_principal", "a b", PRINCIPAL),
    ("spark_keytab", "/etc/load.keytab", KEYTAB),
    ("spark_keytab", "a,b", KEYTAB),
    ("spark_environment", "DAY", "words of the form NAME=value ('DAY' sets no variable)"),
    ("spark_environment", "A=1 =2", "words of the form NAME=value ('' sets no variable)"),
    ("spark_environment", "A='1", "words of the form NAME=value (no closing quotation)"),
    ("spark_environment", "A-B=1", "words of the form NAME=value ('A-B' sets no variable)"),
    ("spark_environment", "TRIGMON_RUN=1", "other variables than TRIGMON_RUN, which the monitor sets itself"),
]

RIGHT = [
    *(("spark_master", text) for text in ("", "local", "local[*]", "local[4,2]", "yarn", "spark://a:1,b:2", "x9://h")),
    *(("spark_driver_memory", text) for text in ("", "450m", "2G", "1t", "1048576k")),
    ("spark_environment", "TRIGMON_TASK_ADDRESS=tls://mq1?authority=/ca.crt TRIGMON_RECONNECT=300"),
    ("spark_files", "a.txt, b.txt,hdfs://n/c"),
    ("spark_archives", "a.zip#b"),
    ("spark_packages", "org.x:y_2.13:1.0,a/b:1"),
    ("spark_class", "org.example.Load$"),
    ("spark_environment", "A= B='two words' C=d=e"),
    ("spark_name", "any words at all"),
]

REST = {"spark_start": "rest", "spark_master": "spark://h:6066"}
CONNECT = {"spark_start": "connect"}
CLUSTER = {"spark_deploy_mode": "cluster"}
OF_THE_SERVER = "not given with SPKSTART(CONNECT), whose server's it is, unless with SPKISOL(PROCESS)"

# Several: what is said, the attribute that is refused, and how the reason begins.
TOGETHER = {
    "REST without a master": ({"spark_start": "rest"}, "spark_master", "spark://HOST:PORT with SPKSTART(REST)"),
    "REST on yarn": ({**REST, "spark_master": "yarn"}, "spark_master", "spark://HOST:PORT with SPKSTART(REST)"),
    "REST with a keytab": (
        {**REST, "spark_principal": "p", "spark_keytab": "k"},
        "spark_keytab",
        "blank with SPKSTART(REST)",
    ),
    "a session of a cluster": ({**CONNECT, "spark_master": "spark://h:1"}, "spark_master", "blank or local[N] with"),
    "a session whose driver is in the cluster": (
        CONNECT | CLUSTER,
        "spark_deploy_mode",
        "CLIENT with SPKSTART(CONNECT)",
    ),
    "a session of a class": ({**CONNECT, "spark_class": "A"}, "spark_class", OF_THE_SERVER),
    "a session with executors of its own": (
        {**CONNECT, "spark_num_executors": 2},
        "spark_num_executors",
        OF_THE_SERVER,
    ),
    "a session with memory of its own": (
        {**CONNECT, "spark_driver_memory": "2g"},
        "spark_driver_memory",
        OF_THE_SERVER,
    ),
    "a session with packages": ({**CONNECT, "spark_packages": "a:b:1"}, "spark_packages", OF_THE_SERVER),
    "a session with its server's settings": (
        {**CONNECT, "spark_conf": "spark.sql.a=b spark.executor.memory=1g"},
        "spark_conf",
        "settings that a session can have of its own with SPKSTART(CONNECT), spark.sql.*, not spark.executor.memory",
    ),
    "a process on a Connect server": (
        {**CONNECT, "spark_isolation": "process", "spark_master": "sc://h:1"},
        "spark_master",
        "another than sc://HOST:PORT, which is a server of Spark Connect, or SPKISOL(SESSION) be given",
    ),
    "spark-submit on a Connect server": (
        {"spark_master": "sc://h:1"},
        "spark_master",
        "another than sc://HOST:PORT, which is a server of Spark Connect, or SPKSTART(CONNECT) be given",
    ),
    "a driver in no cluster": (
        {**CLUSTER, "spark_master": "local[2]"},
        "spark_deploy_mode",
        "CLIENT with a local master",
    ),
    "a driver in the default cluster": (CLUSTER, "spark_deploy_mode", "CLIENT with a local master"),
    "Python in a standalone cluster": (
        {**CLUSTER, "spark_master": "spark://h:7077"},
        "spark_deploy_mode",
        "CLIENT, or SPKSTART be REST: by spark-submit a standalone cluster takes no Python program",
    ),
    "a principal without a keytab": ({"spark_principal": "p"}, "spark_keytab", "given together with SPKPRINC"),
    "a keytab without a principal": ({"spark_keytab": "k"}, "spark_principal", "given together with SPKKEYTAB"),
}
FITTING = [
    REST,
    {**REST, "spark_master": "http://h:6066", **CLUSTER},
    CONNECT,
    {**CONNECT, "spark_master": "local[4]", "spark_conf": "spark.sql.a=b own=c", "spark_jars": "a.jar"},
    {**CONNECT, "spark_master": "sc://h:15002"},
    {**CONNECT, "spark_isolation": "process", "spark_master": "spark://h:7077", "spark_num_executors": 2},
    {**CLUSTER, "spark_master": "yarn", "spark_principal": "p", "spark_keytab": "k"},
    {**CLUSTER, "spark_master": "spark://h:7077", "appl_id": "load.jar"},
    {**CLUSTER, "spark_master": "spark://h:7077", "spark_class": "A"},
]


def define(qm, **said):
    qm(Define(object_type="PROCESS", name="P", attributes={"appl_type": "spark", "appl_id": "load.py", **said}))


def row(qm):
    return next(row for row in qm.rows("PROCESS") if row["name"] == "P")


@pytest.mark.parametrize(("name", "value", "wanted"), WRONG)
def test_what_spark_would_not_start_is_refused_when_it_is_defined_or_altered_whatever_the_type(name, value, wanted):
    mqsc = ATTRIBUTES[ObjectType.PROCESS][name].mqsc
    qm = InProcess()
    for kind in ("spark", "unix"):
        with pytest.raises(AttrValueError) as refused:
            define(qm, **{"appl_type": kind, name: value})
        assert refused.value.about == f"PROCESS(P) {mqsc}({value}): {name} must be {wanted}"
    define(qm)
    before = row(qm)
    with pytest.raises(AttrValueError, match=mqsc):
        qm(Alter(object_type="PROCESS", name="P", attributes={name: value}))
    assert row(qm) == before


@pytest.mark.parametrize(("name", "value"), RIGHT)
def test_what_spark_takes_is_kept_as_it_was_written(name, value):
    qm = InProcess()
    define(qm, **{name: value})
    assert row(qm)[name] == value


@pytest.mark.parametrize(("said", "name", "wanted"), TOGETHER.values(), ids=TOGETHER)
def test_parts_that_contradict_each_other_are_refused(said, name, wanted):
    qm = InProcess()
    with pytest.raises(AttrValueError) as refused:
        define(qm, **said)
    mqsc = ATTRIBUTES[ObjectType.PROCESS][name].mqsc
    assert refused.value.about.startswith(f"PROCESS(P) {mqsc}(")
    assert f": {name} must be {wanted}" in refused.value.about


@pytest.mark.parametrize("said", FITTING)
def test_parts_that_fit_are_taken(said):
    qm = InProcess()
    define(qm, **said)
    assert {name: row(qm)[name] for name in said} == said


def test_a_contradiction_is_found_whichever_part_is_altered():
    for first, then in ((CONNECT, CLUSTER), (CLUSTER | {"spark_master": "yarn"}, CONNECT)):
        qm = InProcess()
        define(qm, **first)
        with pytest.raises(AttrValueError, match=r"SPKDEPLOY|SPKMASTER"):
            qm(Alter(object_type="PROCESS", name="P", attributes=then))
    qm = InProcess()
    define(qm, appl_id="load.jar", spark_deploy_mode="cluster", spark_master="spark://h:7077")
    with pytest.raises(AttrValueError, match=r"SPKDEPLOY\(CLUSTER\)"):
        qm(Alter(object_type="PROCESS", name="P", attributes={"appl_id": "load.py"}))


def test_what_is_wrong_alone_is_not_reported_again_as_a_contradiction():
    assert [name for name, _ in faults(Process(name="P", spark_master="locale", spark_principal="p"))] == [
        "spark_master"
    ]


def test_lists_and_variables_are_read_once_for_all():
    assert names_in(" a , b ") == ["a", "b"]
    assert names_in("  ") == []
    assert environment_of(Process(name="P", spark_environment="A= B='x y' A=2")) == {"A": "2", "B": "x y"}


def test_only_a_session_of_connect_is_warm():
    qm = InProcess()
    define(qm, **CONNECT)
    told = {name: row(qm)[name] for name in ("spark_start", "spark_isolation")}
    assert told == {"spark_start": "connect", "spark_isolation": "session"}
    table = ATTRIBUTES[ObjectType.PROCESS]
    read = {name: table[name].read(value, "") for name, value in told.items()}
    assert is_warm(Process(name="P", **read))
    assert not is_warm(Process(name="P", **read | {"spark_isolation": table["spark_isolation"].read("process", "")}))
    assert not is_warm(Process(name="P"))
