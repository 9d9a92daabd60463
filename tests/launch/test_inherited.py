"""What a program finds of its monitor's environment."""

from __future__ import annotations

import pytest

from trigmon.launch.environment import inherited

KEPT = [
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"),
    *("JAVA_HOME", "SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_PYTHON", "HADOOP_HOME", "HADOOP_CONF_DIR", "YARN_CONF_DIR"),
    *("VIRTUAL_ENV", "PYTHONPATH", "PYTHONUNBUFFERED", "TRIGMON_SERVER_TCP"),
    *("XDG_STATE_HOME", "XDG_RUNTIME_DIR", "STATE_DIRECTORY", "RUNTIME_DIRECTORY"),
]
DROPPED = [
    *("AWS_SECRET_ACCESS_KEY", "PGPASSWORD", "DATABASE_URL", "HTTP_PROXY", "SSH_AUTH_SOCK", "KRB5CCNAME", "MY_PATH"),
    *("PATH_X", "LD_PRELOAD", "BASH_ENV", "ENV", "IFS", "LC", "SPARK", "path", "BASH_FUNC_id%%", "PYTHON"),
    *("NOTIFY_SOCKET", "WATCHDOG_PID", "LISTEN_FDS", "CREDENTIALS_DIRECTORY", "INVOCATION_ID", "JOURNAL_STREAM"),
]


def test_what_programs_need_to_run_here_is_kept_and_nothing_else():
    given = inherited(dict.fromkeys(KEPT + DROPPED, "/x"))
    assert sorted(given) == sorted(KEPT)


def test_another_users_program_gets_nothing_of_the_monitors_session():
    given = inherited(dict.fromkeys(KEPT, "/x"), is_another_users=True)
    assert set(KEPT) - set(given) == {"TMPDIR", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"}


@pytest.mark.parametrize("name", ["TRIGMON_HOME", "TRIGMON_CONFIG", "TRIGMON_RUNTIME", "TRIGMON_QMGR_DATA"])
def test_our_own_paths_are_absolute_for_the_program_runs_elsewhere(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    assert inherited({name: "here"}) == {name: f"{tmp_path}/here"}
    assert inherited({name: ""}) == {name: ""}
