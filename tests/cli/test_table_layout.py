"""A table fits the terminal, and what does not fit stands below it in full."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.daemons import define
from trigmon.cli.table_layout import TableLayout
from trigmon.mq.calls import Pause, RecordRun

COLUMNS = ["name", "depth", "paused", "trigger_type"]
CELLS = [
    ["ORDERS", "1", "queue ORDERS held since 18:00: does not drain: 4 runs of P removed no message", "first"],
    ["B", "20", "-", "every"],
]


def test_without_a_width_all_columns_stand_in_the_table():
    table = TableLayout(COLUMNS, CELLS)
    assert [line.split() for line in table.head] == [COLUMNS]
    assert table.body[1].split() == CELLS[1]
    assert table.below == []


def test_the_widest_column_stands_below_a_table_that_is_too_wide_behind_the_name_of_its_row():
    table = TableLayout(COLUMNS, CELLS, 60)
    assert [line.split() for line in table.head] == [["trigger_"], ["name", "depth", "type"]]
    assert table.body[0].split() == ["ORDERS", "1", "first"]
    assert table.below == [
        "ORDERS paused: queue ORDERS held since 18:00: does not",
        "    drain: 4 runs of P removed no message",
    ]


def test_the_names_of_columns_take_several_lines_before_a_column_leaves_the_table():
    table = TableLayout(["name", "open_input_count"], [["A", "1"]], 12)
    assert table.head == ["      open_", "      input_", "name  count"]
    assert (table.body, table.below) == (["A     1"], [])


TEXTS = st.text("abc de", max_size=60).map(str.strip)


@given(
    st.lists(st.tuples(st.text("abc", min_size=1, max_size=12), TEXTS, TEXTS, TEXTS), min_size=1), st.integers(40, 130)
)
def test_each_line_fits_and_each_word_is_shown(rows, width):
    table = TableLayout(["name", "one", "two", "three"], rows, width)
    lines = [*table.head, *table.body, *table.below]
    assert all(len(line) <= width for line in lines)
    shown = " ".join(lines).split()
    assert all(shown.count(word) >= sum(text.split().count(word) for row in rows for text in row) for word in shown)


@pytest.mark.parametrize("columns", [80, 100, 120])
def test_the_queues_fit_a_terminal_though_one_is_paused_for_a_long_reason(shared_daemon, qm, columns):
    q_name = f"TABLE.Q{columns}"
    define(qm, q_name)
    qm.call(Pause(what="queue", name=q_name, reason="a reason " * 20))
    printed = on_terminal(shared_daemon.env, columns, "queue", "list", q_name)
    lines = printed.replace("\x1b[1m", "").replace("\x1b[0m", "").splitlines()
    assert all(len(line) <= columns for line in lines), lines
    assert " ".join(" ".join(lines).split()).count("a reason") == 20


RED = "\x1b[31m"


def test_what_has_failed_is_red_on_a_terminal_and_nothing_else(shared_daemon, qm):
    now_ms = int(time.time() * 1000)  # an old run may be pruned before it is listed
    for run_id, fields in {"00000000000000a1": {"exit_status": 1}, "00000000000000a2": {"exit_status": 0}}.items():
        record = {
            "run_id": run_id,
            "state": "exited",
            "q_name": "RED.Q",
            "ended_ms": now_ms,
            "end_ms": now_ms,
            **fields,
        }
        qm.call(RecordRun(run_id=run_id, record=record))
    shown = ("runs", "list", "--queue", "RED.Q")
    assert red_lines(on_terminal(shared_daemon.env, 120, *shown)) == ["00000000000000a1"]
    assert red_lines(on_terminal(shared_daemon.env | {"NO_COLOR": "1"}, 120, *shown)) == []
    assert RED not in shared_daemon.trigmon(*shown).stdout


def red_lines(printed):
    """Returns the first words of the lines in red."""
    return [line.split(RED)[1].split()[0] for line in printed.splitlines() if RED in line]


def on_terminal(env, columns, *arguments):
    """Returns what a command prints on a terminal of this width."""
    screen, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    argv = [sys.executable, "-m", "trigmon", *arguments]
    with subprocess.Popen(argv, stdout=terminal, env=env, close_fds=True) as command:
        os.close(terminal)
        printed = b""
        while part := _read(screen):
            printed += part
    os.close(screen)
    assert command.returncode == 0
    return printed.decode()


def _read(screen):
    try:
        return os.read(screen, 4096)
    except OSError:  # the other side is closed
        return b""
