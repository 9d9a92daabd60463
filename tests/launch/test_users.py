"""As whom a program may run: the allow-list, and every way in which it is not to be trusted."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from trigmon.launch import users
from trigmon.launch.launch_plan import LaunchError
from trigmon.launch.users import account, allowed, listed

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")
OTHER = "nobody" if os.geteuid() != pwd.getpwnam("nobody").pw_uid else "daemon"


@pytest.fixture
def allow_list(tmp_path):
    """Writes the file; its path."""

    def write(text, mode=0o644):
        path = tmp_path / "users"
        path.write_text(text)
        path.chmod(mode)
        return path

    return write


def test_the_monitors_own_user_needs_no_list(monkeypatch):
    me = account(OTHER)
    monkeypatch.setattr(os, "geteuid", lambda: me.uid)
    assert allowed(OTHER, None) is None


def test_nobody_else_is_possible_without_a_list_and_the_remedy_is_reported():
    with pytest.raises(LaunchError, match=r"as its own user only; list .* in a file that root owns"):
        allowed(OTHER, None)


@pytest.mark.parametrize("text", ["", "# nobody\n", "nobodyx\n", "nobody daemonx\n"])
def test_a_user_that_is_not_listed_is_refused(allow_list, text):
    path = allow_list(text)
    with pytest.raises(LaunchError, match=f"{path} does not list this user; add a line {OTHER}"):
        allowed(OTHER, path)


@needs_root
def test_a_user_that_is_listed_is_given_with_all_that_makes_a_user(allow_list):
    found = allowed("nobody", allow_list("# jobs\n\n  nobody   # loads\nother\n"))
    known = pwd.getpwnam("nobody")
    assert (found.uid, found.gid, found.home) == (known.pw_uid, known.pw_gid, known.pw_dir)
    assert found.groups == os.getgrouplist("nobody", known.pw_gid)
    assert found.environment() == {
        "HOME": known.pw_dir,
        "USER": "nobody",
        "LOGNAME": "nobody",
        "SHELL": known.pw_shell,
    }


@needs_root
def test_an_edit_is_in_force_at_once(allow_list):
    path = allow_list("nobody\n")
    assert allowed("nobody", path)
    allow_list("daemon\n")
    with pytest.raises(LaunchError, match="does not list"):
        allowed("nobody", path)


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666])
def test_a_list_that_others_may_write_is_refused(allow_list, mode):
    path = allow_list(f"{OTHER}\n", mode)
    with pytest.raises(LaunchError, match=rf"others may write {path} \(chmod go-w {path}\)"):
        allowed(OTHER, path)


def test_a_list_in_a_directory_that_others_may_write_is_refused(allow_list):
    path = allow_list(f"{OTHER}\n")
    path.parent.chmod(0o777)
    with pytest.raises(LaunchError, match=f"others may write {path.parent} "):
        listed(path)
    path.parent.chmod(0o1777)
    assert listed(path) == {OTHER}


@needs_root
def test_a_list_of_somebody_elses_is_refused(allow_list):
    path = allow_list("nobody\n")
    os.chown(path, 1, 1)
    with pytest.raises(LaunchError, match=rf"{path} belongs to user 1; it must be root's \(chown root {path}\)"):
        allowed("nobody", path)


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_list_that_cannot_be_read_is_reported(tmp_path, content):
    path = tmp_path / "users"
    if content:
        path.write_bytes(content)
    with pytest.raises(LaunchError, match=f"monitor.run_as_file {path} cannot be read"):
        listed(path)


def test_an_unknown_user_is_refused_with_what_mqsc_may_have_done_to_its_name(tmp_path):
    with pytest.raises(LaunchError, match=r"RUNAS\(no-such-user\): this machine has no such user$"):
        allowed("no-such-user", tmp_path)
    with pytest.raises(LaunchError, match="no such user; MQSC makes capitals of what stands without quotes"):
        allowed("NOBODY", tmp_path)


@pytest.mark.parametrize("name", ["root", "toor"])
def test_user_0_is_refused_under_any_name_even_to_a_monitor_of_root(allow_list, monkeypatch, name):
    root = pwd.getpwuid(0)
    monkeypatch.setattr(pwd, "getpwnam", lambda asked: root)
    with pytest.raises(LaunchError, match="it is user 0, and no program is ever started as that"):
        allowed(name, allow_list(f"{name}\n"))


RIGHTS = {users.CAP_SETUID: "setuid", users.CAP_SETGID: "setgid", users.CAP_KILL: "kill", users.CAP_CHOWN: "chown"}


@needs_root
@pytest.mark.parametrize("missing", RIGHTS)
def test_a_monitor_without_the_rights_names_the_missing_ones(allow_list, missing):
    """The kernel's own word, in a process that has one right less."""
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from trigmon.launch.users import allowed\n"
        "print(allowed('nobody', Path(sys.argv[1]), gives_files=sys.argv[2] == 'files'))\n"
    )
    path, name = allow_list("nobody\n"), RIGHTS[missing]
    argv = ["setpriv", f"--bounding-set=-{name}", f"--inh-caps=-{name}", sys.executable, "-c", code, path]
    done = subprocess.run([*argv, "files"], capture_output=True, text=True, check=False)
    assert f"it lacks CAP_{name.upper()} (in its systemd unit: AmbientCapabilities=" in done.stderr
    without = subprocess.run([*argv, "none"], capture_output=True, text=True, check=False)
    assert ("Account" in without.stdout) is (missing == users.CAP_CHOWN)


def test_what_this_process_may_do_is_read_from_the_kernel():
    effective = int(Path("/proc/self/status").read_text().partition("CapEff:")[2].split()[0], 16)
    assert users._has(users.CAP_KILL) is bool(effective & 1 << 5)
