"""The format of the journal: what a valid record is, and where a journal ends."""

from zlib import crc32

import pytest

from trigmon.journal import journal as records
from trigmon.journal.journal import (
    HEADER_SIZE,
    NO_HEADER,
    VERSION,
    Record,
    UnknownVersionError,
    header,
    journal_of,
    packed,
    records_in,
    tail_of,
)

SALT = 0xDEADBEEF


def journal(*numbers, durable=0, salt=SALT):
    return journal_of(
        (Record(number, durable, number * 1000, b"entries of %d" % number * 5) for number in numbers), salt
    )


def record(number, durable, entries, salt):
    return packed(Record(number, durable, 0, entries), salt)


def numbers(data):
    return [found.number for found in records_in(data)]


def test_records_are_read_as_they_were_written():
    assert list(records_in(journal(7, 8, durable=6))) == [
        (7, 6, 7000, b"entries of 7" * 5),
        (8, 6, 8000, b"entries of 8" * 5),
    ]


def test_an_empty_journal_has_no_records_and_neither_has_a_file_that_is_too_short():
    for data in (b"", NO_HEADER, NO_HEADER + journal(1)[HEADER_SIZE:], journal(1)[: HEADER_SIZE - 1]):
        assert numbers(data) == []


def test_wherever_the_end_is_torn_the_records_before_it_stand():
    whole = journal(1, 2, 3)
    ends = [len(journal(*range(1, last + 1))) for last in range(4)]
    for length in range(HEADER_SIZE, len(whole)):
        expected = [n for n in (1, 2, 3) if ends[n] <= length]
        assert numbers(whole[:length]) == expected
        assert numbers(whole[:length] + bytes(len(whole) - length)) == expected


def test_a_changed_byte_takes_one_record_and_no_more():
    whole = journal(1, 2, 3)
    begin, end = len(journal(1)), len(journal(1, 2))
    for at in range(begin, end):
        changed = whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :]
        assert numbers(changed) == [1, 3]


def test_records_of_an_earlier_use_of_the_file_do_not_count():
    old, new = journal(1, 2, 3, 4), journal(5, salt=SALT + 1)
    assert numbers(new + old[len(new) :]) == [5]


def test_a_message_that_holds_a_record_is_none():
    for salt, found in ((SALT, [9]), (SALT + 1, [])):  # no client knows the salt of the journal
        data = header(SALT) + record(1, 0, record(9, 0, b"x", salt), SALT)
        assert numbers(data) == [1]
        assert numbers(data[: HEADER_SIZE + 9] + b"?" + data[HEADER_SIZE + 10 :]) == found


def test_another_version_is_refused_by_its_number(monkeypatch):
    monkeypatch.setattr(records, "VERSION", VERSION + 1)
    later = journal(1)
    monkeypatch.undo()
    with pytest.raises(UnknownVersionError, match=f"version {VERSION + 1}; this trigmon knows {VERSION}"):
        numbers(later)


class TestATail:
    def test_is_what_lies_behind_a_number(self):
        data = journal(3, 4, 5)
        assert [r.number for r in tail_of(data, 2).records] == [3, 4, 5]
        assert [r.number for r in tail_of(data, 4).records] == [5]
        assert tail_of(data, 9) == ([], "", 5)

    def test_ends_at_a_record_that_was_never_synced(self):
        data = header(SALT) + b"".join(record(n, 1, b"x", SALT) for n in (2, 4, 5))
        tail = tail_of(data, 1)
        assert [r.number for r in tail.records] == [2]
        assert not tail.lost

    def test_says_what_is_lost_of_what_was_durable(self):
        data = header(SALT) + record(2, 1, b"x", SALT) + record(5, 4, b"x", SALT)
        tail = tail_of(data, 1)
        assert [r.number for r in tail.records] == [2]
        assert tail.lost == "turns 3 to 4 are missing in the journal"

    def test_does_not_mind_damage_in_what_the_database_has(self):
        whole = journal(1, 2, 3, durable=2)
        at = len(journal(1)) + 40
        assert [r.number for r in tail_of(whole[:at] + b"!!" + whole[at + 2 :], 2).records] == [3]


def test_without_the_sum_of_the_entries_a_torn_record_would_be_taken(monkeypatch):
    monkeypatch.setattr(records, "crc32", lambda data, start=0: 0 if b"entries" in bytes(data) else crc32(data, start))
    whole = journal(1, 2)
    torn = whole[:-20] + bytes(20)
    assert numbers(torn) == [1, 2]
    monkeypatch.undo()
    assert numbers(journal(1, 2)[:-20] + bytes(20)) == [1]


def test_a_header_that_is_neither_valid_nor_blank_is_damaged():
    whole = journal(1, 2)
    for at in (0, 13, 17):
        assert tail_of(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :], 0).lost
    assert tail_of(NO_HEADER + whole[HEADER_SIZE:], 0) == ([], "", 0)
