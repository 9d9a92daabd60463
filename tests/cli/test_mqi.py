"""``trigmon mqi``: the C library's directory, and what is in the way of it."""

from __future__ import annotations

import pytest

from tests.cli.conftest import run_cli
from trigmon.mqi import library


@pytest.fixture
def places(tmp_path, monkeypatch):
    """A machine with neither a built library nor a real one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(library, "INCLUDED", tmp_path / "lib")
    monkeypatch.setattr(library, "others", list)
    return tmp_path


def made(directory):
    directory.mkdir(parents=True)
    for name in library.NAMES:
        (directory / name).touch()


def test_a_library_that_is_not_built_is_an_error_with_the_command_that_builds_it(places):
    done = run_cli("mqi", "path")
    assert done.exit_code == 1
    assert "trigmon mqi build" in done.stderr


def test_its_directory_is_printed_alone_so_that_a_shell_can_use_it(places):
    made(places / "lib")
    assert run_cli("mqi", "path").stdout == f"{places / 'lib'}\n"
    assert run_cli("mqi", "path", "--include").stdout == f"{library.SOURCES}\n"


def test_a_real_library_is_not_shadowed_in_silence(places, monkeypatch):
    made(places / "lib")
    real = places / "libmqm_r.so"
    monkeypatch.setattr(library, "others", lambda: [real])
    refused = run_cli("mqi", "path")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert str(real) in refused.stderr and "--beside-mq" in refused.stderr
    forced = run_cli("mqi", "path", "--beside-mq")
    assert forced.stdout == f"{places / 'lib'}\n"
    assert str(real) in forced.stderr


def test_without_a_compiler_a_build_says_what_to_install(places, monkeypatch):
    monkeypatch.setattr(library, "compiler", lambda: None)
    done = run_cli("mqi", "build")
    assert done.exit_code == 1
    assert "no C compiler" in done.stderr and "gcc" in done.stderr


@pytest.mark.parametrize("of", ["directory", *library.NAMES])
def test_a_built_library_that_others_may_write_to_is_not_taken(places, of):
    built = library.built_directory()
    made(built)
    for path in (built, *built.iterdir()):
        path.chmod(0o755)
    assert run_cli("mqi", "path").stdout == f"{built}\n"
    (built if of == "directory" else built / of).chmod(0o775)
    assert run_cli("mqi", "path").exit_code == 1


def test_a_built_library_of_another_user_is_not_taken(places, monkeypatch):
    built = library.built_directory()
    made(built)
    for path in (built, *built.iterdir()):
        path.chmod(0o755)
    owner = built.stat().st_uid
    monkeypatch.setattr(library.os, "geteuid", lambda: owner + 1)
    taken = run_cli("mqi", "path").exit_code == 0
    assert taken is (owner == 0)  # root's are everybody's
