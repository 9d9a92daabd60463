"""No statement of the store on PostgreSQL scans a table, whatever the planner believes, and none sorts messages.

Plans are read three times: as the store's sessions have them, on tables that were never filled and on tables that are
full and analysed; and there with the planner's own settings, which may sort a few rows but scan nothing either.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.postgres import place
from tests.store.test_sqlite_plans import ONCE, STATEMENTS
from trigmon.store.postgres import connection, group_sql, lease, pipeline, turn, write_batch
from trigmon.store.postgres.schemas import GROUP
from trigmon.store.postgres.turn import CHUNKS
from trigmon.store.sql import statements

GROUPS_BULKS = (group_sql.DECIDE,)
GROUPS_OWN = {
    name: value for name, value in vars(group_sql).items() if name.isupper() and name not in ("JOIN", "MEMBERS")
}
"""What is asked of a group's own tables in its turns; the others are for its first start, and for a person."""
COUNTED = {
    f"counted {text.split()[0]} {n}": turn.counted(text)
    for n, text in enumerate(
        (
            *(getattr(statements, name) for name in ("COMMIT_GETS", "COMMIT_PUTS", "BACK_OUT_PUTS", "BACK_OUT_GETS")),
            *(getattr(statements, name) for name in ("TAKE_MESSAGE", "REMOVE_MESSAGE", "SET_ASIDE")),
            *(write_batch.BULKS[getattr(statements, name)].text for name in ("COMMIT_GETS", "COMMIT_PUTS")),
            *(write_batch.BULKS[getattr(statements, name)].text for name in ("TAKE_MESSAGE", "REMOVE_MESSAGE")),
        )
    )
}
ASKED_WHOLE = ("DEAD", "DECIDED", "FORGET_DECIDED")
OF_GROUP = GROUPS_OWN | COUNTED | {name: getattr(lease, name) for name in ("DEAD", "DISMISS")}
OF_GROUP |= {f"bulk of {text.split()[0]} decided": write_batch.BULKS[text].text for text in GROUPS_BULKS}
ALL = STATEMENTS | {
    f"bulk of {text.split()[0]} {n}": bulk.text
    for n, (text, bulk) in enumerate(write_batch.BULKS.items())
    if text not in GROUPS_BULKS
}
ALL |= {name: getattr(lease, name) for name in ("BEAT", "LEAVE")}
LOOKED_AT_WHOLE = ONCE | {
    "COUNT_ENDED",
    "UNDER_WAY",
    "DROP_PAUSES_OF_NOTHING",
    *(n for n in STATEMENTS if n.startswith("DEPTHS")),
}
"""What a start looks at, and what the upkeep of the ledger counts in an index of its own."""


@pytest.fixture(scope="module")
def empty():
    with connection.connect(place(Path("plans of what is empty"))) as db:
        # The schema may have been used: a new table has no statistics, and gets none while plans are made.
        db.execute("TRUNCATE message; ALTER TABLE message SET (autovacuum_enabled = false)")
        # TRUNCATE leaves what was found out of the columns.
        db.execute("DELETE FROM pg_statistic WHERE starelid = 'message'::regclass")
        yield db
        db.execute("ALTER TABLE message RESET (autovacuum_enabled)")


@pytest.fixture(scope="module")
def full():
    with connection.connect(place(Path("plans of what is full"))) as db:
        db.execute(FILL)
        db.execute("ANALYZE")
        yield db


@pytest.fixture(scope="module")
def full_by_itself(full):
    with connection.connect(place(Path("plans of what is full"))) as db:
        for name, _ in connection._SESSION:
            if name.startswith("enable_"):
                db.execute(f"RESET {name}")
        yield db


FILL = """
INSERT INTO queue (name) SELECT 'Q' || n FROM generate_series(1, 2000) n;
INSERT INTO message (id, queue, priority, persistent, put_by, taken_by, held, expires_ms, backout_count, msg_id,
    correl_id, group_id, msg_seq_number, msg_offset, msg_flags, head, whole, descriptor, data, checksum, ordinal)
SELECT n, 1 + n % 20, n % 10, 1, CASE n % 100 WHEN 1 THEN n % 7 END, CASE n % 100 WHEN 2 THEN n % 7 END, 0,
       CASE n % 50 WHEN 3 THEN 1 + n ELSE 0 END, 0, int8send(n), CASE n % 3 WHEN 0 THEN int8send(n % 1000) END, g.id,
       CASE WHEN g.id IS NOT NULL THEN 1 + n % 4 END, CASE WHEN g.id IS NOT NULL THEN 0 END,
       CASE WHEN g.id IS NOT NULL THEN 8 END, CASE WHEN g.id IS NULL THEN NULL WHEN n % 4 = 0 THEN 1 + n % 3 ELSE 0 END,
       0, 'x', repeat('x', 200)::bytea, 0, CASE n % 100 WHEN 2 THEN n END
FROM generate_series(1, 60000) n, LATERAL (SELECT CASE WHEN n % 5 = 0 THEN int8send(n / 40) END AS id) g;
INSERT INTO object SELECT 'QLOCAL', 'Q' || n, '{}' FROM generate_series(1, 2000) n;
INSERT INTO outcome SELECT 'c' || n / 2, n % 2, 1, n FROM generate_series(1, 20000) n;
INSERT INTO run (run_id, state, q_name, record, ended_ms)
SELECT 'r' || n, CASE WHEN is_over THEN 'exited' ELSE 'held' END, 'Q' || n % 20, '{}', nullif(n % 100, 0)
FROM (SELECT n, n % 100 > 0 AS is_over FROM generate_series(1, 20000) n) of;
INSERT INTO held SELECT 'I', 'P' || number % 9, 'Q' || number % 20, number FROM run;
INSERT INTO serving SELECT 'r' || n, '{}' FROM generate_series(1, 2000) n;
INSERT INTO cause SELECT 'P' || n, 'Q', 1, 1, 1 FROM generate_series(1, 2000) n;
INSERT INTO pause SELECT 'queue', 'Q' || n, 'me', 1, '' FROM generate_series(1, 2000) n;
INSERT INTO reservation SELECT n, n % 20, 'C' || n % 9, nullif(n % 50, 0), '{}' FROM generate_series(1, 5000) n;
INSERT INTO meta SELECT 'k' || n, 'v' FROM generate_series(1, 2000) n;
INSERT INTO member SELECT 'M' || n, 1, now(), 1, false, 1, now(), 'h', 1 FROM generate_series(1, 2000) n
"""


@pytest.fixture(scope="module")
def group_empty():
    with connection.connect(place(Path("plans of a group that is empty")), GROUP) as db:
        yield db


@pytest.fixture(scope="module")
def group_full():
    with connection.connect(place(Path("plans of a group that is full")), GROUP) as db:
        db.execute(FILL_GROUP)
        db.execute("ANALYZE")
        yield db


@pytest.fixture(scope="module")
def group_full_by_itself(group_full):
    with connection.connect(place(Path("plans of a group that is full")), GROUP) as db:
        for name, _ in connection._SESSION:
            if name.startswith("enable_"):
                db.execute(f"RESET {name}")
        yield db


FILL_GROUP = """
INSERT INTO queue (name, version, stands) SELECT 'Q' || n, n, '{}' FROM generate_series(1, 2000) n;
INSERT INTO message (id, queue, priority, persistent, put_by, taken_by, held, expires_ms, backout_count, msg_id,
    descriptor, data, checksum, group_id, head)
SELECT n, 1 + n % 20, n % 10, 1, CASE n % 100 WHEN 1 THEN n END, CASE n % 100 WHEN 2 THEN n END, 0, 0, 0, int8send(n),
       'x', repeat('x', 200)::bytea, 0, CASE n % 7 WHEN 0 THEN int8send(n / 40) END, CASE n % 7 WHEN 0 THEN 0 END
FROM generate_series(1, 60000) n;
INSERT INTO definition SELECT 'PROCESS', 'P' || n, n, '{}' FROM generate_series(1, 2000) n;
INSERT INTO lock SELECT n, n FROM generate_series(1, 2000) n;
INSERT INTO role SELECT 'R' || n, 'M' || n, n FROM generate_series(1, 2000) n;
INSERT INTO decided SELECT 'M' || n % 4, 'c' || n / 2, n, n, 1 FROM generate_series(1, 20000) n;
INSERT INTO joined SELECT 'M' || n, n FROM generate_series(1, 2000) n;
INSERT INTO member SELECT 'M' || n, 1, now(), 1, n % 100 = 0, 1, now(), 'h', 1 FROM generate_series(1, 2000) n
"""


def plan_of(db, statement: str) -> list[str]:
    """The steps of its plan, for whatever values."""
    for chunked in ("FROM message", "FROM run"):
        if chunked in statement and "ORDER BY" in statement and "LIMIT" not in statement:
            statement = f"{statement} LIMIT {CHUNKS[0]} OFFSET ?"
    db.prepare_threshold = None
    db.execute("DEALLOCATE ALL")
    db.execute(f"PREPARE asked AS {pipeline._numbered(statement)}".encode())
    values = ", ".join(["NULL"] * statement.count("?"))
    db.execute("SET plan_cache_mode = force_generic_plan")
    rows = db.execute(f"EXPLAIN (COSTS OFF) EXECUTE asked{f' ({values})' if values else ''}".encode()).fetchall()
    return [row[0].strip().removeprefix("->  ") for row in rows]


@pytest.mark.parametrize("tables", ["empty", "full", "full_by_itself"])
def test_no_statement_scans_or_sorts(tables, request):
    db = request.getfixturevalue(tables)
    # What a start looks at once is looked at whole.
    plans = {name: plan_of(db, statement) for name, statement in ALL.items() if name not in LOOKED_AT_WHOLE}
    assert len(plans) > 100
    may_sort = tables == "full_by_itself"
    wrong = {name: [s for s in steps if is_scan(s) or (is_sort(s) and not may_sort)] for name, steps in plans.items()}
    assert {name: steps for name, steps in wrong.items() if steps} == {}


@pytest.mark.parametrize("tables", ["group_empty", "group_full"])
def test_no_statement_of_a_group_scans_or_sorts(tables, request):
    db = request.getfixturevalue(tables)
    wrong = {name: [s for s in plan_of(db, OF_GROUP[name]) if is_scan(s) or is_sort(s)] for name in OF_GROUP}
    assert {name: steps for name, steps in wrong.items() if steps} == {}


def test_no_statement_of_a_full_group_scans_with_the_planners_own_settings(group_full_by_itself):
    wrong = {}
    for name, statement in OF_GROUP.items():
        # One row, those that are all wanted, and what is asked at a start or of all members, or clears a table.
        small = ("Seq Scan on turn", "Seq Scan on deferred", "Seq Scan on lock")
        wanted = small if name not in ASKED_WHOLE else "Seq Scan"
        steps = plan_of(group_full_by_itself, statement)
        wrong[name] = [step for step in steps if is_scan(step) and not step.startswith(wanted)]
    assert {name: steps for name, steps in wrong.items() if steps} == {}


def is_scan(step: str) -> bool:
    """Whether a step reads a table whole."""
    return bool(re.match(r"(Parallel )?Seq Scan", step))


def is_sort(step: str) -> bool:
    """Whether a step puts rows in order, which an index should have in order."""
    return bool(re.match(r"(Incremental )?Sort$", step))


@pytest.mark.parametrize(
    ("name", "index", "condition"),
    [
        ("FIND_FIRST.plain", "message_ready", "(queue = $1)"),
        ("FIND_FIRST.head 3", "message_heads", "((queue = $1) AND (head = 3))"),
        ("FIND_FIRST.rest", "message_rests", "(queue = $1)"),
        ("FIND_AFTER_SAME.plain", "message_ready", "((queue = $1) AND (priority = $2) AND (id > $3))"),
        ("FIND_AFTER_LOWER.plain", "message_ready", "((queue = $1) AND (priority < $2))"),
        ("FIND_FIRST.msg_id", "message_msg_id", "((queue = $1) AND (msg_id = $2))"),
        ("FIND_FIRST.correl_id", "message_correl_id", "((queue = $1) AND (correl_id = $2))"),
        ("FIND_FIRST.group", "message_of_group", "((queue = $1) AND (group_id = $2))"),
        ("RESERVED", "message_taken_by", "((taken_by = $1) AND (ordinal >= $2) AND (ordinal < $3))"),
        ("FIND_OWN", "message_put_by", "((put_by = $1) AND (queue = $2))"),
    ],
)
def test_a_look_up_of_messages_uses_all_it_knows(empty, name, index, condition):
    steps = plan_of(empty, ALL[name])
    assert [step for step in steps if step.startswith("Index")] == [
        f"Index Scan using {index} on message",
        f"Index Cond: {condition}",
    ]
