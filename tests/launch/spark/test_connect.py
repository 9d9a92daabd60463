"""The plan of a warm run, and the arguments of a server of the monitor."""

from __future__ import annotations

import itertools
import json
import os
import sys
from pathlib import Path

import pytest

from trigmon.keeper import run_directory
from trigmon.launch.launch_plan import LaunchError, LaunchPlan, Lead, Session
from trigmon.launch.launchers import launchers
from trigmon.launch.permissions import Grants
from trigmon.launch.spark.warm import connect, connect_server
from trigmon.launch.spark.warm.connect import SparkConnectLauncher
from trigmon.launch.spark.warm.connect_server import Given, Server, Serving, Shelf
from trigmon.mq.enums import ApplType, SparkIsolation, SparkShort, SparkStart

WARM = {"appl_type": ApplType.SPARK, "spark_start": SparkStart.CONNECT}


class Cold:
    """Plans what is started cold."""

    errors = ()

    def plan(self, order):
        return LaunchPlan(argv=["cold"], environment={})

    def record_fields(self, order, directory):
        return {"application_id": "cold"}

    def lead(self, order, directory, pid):
        return Lead("cold")


@pytest.fixture
def planned(order, tmp_path):
    """The plan of a warm run of job.py, whose definition says more."""
    (tmp_path / "job.py").touch()

    def plan(appl_id="job.py", grants=Grants(), **more):  # noqa: B008
        ordered = order(appl_id, working_directory=str(tmp_path), **WARM, **more)
        return SparkConnectLauncher(Cold(), Shelf(tmp_path), grants, Serving(master="local[3]")).plan(ordered)

    return plan


def test_a_warm_run_is_the_script_forked_or_where_there_is_no_fork_server_a_python_of_its_own(planned, tmp_path):
    plan = planned("job.py a", spark_arguments="'b c' {queue}", env_data="d")
    words = [str(tmp_path / "job.py"), "a", "b c", "ORDERS", "d"]
    assert plan.fork == words
    assert plan.argv == [sys.executable, "-m", "trigmon.spark.warm.job_process", *words]
    assert plan.environment["TRIGMON_RUN"] == "0123456789abcdef"


def test_its_session_has_what_the_definition_says_and_the_ordinary_master(planned, tmp_path):
    files = {"spark_py_files": "a.py,/b.zip", "spark_files": "f", "spark_archives": "z.tgz", "spark_jars": "j.jar"}
    plan = planned(spark_conf="spark.sql.ansi.enabled=false", spark_name="load {queue}", **files)
    assert plan.session == Session(
        master="local[3]",
        name="load ORDERS",
        conf={"spark.sql.ansi.enabled": "false"},
        py_files=[str(tmp_path / "a.py"), "/b.zip"],
        files=[str(tmp_path / "f")],
        archives=[str(tmp_path / "z.tgz")],
        jars=[str(tmp_path / "j.jar")],
    )


def test_the_session_of_a_short_job_makes_no_code_and_has_few_partitions_unless_its_definition_says_otherwise(planned):
    conf = planned(spark_short=SparkShort.YES, spark_conf="spark.sql.shuffle.partitions=7").session.conf
    assert conf == connect.SHORT | {"spark.sql.shuffle.partitions": "7"}
    assert planned(spark_short=SparkShort.NO).session.conf == {}


@pytest.mark.parametrize(
    ("expected", "remote", "master"),
    [("", "", "local[3]"), ("local[1]", "", "local[1]"), ("sc://far:15002", "sc://far:15002", "")],
)
def test_whose_server_it_is_the_master_says(planned, expected, remote, master):
    session = planned(spark_master=expected).session
    assert (session.remote, session.master) == (remote, master)


@pytest.mark.parametrize("program", ["missing.py", "s3://bucket/job.py", "job.jar"])
def test_what_is_no_script_of_this_machine_is_refused(planned, program):
    with pytest.raises(LaunchError):
        planned(program)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_users_run_is_cold_on_our_server_and_warm_on_another(planned, tmp_path):
    list_ = tmp_path / "users"
    list_.write_text("nobody\n")
    grants = Grants(run_as_file=list_)
    assert planned(grants=grants, run_as="nobody").argv == ["cold"]
    assert planned(grants=grants, run_as="nobody", spark_master="sc://far").session.remote == "sc://far"


def test_one_that_wants_a_process_is_cold(order, tmp_path):
    (tmp_path / "job.py").touch()
    ordered = order("job.py", working_directory=str(tmp_path), spark_isolation=SparkIsolation.PROCESS, **WARM)
    plan = launchers(tmp_path)[ApplType.SPARK].plan(ordered)
    assert plan.session is None
    assert "org.apache.spark.deploy.SparkSubmit" in plan.argv


def test_a_run_is_followed_on_its_server_by_its_session_and_one_without_as_what_was_started_cold(order, tmp_path):
    shelf = Shelf(tmp_path)
    ordered = order("job.py", **WARM)
    launcher = SparkConnectLauncher(Cold(), shelf)
    assert launcher.lead(ordered, tmp_path, 1) == Lead("cold")
    assert launcher.record_fields(ordered, tmp_path) == {"application_id": "cold"}
    server = connect_server.made("m", Session(), Serving())
    given = Given(run_id=ordered.run_id, monitor="m", user_id="u", session_id="s", server_id=server.server_id)
    shelf.put_session(given)
    assert launcher.lead(ordered, tmp_path, 1) == Lead()
    assert launcher.record_fields(ordered, tmp_path) == {}
    shelf.put_server(server)
    assert launcher.lead(ordered, tmp_path, 1) == Lead(
        url=f"http://127.0.0.1:{server.ui_port}", tag="s", page_key=server.page_key
    )


def test_a_runs_session_is_the_same_for_each_caller_and_no_other_runs():
    sessions = {connect_server.session_of(q_mgr, run) for q_mgr in ("QM1", "QM2") for run in ("1", "2")}
    assert len(sessions) == 4
    assert connect_server.session_of("QM1", "1") in sessions


@pytest.mark.parametrize(
    ("url", "remote", "user"),
    [
        ("sc://h:1", "sc://h:1/;user_id=me;session_id=s", "me"),
        ("sc://h:1/", "sc://h:1/;user_id=me;session_id=s", "me"),
        ("sc://h:1/;use_ssl=true;token=t", "sc://h:1/;use_ssl=true;token=t;user_id=me;session_id=s", "me"),
        ("sc://h/;user_id=ann;session_id=old", "sc://h/;user_id=ann;session_id=s", "ann"),
    ],
)
def test_a_server_elsewhere_is_spoken_to_as_its_address_says(url, remote, user):
    assert connect_server.remote_of(url, connect_server.user_of(url, "me"), "s") == remote
    assert connect_server.user_of(url, "me") == user


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sc://h:1", "sc://h:1"),
        ("sc://h.example-1.org:1/;token=SECRET;user_id=u", "sc://h.example-1.org:1"),
        ("sc://[::1]:15002/;token=SECRET", "sc://[::1]:15002"),
        ("sc://h/;token=a/b@SECRET", "sc://h"),
        # Spark takes none of these, and what does not work is what is reported.
        ("sc://h:1;token=SECRET", "sc://h:1"),
        ("sc://h:1/?token=SECRET", "sc://h:1"),
        ("sc://h:1?token=SECRET", "sc://h:1"),
        ("sc://h:1#token=SECRET", "sc://h:1"),
        ("sc://u:SECRET@h:1/", "sc://h:1"),
        ("sc://u:SECRET@x@h:1/;token=SECRET", "sc://h:1"),
        ("sc://u:SECRET/x@h:1/", "sc://u"),
        ("sc://h:SECRET", "sc://h"),
        ("sc://h&token=SECRET", "sc://h"),
        ("sc://", "sc://"),
    ],
)
def test_a_server_elsewhere_is_named_by_host_and_port_alone_however_its_address_is_written(url, shown):
    assert connect_server.shown(url) == shown


@pytest.mark.parametrize(
    ("url", "why", "expected"),
    [
        ("sc://h:1;token=SECRET", "no port: '1;token=SECRET'", "no port: '1;token=...'"),
        ("sc://h:1/;tokenSECRET", "'tokenSECRET' is no pair", "'...' is no pair"),
        ("sc://u:SECRET@h:1/", "cannot resolve u:SECRET@h", "cannot resolve u:...@h"),
        ("sc://h:1/;token=a+SECRET==;use_ssl=true", "with use_ssl=true: a+SECRET==", "with use_ssl=true: ...=="),
        ("sc://host:15002", "cannot reach host:15002", "cannot reach host:15002"),
    ],
)
def test_what_a_client_quotes_of_the_address_of_a_server_elsewhere_is_reported_without_its_secrets(url, why, expected):
    assert connect_server.redacted(why, url) == expected


def test_a_run_finds_its_session_in_its_environment():
    session = Session(master="local", conf={"a": "b"}, files=["/f"])
    plan = connect_server.completed(
        LaunchPlan(argv=["x"], environment={"A": "1"}, session=session), "sc://h/;session_id=s"
    )
    assert plan.environment["SPARK_REMOTE"] == "sc://h/;session_id=s"
    assert json.loads(plan.environment["TRIGMON_SPARK"]) == {"conf": {"a": "b"}, "files": ["/f"]}


def made(**more):
    known = {"server_id": "connect-1", "monitor": "m", "master": "local[2]", "port": 1, "ui_port": 2, "token": "secret"}
    return Server(**{**known, "made_ms": 3, "memory": "1g"} | more)


class TestAServer:
    def test_it_listens_on_loopback_alone_and_its_token_is_in_no_word(self):
        words = connect_server.command(made(conf=("spark.x=a=b",)), "submit", Path("/fair.xml"))
        assert words[:7] == ["submit", "--master", "local[2]", "--driver-memory", "1g", "--name", "trigmon"]
        settings = dict(word.split("=", 1) for option, word in itertools.pairwise(words) if option == "--conf")
        assert settings["spark.connect.grpc.binding.address"] == settings["spark.driver.bindAddress"] == "127.0.0.1"
        assert settings["spark.connect.grpc.binding.port"] == "1"
        assert settings["spark.x"] == "a=b"
        assert not [word for word in words if "secret" in word]

    def test_what_is_written_of_it_is_for_its_owner_alone_and_read_back(self, tmp_path):
        shelf = Shelf(tmp_path)
        shelf.put_server(made())
        assert (shelf.servers / "connect-1.json").stat().st_mode & 0o777 == 0o600
        assert list(shelf.all_servers()) == [made()]
        shelf.drop_server("connect-1")
        assert list(shelf.all_servers()) == []

    def test_one_that_was_made_by_other_settings_is_distinguished_from_one_that_was_not(self):
        assert made().is_as(Serving(memory="1g"))
        assert not made().is_as(Serving(memory="2g"))
        assert not made().is_as(Serving(memory="1g", conf=("a=b",)))

    def test_no_process_is_found_where_none_was_claimed(self, tmp_path):
        assert connect_server.process_of(tmp_path / "connect-1") is None
        run_directory.make(tmp_path / "connect-1", "keeper")
        assert connect_server.process_of(tmp_path / "connect-1") is None

    def test_two_have_different_ports_and_tokens(self):
        one, other = (connect_server.made("m", Session(master="local"), Serving()) for _ in range(2))
        assert len({one.port, one.ui_port, other.port, other.ui_port}) == 4
        assert one.token != other.token
        assert one.server_id != other.server_id

    def test_its_memory_is_that_of_all_processes_of_its_session(self):
        assert connect_server.memory_of_session(os.getsid(0)) > 1 << 20
        assert connect_server.memory_of_session(1 << 30) == 0


def test_what_is_half_written_is_nothing(tmp_path):
    shelf = Shelf(tmp_path)
    given = Given(run_id="1", monitor="m", user_id="u", session_id="s", server_id="connect-1")
    shelf.put_session(given)
    (shelf.sessions / "2.json").write_text('{"run_id"')
    assert list(shelf.all_sessions()) == [given]
    assert shelf.session("2") is None
    shelf.drop_session("1")
    shelf.drop_session("1")
    assert list(shelf.all_sessions()) == []


def test_a_server_gives_memory_back_unless_the_environment_says_otherwise():
    assert connect_server.java_options({}) == connect_server.GIVES_BACK
    own = "-XX:G1PeriodicGCInterval=0"
    assert connect_server.java_options({"SPARK_SUBMIT_OPTS": own}) == f"{connect_server.GIVES_BACK} {own}"
