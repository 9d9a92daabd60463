"""``trigmon group`` where there is a group, and where there is none; with members: tests/server/test_members.py."""

from __future__ import annotations

from tests.cli.conftest import Trigmon, objects


def test_a_queue_manager_in_no_group_says_so_and_how_it_would_be_in_one(trigmon: Trigmon):
    result = trigmon("group")
    assert result.exit_code == 5
    assert result.stdout == ""
    assert result.stderr == "QM1 is in no queue-sharing group: group.name in its settings makes it a member\n"


def test_a_program_reads_that_there_is_no_group(trigmon: Trigmon):
    result = trigmon("group", "--output", "json")
    assert result.exit_code == 5
    result.exit_code = 0
    (row,) = objects(result)
    assert (row["q_mgr_name"], row["group"]) == ("QM1", "")
