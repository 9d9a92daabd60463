"""Which files are complete: a file that was not changed for as long as its watch says."""

from trigmon.watches.quiet_files import QuietFiles
from trigmon.watches.watched import SeenFile


def seen(name, size=1, mtime_ns=0, inode=1):
    return SeenFile(name, inode, size, mtime_ns)


def names(found):
    return [file.name for file in found[0]]


def test_a_file_is_complete_when_it_was_seen_unchanged_for_so_long():
    quiet = QuietFiles()
    assert quiet.complete([seen("a")], 5, 100.0) == ([], 105.0)
    assert quiet.complete([seen("a")], 5, 104.9) == ([], 105.0)
    assert names(quiet.complete([seen("a")], 5, 105.0)) == ["a"]


def test_a_growing_file_is_not_complete():
    quiet = QuietFiles()
    for second in range(20):
        assert quiet.complete([seen("a", size=second)], 5, float(second)) == ([], second + 5.0)


def test_a_file_written_to_in_place_or_replaced_begins_anew():
    quiet = QuietFiles()
    quiet.complete([seen("a"), seen("b")], 5, 0.0)
    found, next_at = quiet.complete([seen("a", mtime_ns=1), seen("b", inode=2)], 5, 5.0)
    assert (found, next_at) == ([], 10.0)


def test_a_file_that_went_and_came_back_begins_anew():
    quiet = QuietFiles()
    quiet.complete([seen("a")], 5, 0.0)
    quiet.complete([], 5, 2.0)
    assert quiet.complete([seen("a")], 5, 6.0) == ([], 11.0)


def test_the_oldest_file_comes_first_and_then_the_first_name():
    quiet = QuietFiles()
    files = [seen("c", mtime_ns=1), seen("b", mtime_ns=2), seen("a", mtime_ns=2)]
    assert names(quiet.complete(files, 0, 0.0)) == ["c", "a", "b"]


def test_without_a_quiet_time_a_file_is_complete_when_it_is_seen():
    assert names(QuietFiles().complete([seen("a")], 0, 0.0)) == ["a"]
