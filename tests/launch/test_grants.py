"""A definition's wishes, held against what the administrator grants: the same for both application types."""

from __future__ import annotations

import os

import pytest

from trigmon.launch.launch_plan import LaunchError, LaunchPlan
from trigmon.launch.launchers import launchers
from trigmon.launch.permissions import Grants
from trigmon.launch.unix import environment
from trigmon.mq.attributes import Process
from trigmon.mq.enums import ApplType

PLAN = LaunchPlan(argv=["/bin/job"], environment={"TRIGMON_RUN": "r"})
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def completed(grants, **wishes):
    return grants.completed(PLAN, Process(name="P", **wishes))


@pytest.fixture
def grants(tmp_path):
    """A user, and a secret."""
    (tmp_path / "users").write_text("nobody\n")
    (tmp_path / "db").write_text("value")
    (tmp_path / "db").chmod(0o600)
    return Grants(tmp_path / "users", tmp_path)


def test_a_definition_that_asks_for_nothing_leaves_the_plan_as_it_is():
    assert completed(Grants()) is PLAN


def test_limits_are_the_definitions():
    plan = completed(Grants(), memory_limit_mib=100, cpu_limit_s=2, open_files_limit=64)
    assert (plan.memory_limit_mib, plan.cpu_limit_s, plan.open_files_limit) == (100, 2, 64)


def test_secrets_are_files_and_no_variables(grants, tmp_path):
    plan = completed(grants, secrets="db")
    assert plan.secrets == {"db": str(tmp_path / "db")}
    assert plan.environment == PLAN.environment


@needs_root
def test_a_program_of_another_user_starts_in_the_root_directory_and_knows_whose_it_is(grants, monkeypatch):
    monkeypatch.setenv("HOME", "/ours")
    plan = completed(grants, run_as="nobody")
    given = environment(plan)
    assert (plan.user, plan.working_directory) == ("nobody", "/")
    assert (given["USER"], given["LOGNAME"], given["HOME"]) == ("nobody", "nobody", "/nonexistent")
    assert (
        grants.completed(
            LaunchPlan(argv=[], environment={}, working_directory="/srv"), Process(name="P", run_as="nobody")
        ).working_directory
        == "/srv"
    )


def test_more_of_the_environment_is_given_by_name_or_value_and_never_hides_our_own(monkeypatch):
    monkeypatch.setenv("LISTED", "ours")
    monkeypatch.setenv("UNLISTED", "secret")
    monkeypatch.delenv("ABSENT", raising=False)
    wanted = ("LISTED", "ABSENT", "SET=a=b", "EMPTY=", "TRIGMON_RUN=forged")
    given = environment(completed(Grants(environment=wanted)))
    assert (given["LISTED"], given["SET"], given["EMPTY"], given["TRIGMON_RUN"]) == ("ours", "a=b", "", "r")
    assert not {"ABSENT", "UNLISTED"} & set(given)


@pytest.mark.parametrize("appl_type", [ApplType.UNIX, ApplType.SPARK])
def test_both_kinds_of_program_are_held_to_it(order, tmp_path, appl_type):
    (tmp_path / "job.py").write_text("")
    (tmp_path / "job.py").chmod(0o755)
    asked = {"appl_type": appl_type, "working_directory": str(tmp_path)}
    launcher = launchers(tmp_path, Grants(environment=("MORE=1",)))[appl_type]
    plan = launcher.plan(order("job.py", cpu_limit_s=9, **asked))
    assert (plan.cpu_limit_s, plan.environment["MORE"]) == (9, "1")
    with pytest.raises(LaunchError, match=r"RUNAS\(nobody\): this monitor starts programs as its own user only"):
        launcher.plan(order("job.py", run_as="nobody", **asked))
    with pytest.raises(LaunchError, match=r"SECRETS\(db\): this monitor has no secrets"):
        launcher.plan(order("job.py", secrets="db", **asked))


def test_they_come_from_the_settings():
    made = Grants.of("/etc/users", None, ["A", "B=1"])
    assert (str(made.run_as_file), made.secrets_directory, made.environment) == ("/etc/users", None, ("A", "B=1"))
