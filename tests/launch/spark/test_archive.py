"""Archives of classes: each found only by what it fits, made one at a time, a failure remembered, readable for all."""

from __future__ import annotations

import os

import pytest

from tests.launch.spark.homes import WRITES, java_script, pips
from trigmon.launch.spark.cold import class_archive, make_archive
from trigmon.launch.spark.cold.class_archive import AGAIN_AFTER_S, Archives, Note, key
from trigmon.launch.spark.cold.java import Java

WRITES_NONE = "#!/bin/sh\n"
ENDS_BADLY = "#!/bin/sh\necho 'it did not like that' >&2\nexit 3\n"
NOT_TWICE = (
    WRITES
    + """
if "--version" in sys.argv:
    sys.exit("a bad archive")
"""
)
TAKES_LONG = "#!/bin/sh\nsleep 600\n"


@pytest.fixture
def home(tmp_path):
    return pips(tmp_path / "spark")


@pytest.fixture
def archives(tmp_path):
    return Archives(tmp_path / "data" / "java")


@pytest.fixture
def java(tmp_path):
    """Makes a Java that is a script."""

    def make(script=WRITES, version=17, name="jdk"):
        return Java(java_script(tmp_path / name, script, version), version, "PATH")

    return make


def test_another_jar_another_order_or_another_java_is_another_key(home, java, tmp_path):
    first = java()
    was = key(home, first)
    assert key(home, first) == was
    (home / "jars" / "more.jar").touch()
    with_more = key(home, first)
    assert with_more != was
    (home / "jars" / "more.jar").write_text("changed")
    assert key(home, first) != with_more
    (home / "jars" / "more.jar").unlink()
    assert key(home, first) == was
    (first.home / "release").write_text("patched\n")
    assert key(home, first) != was
    assert key(home, java(name="other")) != key(home, first)
    assert key(pips(tmp_path / "elsewhere"), first) != key(home, first)


@pytest.mark.parametrize(
    ("version", "uses", "makes"),
    [
        (17, "-XX:SharedArchiveFile=/a", "-XX:ArchiveClassesAtExit=/a"),
        (21, "-XX:SharedArchiveFile=/a", "-XX:ArchiveClassesAtExit=/a"),
        (25, "-XX:AOTCache=/a", "-XX:AOTCacheOutput=/a"),
    ],
)
def test_each_java_has_its_own_kind(java, version, uses, makes):
    of = java(version=version)
    assert class_archive.using("/a", of)[-1] == uses
    assert class_archive.making("/a", of)[-1] == makes
    assert all("off" in options[0] for options in (class_archive.using("/a", of), class_archive.making("/a", of)))


@pytest.mark.parametrize("version", [17, 25])
def test_what_is_made_is_found_whole_and_readable_for_every_user(archives, home, java, version):
    of = java(version=version)
    key_ = key(home, of)
    assert archives.usable(key_) is None
    assert archives.is_wanted(key_)
    before = os.umask(0o077)
    try:
        note = make_archive.make(archives, home, of)
    finally:
        os.umask(before)
    assert (note.failed, note.size, note.key, note.version) == ("", 7, key_, version)
    file = archives.usable(key_)
    assert file.read_text() == "classes"
    assert [path.stat().st_mode & 0o777 for path in (file.parent, file)] == [0o755, 0o644]
    assert not archives.is_wanted(key_)
    assert not (archives.directory / "making").exists()
    assert archives.notes() == [note]


def test_one_that_was_cut_short_is_not_used_but_made_again(archives, home, java):
    note = make_archive.make(archives, home, java())
    archives.file(note.key).write_text("class")
    assert archives.usable(note.key) is None
    assert archives.is_wanted(note.key)


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (WRITES_NONE, "the Java machine wrote no archive"),
        (ENDS_BADLY, "the Java machine ended with 3: it did not like that"),
        (TAKES_LONG, "it took longer than 0.5 s"),
    ],
)
def test_a_failure_is_remembered_with_its_reason_and_not_repeated_for_a_day(archives, home, java, script, why):
    of = java(script)
    note = make_archive.make(archives, home, of, time_limit_s=0.5 if script == TAKES_LONG else 60)
    assert note.failed == why
    assert archives.usable(note.key) is None
    made_s = note.made_ms / 1000
    assert not archives.is_wanted(note.key, made_s + AGAIN_AFTER_S - 1)
    assert archives.is_wanted(note.key, made_s + AGAIN_AFTER_S)
    assert not (archives.directory / "making").exists()


def test_one_that_no_java_machine_starts_with_is_not_filed(archives, home, java):
    note = make_archive.make(archives, home, java(NOT_TWICE))
    assert note.failed == "the Java machine ended with 1: a bad archive"
    assert archives.usable(note.key) is None


def test_a_full_disk_is_reported_and_nothing_is_begun(archives, home, java, monkeypatch):
    monkeypatch.setattr(make_archive, "ROOM", 1 << 60)
    note = make_archive.make(archives, home, java(ENDS_BADLY))
    assert "iB free, and an archive wants" in note.failed


def test_a_java_that_has_no_archive_of_its_own_is_reported_with_what_makes_one(archives, home, java):
    of = java(ENDS_BADLY)
    (of.home / "lib" / "server" / "classes.jsa").unlink()
    note = make_archive.make(archives, home, of)
    assert note.failed.endswith(f"`{of.executable} -Xshare:dump` makes it")
    (of.home / "lib" / "server" / "classes.jsa").touch()
    assert archives.is_wanted(key(home, of))


def test_one_is_made_at_a_time(archives, home, java):
    with archives.lock() as is_ours:
        assert is_ours
        assert make_archive.make(archives, home, java()) is None
    assert make_archive.make(archives, home, java(name="later")).failed == ""


def test_what_fits_nothing_any_more_goes_when_the_next_is_made(archives, home, java):
    old = make_archive.make(archives, home, java())
    other = make_archive.make(archives, home, java(name="other"))
    assert {note.key for note in archives.notes()} == {old.key, other.key}
    (home / "jars" / "more.jar").touch()
    new = make_archive.make(archives, home, java(name="third"))
    assert {note.key for note in archives.notes()} == {new.key}
    assert not archives.file(old.key).exists()


def test_what_is_left_of_one_that_was_killed_is_swept(archives, home, java):
    half = archives.directory / "making" / "archive"
    half.parent.mkdir(parents=True)
    half.write_text("half")
    note = make_archive.make(archives, home, java(WRITES_NONE))
    assert note.failed == "the Java machine wrote no archive"


def test_a_note_that_cannot_be_read_is_none(archives):
    archives.directory.mkdir(parents=True)
    (archives.directory / "k.json").write_text("{")
    assert archives.note("k") is None
    assert archives.notes() == []
    assert archives.is_wanted("k")
    archives.write(Note(key="k", made_ms=1, took_s=1.0, failed="x"))
    assert archives.remove("k") > 0
    assert archives.remove("k") == 0


def test_the_process_makes_one_and_says_in_its_log_why_not(archives, home, java):
    assert make_archive.begin(archives, home, java()).wait(60) == 0
    assert archives.usable(key(home, java(name="again"))) is None
    assert make_archive.begin(archives, home, java(ENDS_BADLY, name="bad")).wait(60) == 1
    assert "it did not like that" in (archives.directory / "log").read_text()
    assert len(archives.notes()) == 2
