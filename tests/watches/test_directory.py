"""What a watch does with files, on a real file system, each step alone and after a crash between two of them."""

import errno
import json
import os
import stat
from base64 import b64decode
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import pytest

from trigmon.watches import directory
from trigmon.watches.watched import FileRecord, WatchDefinition, decode, encode

LONG = 1 << 20


@pytest.fixture
def watch(tmp_path):
    place = tmp_path / "in"
    place.mkdir()
    return definition(place)


def definition(place, **fields):
    row = {"name": "W", "directory": str(place), "pattern": "*", "quiet_s": 0, "q_name": "Q", "content": "reference"}
    return WatchDefinition.of({**row, "done": "", "failed": "", **fields})


def put_file(watch, name, data=b"data"):
    path = Path(watch.directory, os.fsdecode(name))
    path.write_bytes(data)
    return path


def names_in(place):
    return sorted(entry.name for entry in Path(place).iterdir()) if Path(place).is_dir() else []


def taken(watch, longest=LONG):
    return directory.take(watch, directory.look(watch), longest)


def settle(records):
    return directory.settle(records, {"Q": LONG})


def finished(watch):
    return settle(taken(watch).records)


def test_a_file_is_moved_to_done_and_its_message_says_where_it_is_and_what_it_holds(watch):
    put_file(watch, "a.csv", b"1,2")
    (found,) = finished(watch)
    message = json.loads(found.data)
    path = f"{watch.directory}/done/a.csv"
    assert message == {
        "path": path,
        "size": 3,
        "mtime": Path(path).stat().st_mtime,
        "sha256": sha256(b"1,2").hexdigest(),
        "name": "a.csv",
        "watch": "W",
    }
    assert names_in(watch.directory) == ["done"]


def test_the_message_of_content_body_is_the_file(watch, tmp_path):
    body = definition(tmp_path / "in", content="body")
    put_file(body, "a", b"\x00\xff")
    (found,) = finished(body)
    assert found.data == b"\x00\xff"


def test_only_regular_files_whose_name_matches_are_seen(watch, tmp_path):
    for name in ("a.csv", "b.txt", ".c.csv"):
        put_file(watch, name)
    secret = tmp_path / "secret.csv"
    secret.write_text("secret")
    Path(watch.directory, "link.csv").symlink_to(secret)
    os.mkfifo(f"{watch.directory}/fifo.csv")
    Path(watch.directory, "directory.csv").mkdir()
    assert [file.name for file in directory.look(definition(tmp_path / "in", pattern="*.csv"))] == ["a.csv"]
    assert [file.name for file in directory.look(definition(tmp_path / "in", pattern=".*"))] == [".c.csv"]


def test_a_file_that_became_a_link_before_it_was_moved_is_not_followed(watch, tmp_path):
    path = put_file(watch, "a")
    records = taken(watch).records
    path.unlink()
    path.symlink_to(tmp_path / "secret")
    (found,) = settle(records)
    assert (found.data, found.stays) == (None, False)
    assert names_in(watch.done) == []


def test_a_name_that_is_there_already_gets_the_time_behind_it(watch):
    for data in (b"1", b"2", b"3"):
        put_file(watch, "a", data)
        finished(watch)
    assert len(names_in(watch.done)) == 3
    assert {Path(watch.done, name).read_bytes() for name in names_in(watch.done)} == {b"1", b"2", b"3"}


def test_the_longest_name_is_cut_for_the_time_behind_it(watch):
    for data in (b"1", b"2"):
        put_file(watch, "x" * 255, data)
        (found,) = finished(watch)
        assert found.data
    assert [len(name) for name in names_in(watch.done)] == [255, 255]


def test_a_name_that_is_not_utf_8_stands_in_base64_too(watch):
    put_file(watch, b"a\xff.csv")
    (found,) = finished(watch)
    message = json.loads(found.data)
    assert message["name"] == "a\ufffd.csv"
    assert b64decode(message["path_bytes"]) == os.fsencode(watch.done) + b"/a\xff.csv"
    assert Path(os.fsdecode(b64decode(message["path_bytes"]))).exists()


def test_after_a_crash_before_the_move_the_file_is_moved(watch):
    put_file(watch, "a")
    records = [decode(encode(each)) for each in taken(watch).records]
    (found,) = settle(records)
    assert found.data


def test_after_a_crash_behind_the_move_the_same_message_comes_of_the_moved_file(watch):
    put_file(watch, "a")
    records = taken(watch).records
    first, second = settle(records), settle(records)
    assert first == second
    assert first[0].data


def test_a_file_that_was_changed_after_it_was_recorded_is_taken_anew(watch):
    put_file(watch, "a")
    records = taken(watch).records
    put_file(watch, "a", b"longer than before")
    (found,) = settle(records)
    assert (found.data, found.stays) == (None, False)
    (found,) = finished(watch)
    assert json.loads(found.data)["size"] == len(b"longer than before")


def test_a_file_that_has_gone_has_no_message(watch):
    path = put_file(watch, "a")
    records = taken(watch).records
    path.unlink()
    (found,) = settle(records)
    assert (found.data, found.stays) == (None, False)


def test_a_foreign_file_in_done_is_neither_overwritten_nor_sent(watch):
    put_file(watch, "a", b"mine")
    records = taken(watch).records
    Path(watch.done, "a").write_bytes(b"foreign")
    (found,) = settle(records)
    assert (found.data, found.stays) == (None, False)
    (found,) = finished(watch)
    assert json.loads(found.data)["size"] == 4
    assert Path(watch.done, "a").read_bytes() == b"foreign"


def test_two_watches_with_one_done_directory_overwrite_nothing(tmp_path):
    watches = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        watches.append(definition(tmp_path / name, name=name, done=str(tmp_path / "done")))
        put_file(watches[-1], "a", name.encode())
    first, second = (taken(each).records for each in watches)
    (of_first,) = settle(first)
    (of_second,) = settle(second)
    assert of_first.data
    assert of_second.data is None
    (again,) = finished(watches[1])
    assert again.data
    assert len(names_in(tmp_path / "done")) == 2


def test_where_the_file_system_cannot_rename_without_overwriting_the_name_is_looked_at_first(watch, monkeypatch):
    monkeypatch.setattr(directory, "_renameat2", None)
    put_file(watch, "a")
    (found,) = finished(watch)
    assert found.data
    with directory._opened(watch.directory) as here, directory._opened(watch.done) as there:
        put_file(watch, "a", b"2")
        with pytest.raises(FileExistsError):
            directory._rename(here, "a", there, "a")


def test_a_missing_done_is_made_for_new_files_and_never_for_recorded_ones(watch):
    put_file(watch, "a")
    records = taken(watch).records
    assert Path(watch.done).is_dir()
    Path(watch.done).rmdir()
    (found,) = settle(records)
    assert found.stays
    assert "done" in found.problem
    assert names_in(watch.directory) == ["a"]


def test_done_has_the_permissions_of_the_directory_whatever_the_umask(watch):
    Path(watch.directory).chmod(0o775)
    before = os.umask(0o077)
    try:
        put_file(watch, "a")
        taken(watch)
    finally:
        os.umask(before)
    assert Path(watch.done).stat().st_mode & 0o777 == 0o775


def test_done_keeps_the_sticky_bit_by_which_nobody_removes_the_files_of_others(watch):
    Path(watch.directory).chmod(0o1777)
    put_file(watch, "a")
    taken(watch)
    assert stat.S_IMODE(Path(watch.done).stat().st_mode) == 0o1777


@pytest.mark.parametrize("done", ["", "of/done"])
def test_a_link_in_place_of_done_leads_no_file_elsewhere(tmp_path, done):
    place, elsewhere = tmp_path / "in", tmp_path / "elsewhere"
    (elsewhere / "done").mkdir(parents=True)
    place.mkdir()
    watch = definition(place, done=done)
    link = place / (done or "done").split("/")[0]
    link.symlink_to(elsewhere)
    put_file(watch, "a")
    with pytest.raises(OSError, match="symbolic link"):
        taken(watch)
    link.rename(place / "away")
    Path(watch.done).mkdir(parents=True)
    records = taken(watch).records
    Path(watch.done).rmdir()
    with suppress(OSError):
        link.rmdir()
    (place / "away").rename(link)
    (found,) = settle(records)
    assert found.stays
    assert "symbolic link" in found.problem
    assert (names_in(elsewhere), names_in(elsewhere / "done")) == (["done"], [])


def test_a_link_in_place_of_failed_leads_no_file_elsewhere(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "elsewhere").mkdir()
    body = definition(tmp_path / "in", content="body")
    Path(body.failed).symlink_to(tmp_path / "elsewhere")
    put_file(body, "long", b"x" * 100)
    assert "symbolic link" in taken(body, longest=50).left["long"]
    assert names_in(tmp_path / "elsewhere") == []


def test_done_elsewhere_may_be_a_link_of_the_administrator(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    watch = definition(tmp_path / "in", done=str(tmp_path / "link"))
    put_file(watch, "a")
    assert finished(watch)[0].data
    assert names_in(tmp_path / "elsewhere") == ["a"]


def test_a_missing_directory_keeps_the_records(watch):
    put_file(watch, "a")
    records = taken(watch).records
    Path(watch.directory).rename(f"{watch.directory}.away")
    assert all(each.stays for each in settle(records))
    Path(f"{watch.directory}.away").rename(watch.directory)
    (found,) = settle(records)
    assert found.data


def test_done_on_another_file_system_is_refused(watch, tmp_path):
    other = definition(tmp_path / "in", done="/dev/shm")
    if Path("/dev/shm").stat().st_dev == Path(other.directory).stat().st_dev:
        pytest.skip("/dev/shm is on the file system of the temporary directory")
    put_file(other, "a")
    with pytest.raises(OSError, match="another file system") as refused:
        taken(other)
    assert refused.value.errno == errno.EXDEV
    assert names_in(other.directory) == ["a"]


def test_a_file_longer_than_a_message_is_moved_to_failed(watch, tmp_path):
    body = definition(tmp_path / "in", content="body")
    put_file(body, "long", b"x" * 100)
    put_file(body, "short", b"x")
    found = taken(body, longest=50)
    assert list(found.failed) == ["long"]
    assert "100 bytes" in found.failed["long"]
    assert [each.name for each in found.records] == [b"short"]
    assert names_in(body.failed) == ["long"]
    assert directory.count(body.failed) == 1


def test_a_reference_may_be_of_a_file_of_any_length(watch):
    put_file(watch, "a", b"x" * 100)
    assert len(taken(watch, longest=0).records) == 1


def test_large_files_are_taken_a_few_at_a_time(watch, tmp_path, monkeypatch):
    monkeypatch.setattr(directory, "MOST_BYTES", 100)
    body = definition(tmp_path / "in", content="body")
    for name in ("a", "b", "c"):
        put_file(body, name, b"x" * 60)
    found = taken(body)
    assert (found.count, len(found.records)) == (1, 1)


def test_a_file_that_is_written_to_while_it_is_read_keeps_its_record(watch, monkeypatch):
    put_file(watch, "a")
    records = taken(watch).records
    real = directory.hashlib.file_digest

    def written_to(file, name):
        with Path(watch.done, "a").open("ab") as writer:
            writer.write(b"more")
        return real(file, name)

    monkeypatch.setattr(directory.hashlib, "file_digest", written_to)
    (found,) = settle(records)
    assert (found.stays, found.is_alone, found.problem) == (True, True, "it is being written to")
    monkeypatch.setattr(directory.hashlib, "file_digest", real)
    (found,) = settle(records)
    assert json.loads(found.data)["size"] == len(b"datamore")


def test_of_a_file_that_grows_without_an_end_no_more_than_a_message_is_read(tmp_path, watch, monkeypatch):
    body = definition(tmp_path / "in", content="body")
    put_file(body, "a")
    put_file(body, "b")
    records = taken(body).records
    grown, other = (os.fsdecode(record.name) for record in records)
    grows = iter([True])
    status = os.fstat

    def before_it_grows(descriptor):
        found = status(descriptor)
        if stat.S_ISREG(found.st_mode) and next(grows, False):
            os.truncate(Path(body.done, grown), 1 << 34)
        return found

    monkeypatch.setattr(directory.os, "fstat", before_it_grows)
    found = {os.fsdecode(each.record.name): each for each in settle(records)}
    assert (found[grown].problem, found[grown].is_alone, found[other].data) == ("it is being written to", True, b"data")
    found = {os.fsdecode(each.record.name): each for each in settle(records)}
    assert found[grown].problem == f"its {1 << 34} bytes are more than the {LONG} of a message"


@pytest.mark.parametrize("name", [b"", b".", b"..", b"a/b", b"a\0b"])
def test_a_record_that_names_no_file_of_its_directory_is_none(watch, name):
    put_file(watch, "a")
    (record,) = taken(watch).records
    fields = {field: getattr(record, field) for field in FileRecord.__struct_fields__}
    with pytest.raises(ValueError, match="no name of a file"):
        decode(encode(FileRecord(**{**fields, "name": name})))
