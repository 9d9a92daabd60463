"""Every look-up of messages goes through an index in get order: its cost does not grow with the queue."""

import apsw
import pytest
from apsw.ext import query_info

from trigmon.store.sql import statements
from trigmon.store.sqlite.checksums import SUMMED
from trigmon.store.sqlite.connection import connect, create_schema

FRAGMENTS = {"COLUMNS", "DROPPED"}
# What is looked at whole, once at a start: definitions, and what a crash left.
ONCE = {"OBJECTS", "QUEUES", "RECOVER_VOLATILE", "SET_DELETED_DROPPED"}
ONCE |= {"QUEUES_WITH_GROUPS", "GROUPS_TO_RECOVER", "PAUSES", "HELD_LINES", "SERVING", "CAUSES"}
ONCE |= {"RESERVATIONS_LEFT", "FORGET_OLD_RESERVATIONS", "DROP_RESERVATIONS_OF_NOTHING"}
STATEMENTS = {
    f"{name}.{key}" if key else name: statement
    for name, value in vars(statements).items()
    if name.isupper() and not name.startswith("_") and name not in FRAGMENTS
    for key, statement in (value.items() if isinstance(value, dict) else [("", value)])
}


@pytest.fixture(scope="module")
def db(tmp_path_factory):
    one = connect(tmp_path_factory.mktemp("plans") / "qm.db")
    create_schema(one)
    return one


def plan_of(db: apsw.Connection, statement: str) -> list[str]:
    explain = f"EXPLAIN QUERY PLAN {SUMMED.get(statement, statement)}"
    return [row[3] for row in db.execute(explain, (0,) * statement.count("?"))]


@pytest.mark.parametrize("name", sorted(STATEMENTS))
def test_a_statement_neither_scans_nor_sorts(db, name):
    plan = " | ".join(plan_of(db, STATEMENTS[name]))
    assert "TEMP B-TREE" not in plan
    assert ("SCAN" in plan) == (name in ONCE)


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("FIND_FIRST.plain", "message_ready (queue=?)"),
        ("FIND_FIRST.head 3", "message_heads (queue=? AND head=?)"),
        ("FIND_FIRST.rest", "message_rests (queue=?)"),
        ("FIND_AFTER_SAME.plain", "message_ready (queue=? AND priority=? AND rowid>?)"),
        ("FIND_AFTER_SAME.head 1", "message_heads (queue=? AND head=? AND priority=? AND rowid>?)"),
        ("FIND_AFTER_LOWER.plain", "message_ready (queue=? AND priority<?)"),
        ("FIND_AFTER_LOWER.rest", "message_rests (queue=? AND priority<?)"),
        ("FIND_FIRST.rest at", "message_rests (queue=?)"),
        ("FIND_AFTER_SAME.rest at alone", "message_rests (queue=? AND priority=? AND rowid>?)"),
        ("FIND_FIRST.plain alone", "message_ready (queue=?)"),
        ("GROUP_FROM", "message_group (queue=? AND group_id=? AND (msg_seq_number,msg_offset)>(?,?))"),
        ("FIND_FIRST.group", "message_of_group (queue=? AND group_id=?)"),
        ("FIND_AFTER_SAME.group", "message_of_group (queue=? AND group_id=? AND priority=? AND rowid>?)"),
        ("FIND_AFTER_LOWER.group", "message_of_group (queue=? AND group_id=? AND priority<?)"),
        ("FIND_ITEM", "message_group (queue=? AND group_id=? AND msg_seq_number=? AND msg_offset=?)"),
        ("FIRST_AT", "message_group (queue=? AND group_id=? AND msg_seq_number=? AND msg_offset=?)"),
        ("PLACES_OF", "message_group (queue=? AND group_id=? AND msg_seq_number=?)"),
        ("FIND_FIRST.msg_id", "message_msg_id (queue=? AND msg_id=?)"),
        ("FIND_AFTER_SAME.msg_id", "message_msg_id (queue=? AND msg_id=? AND priority=? AND rowid>?)"),
        ("FIND_FIRST.correl_id", "message_correl_id (queue=? AND correl_id=?)"),
        ("FIND_AFTER_SAME.correl_id", "message_correl_id (queue=? AND correl_id=? AND priority=? AND rowid>?)"),
        ("FIND_AFTER_LOWER.correl_id", "message_correl_id (queue=? AND correl_id=? AND priority<?)"),
        ("RESERVED", "message_taken_by (taken_by=? AND ordinal>? AND ordinal<?)"),
        ("FIND_OWN", "message_put_by (put_by=? AND queue=? AND taken_by=?)"),
    ],
)
def test_a_look_up_of_messages_uses_all_it_knows(db, name, index):
    assert plan_of(db, STATEMENTS[name]) == [f"SEARCH message USING INDEX {index}"]


def test_expired_messages_are_counted_in_their_index_alone(db):
    index = "COVERING INDEX message_expiring (queue=? AND expires_ms>? AND expires_ms<?)"
    assert plan_of(db, STATEMENTS["EXPIRED"]) == [f"SEARCH message USING {index}"]


def test_no_look_up_is_planned_anew_for_other_values(tmp_path):
    planned, again = [], set()
    db = connect(tmp_path / "qm.db")
    create_schema(db)
    db.authorizer = lambda *what: planned.append(what) or apsw.SQLITE_OK  # asked whenever SQLite plans
    for name, statement in STATEMENTS.items():
        text = SUMMED.get(statement, statement)
        if text.lstrip().startswith("SELECT"):
            values = query_info(db, text).bindings_count
            db.execute(text, (0,) * values).fetchall()
            planned.clear()
            db.execute(text, (1,) * values).fetchall()
            again |= {name} if planned else set()
    assert not again
