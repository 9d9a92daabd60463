"""Where a secret is looked for, and how badly it may be kept before it is refused."""

from __future__ import annotations

import os

import pytest

from trigmon.keeper import credentials
from trigmon.launch.launch_plan import LaunchError
from trigmon.launch.secret_files import found


@pytest.fixture
def safe(tmp_path):
    """The directory of the setting, and how a file comes into it."""
    directory = tmp_path / "secrets"
    directory.mkdir(mode=0o700)

    def put(name, mode=0o600, where=directory):
        where.mkdir(exist_ok=True)
        (where / name).write_text("value")
        (where / name).chmod(mode)
        return str(where / name)

    put.directory = directory
    return put


def test_each_name_is_found_in_the_directory_of_the_setting(safe):
    a, b = safe("db"), safe("api.key-2", 0o400)
    assert found("db, api.key-2", safe.directory, {}) == {"db": a, "api.key-2": b}
    assert found(" ", safe.directory, {}) == {}


def test_systemds_credential_comes_first_and_may_be_readable_by_an_access_list(safe, tmp_path):
    given = tmp_path / "given"
    safe("db")
    theirs = safe("db", 0o440, given)
    assert found("db", safe.directory, {"CREDENTIALS_DIRECTORY": str(given)}) == {"db": theirs}
    mine = safe("other")
    assert found("other", safe.directory, {"CREDENTIALS_DIRECTORY": str(given)}) == {"other": mine}


def test_a_missing_one_is_named_with_where_it_was_looked_for_and_what_to_do(safe, tmp_path):
    with pytest.raises(LaunchError) as refused:
        found("db", safe.directory, {"CREDENTIALS_DIRECTORY": str(tmp_path)})
    assert f"SECRETS(db): there is no {tmp_path}/db nor {safe.directory}/db; " in str(refused.value)
    assert "LoadCredential=db:" in str(refused.value)
    with pytest.raises(LaunchError, match=r"SECRETS\(db\): this monitor has no secrets; give"):
        found("db", None, {})


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o610])
def test_one_that_others_may_read_is_refused(safe, mode):
    path = safe("db", mode)
    with pytest.raises(LaunchError, match=rf"others may read {path} \(chmod 600 {path}\)"):
        found("db", safe.directory, {})


def test_a_link_and_a_directory_are_refused_wherever_they_lead(safe):
    (safe.directory / "link").symlink_to(safe("db"))
    (safe.directory / "folder").mkdir()
    for name in ("link", "folder"):
        with pytest.raises(LaunchError, match="is no plain file"):
            found(name, safe.directory, {})


@pytest.mark.parametrize("name", ["../db", "/etc/shadow", ".hidden", "a b", "a/../b", "", "a,,b"])
def test_what_is_no_name_is_refused(safe, name):
    if name:
        with pytest.raises(LaunchError, match="is no name of a secret"):
            found(name, safe.directory, {})
    else:
        assert found(name, safe.directory, {}) == {}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")
def test_one_of_somebody_elses_is_refused(safe):
    os.chown(path := safe("db"), 1, 1)
    with pytest.raises(LaunchError, match=f"{path} belongs to user 1, not to root"):
        found("db", safe.directory, {})


class Swapped(dict):
    """Secrets during whose copying a program of the same user puts a link in the directory's place."""

    def __init__(self, secrets, run, target):
        super().__init__(secrets)
        self.run, self.target = run, target

    def items(self):
        yield from super().items()
        (self.run / credentials.DIRECTORY).rename(self.run / "moved")
        (self.run / credentials.DIRECTORY).symlink_to(self.target)


def test_a_link_that_takes_the_directorys_place_gives_nobody_what_it_leads_to(safe, tmp_path):
    run, target = tmp_path / "run", tmp_path / "anothers"
    run.mkdir()
    target.mkdir(mode=0o755)
    credentials.put(run, Swapped({"db": safe("db")}, run, target), *((1, 1) if os.geteuid() == 0 else (-1, -1)))
    assert (target.stat().st_uid, target.stat().st_mode & 0o777) == (os.geteuid(), 0o755)
    credentials.remove(run)
    assert (target.exists(), target.stat().st_uid) == (True, os.geteuid())
    assert not (run / credentials.DIRECTORY).is_symlink()
