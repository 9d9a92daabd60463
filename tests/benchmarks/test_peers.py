"""Each peer that is found here is started, does what is measured, and leaves nothing; who is absent is named."""

import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.benchmarks.peers.comparison import Cell, Comparison, Figures, cells
from tests.benchmarks.peers.found_peers import PEERS, absent, running
from tests.benchmarks.peers.on_trigmon import Trigmon
from tests.benchmarks.peers.peer import QUEUE, UNITS
from tests.benchmarks.peers.shown import picture, ratios, table
from tests.benchmarks.peers.turn_of_clients import UNIT, Turn, turn
from tests.processes import cpu_seconds_of_all
from tests.waiting import until

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "benchmarks.md"
COMMAND = "python -m tests.benchmarks "
TERMINATED_AT_FORK = """
import os, runpy, signal, sys

command, fork, moment = os.getpid(), int(sys.argv.pop(1)), sys.argv.pop(1)
forks = []

def terminate():
    if len(forks) == fork:
        os.kill(command, signal.SIGTERM)

os.register_at_fork(**{moment: terminate})
os.register_at_fork(before=lambda: forks.append(1))  # those registered last are called first
runpy.run_module("tests.benchmarks", run_name="__main__")
"""
TERMINATED_AT_COLLECTION = """
import gc, os, runpy, signal

def terminate(*_):
    if os.getpid() == command and "held_back" not in signal.getsignal(signal.SIGTERM).__qualname__:
        gc.callbacks.remove(terminate)
        signal.raise_signal(signal.SIGTERM)

def forked():
    forks.append(1)
    if len(forks) == 2:  # the first client
        gc.callbacks.append(terminate)

command, forks = os.getpid(), []
os.register_at_fork(after_in_parent=forked)
gc.set_threshold(10)
runpy.run_module("tests.benchmarks", run_name="__main__")
"""
BODIES = [b"first", b"second\r\nline", b"x" * 1_000_000]


def of_directory(home):
    """Returns the processes that have to do with this directory: by their place, arguments or environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # one that has ended
            words = [(process / name).read_bytes() for name in ("cmdline", "environ")]
            if any(str(home).encode() in each for each in (*words, str((process / "cwd").readlink()).encode())):
                found.append(words[0])
    return found


@pytest.fixture
def home():
    """Makes a directory whose path leaves room for sockets, and through which another user may pass."""
    made = Path(tempfile.mkdtemp(prefix="trigmon-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def ours(home):
    peer = Trigmon(home)
    yield peer
    peer.end()


@pytest.mark.parametrize("make", [make for make in PEERS if not make.why_absent()], ids=lambda make: make.name)
def test_a_found_peer_returns_what_was_put_and_leaves_nothing(make, home):
    away = {}
    with running(home, [make.name], away) as peers:
        assert away == {}
        assert set(peers) == {Trigmon.name, make.name}
        assert of_directory(home)
        peer = peers[make.name]
        before = peer.cpu_seconds()
        client, units = peer.connect(), peer.connect(UNITS)
        for body in BODIES * 2:
            client.put(body)
        assert [client.get() for _ in BODIES] == BODIES
        assert [client.confirmed_get() for _ in BODIES] == BODIES
        units.put_unit([b"%d" % number for number in range(UNIT)])
        assert [units.get() for _ in range(3)] == [b"0", b"1", b"2"]
        client.put(b"it stays when the other is emptied")
        units.close()
        peer.empty(UNITS)
        units = peer.connect(UNITS)
        units.put(b"behind all that was removed")
        assert units.get() == b"behind all that was removed"
        assert client.get() == b"it stays when the other is emptied"
        client.close()
        units.close()
        spent = peer.cpu_seconds()
        assert (before is None and spent is None) or spent >= before
    assert of_directory(home) == []


def test_the_command_prints_a_row_a_peer_with_ratios_and_names_each_that_is_absent(home):
    argv = ["--peers", "--rounds", "2", "--seconds", "0.05", "--clients", "2", "--depths", "20"]
    argv += ["--operations", "put,get,confirmed_get,unit", "--json", str(home / "figures.json")]
    argv += ["--only", "beanstalkd,Redis,PostgreSQL,huey", "--directory", str(home)]
    argv += ["--picture", str(home / "rates.svg")]
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", *argv], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    away = absent(["beanstalkd", "Redis", "PostgreSQL", "huey"])
    for name, why in away.items():
        assert f"absent: {name}: {why}" in done.stdout
    here = [name for name in ("trigmon", "beanstalkd", "Redis", "PostgreSQL", "huey") if name not in away]
    for name in here:
        assert done.stdout.count(f"\n  {name}  ") == 4, done.stdout
    assert done.stdout.count(" x  ") == 4 * (len(here) - 1)
    assert "rates.svg is" in done.stdout
    figures = json.loads((home / "figures.json").read_text())
    assert figures["absent"] == away
    assert {(row["operation"], row["depth"], row["peer"]) for row in figures["rows"]} == {
        (operation, depth, name)
        for operation in ("put", "get", "confirmed_get", "unit")
        for depth in (20,)
        for name in here
    }
    assert all(len(row["rates"]) == 2 for row in figures["rows"])
    assert all(row["cpu_us"][0] >= 0 for row in figures["rows"] if row["peer"] != "huey")
    assert sorted(path.name for path in home.iterdir() if path.name != "rates.svg") == ["figures.json"]


BY_SPARK = ("--spark-peers", "--year")
"""Commands that take minutes, however little they measure: the slow tests of test_benchmarks.py play them."""


def documented():
    """Returns the arguments of each command line of the page."""
    lines = PAGE.read_text().splitlines()
    found = [line.removeprefix(COMMAND).split() for line in lines if line.startswith(COMMAND)]
    assert len(found) == sum(line.startswith("python") for line in lines)
    return found


FIRST, *OTHERS = [each for each in documented() if each[0] not in BY_SPARK]


@pytest.mark.parametrize(
    "arguments", [FIRST, *(pytest.param(each, marks=pytest.mark.slow) for each in OTHERS)], ids=" ".join
)
def test_a_command_of_the_documentation_does_what_it_is_for(arguments, home):
    # Its own values would measure for minutes; of an option that comes twice the last counts.
    small = ["--quick", "--seconds", "0.2", "--only", "trigmon", "--directory", str(home), "--depths", "0,10"]
    small += ["--clients", "1,2", "--sizes", "10,1000000"] if "--sizes" in arguments else ["--clients", "1,2"]
    argv = [sys.executable, "-m", "tests.benchmarks", *arguments, *small]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, cwd=home, env=env)
    assert done.returncode == 0, done.stderr
    assert ("units of 100 messages of 1,000,000 B" in done.stdout) is ("--sizes" in arguments)
    words = {"--console": ["16 clients"], "--starts": ["a program starts"]}.get(arguments[0], ["1 client", "2 clients"])
    assert all(word in done.stdout for word in words)
    assert all((home / word).exists() for word in arguments if word.endswith(".json"))


def test_a_server_that_cannot_sync_before_it_answers_is_absent_for_that_reason(tmp_path):
    old = tmp_path / "nats-server"
    old.write_text("#!/bin/sh\necho nats-server: v2.9.10\n")
    old.chmod(0o755)
    ask = "from tests.benchmarks.peers.on_nats import Nats; print(Nats.why_absent())"
    env = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, env=env, check=True)
    assert done.stdout == "nats-server 2.9.10 knows no sync_interval: always, 2.10 does\n"


def test_a_server_that_does_not_start_is_absent_with_what_it_printed(tmp_path):
    broken = tmp_path / "beanstalkd"
    broken.write_text("#!/bin/sh\necho this disk is upside down\nexit 1\n")
    broken.chmod(0o755)
    argv = ["--peers", "--rounds", "1", "--seconds", "0.01", "--clients", "1", "--only", "beanstalkd"]
    env = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", *argv], capture_output=True, text=True, timeout=60, env=env
    )
    assert done.returncode == 0, done.stderr
    assert "absent: beanstalkd: it is here, but does not start: " in done.stdout
    assert "this disk is upside down" in done.stdout


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=lambda it: it.name)
def test_servers_end_with_a_command_that_is_ended(number, home):
    argv = [sys.executable, "-m", "tests.benchmarks", "--peers", "--seconds", "60", "--clients", "1"]
    argv += ["--directory", str(home), "--only", "beanstalkd,Redis,PostgreSQL"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as command:
        assert command.stdout is not None
        assert "cores" in command.stdout.readline()  # all of them run
        command.send_signal(number)
    until(lambda: not of_directory(home))
    if number != signal.SIGKILL:
        assert list(home.iterdir()) == []


@pytest.mark.parametrize("moment", ["before", "after_in_child", "after_in_parent"])
@pytest.mark.parametrize("fork", [1, 3], ids=["of a server", "of a client"])
def test_a_command_that_is_terminated_in_the_midst_of_a_fork_ends(fork, moment, home):
    argv = [sys.executable, "-c", TERMINATED_AT_FORK, str(fork), moment, "--peers", "--clients", "4"]
    argv += ["--seconds", "10000", "--directory", str(home), "--only", "trigmon"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600)
    assert done.returncode == 128 + signal.SIGTERM, done.stderr
    until(lambda: not of_directory(home))
    assert list(home.iterdir()) == []


def test_a_command_that_is_terminated_where_python_drops_exceptions_ends(home):
    argv = [sys.executable, "-c", TERMINATED_AT_COLLECTION, "--peers", "--clients", "4"]
    argv += ["--seconds", "10000", "--directory", str(home), "--only", "trigmon"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600)
    assert "Exception ignored in: <function terminate" in done.stderr
    assert done.returncode == 128 + signal.SIGTERM, done.stderr
    until(lambda: not of_directory(home))
    assert list(home.iterdir()) == []


def test_the_cpu_of_a_server_is_that_of_all_its_processes_ended_ones_included(home):
    spend = "import time\nwhile time.process_time() < 0.3: pass\nprint(1, flush=True)"
    tree = "import subprocess, sys, time; run = [sys.executable, '-c', sys.argv[1]]\n"
    tree += "subprocess.run(run); subprocess.Popen(run + ['stay']); time.sleep(600)"
    lasting = spend + "\nimport sys\nif len(sys.argv) > 1: sys.stdin.read()"
    argv = [sys.executable, "-c", tree, lasting]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert [server.stdout.readline() for _ in range(2)] == ["1\n"] * 2
        spent = cpu_seconds_of_all(server.pid)
        server.kill()
    assert spent >= 0.5  # what is counted in ticks is rounded down


def test_gets_take_exactly_what_was_put_whatever_the_number_of_clients(ours):
    put = turn(ours, "put", 3, b"x", 0.1)
    assert put.messages == len(put.waits_s) > 0
    assert put.took_s >= 0.1
    got = turn(ours, "get", 7, b"x", 60, most=put.messages)
    assert got.messages == put.messages
    with pytest.raises(RuntimeError, match="get on trigmon failed in a client"):
        turn(ours, "get", 2, b"x", 60, most=2)


def test_a_queue_is_as_deep_behind_a_cell_as_the_cell_says(ours):
    comparison = Comparison({"trigmon": ours}, 0.05, 1, ["get"])
    *_, last = comparison.measured([Cell(2, 10, 0), Cell(2, 10, 30)])
    there = comparison.there["trigmon"]
    assert (there > 30) <= bool(last.left)  # gets that a busy machine was too slow for are named
    assert there >= 30
    client = ours.connect()
    assert [client.get() for _ in range(there)] == [b"x" * 10] * there
    client.put(b"the last")
    assert client.get() == b"the last"
    client.close()
    ours.empty(QUEUE)


def test_cells_are_all_combinations_but_those_without_room():
    measured, left_out = cells([1, 16], [100, 1_000_000], [1_000_000, 0])
    assert measured == [
        *(Cell(clients, 100, depth) for depth in (0, 1_000_000) for clients in (1, 16)),
        Cell(1, 1_000_000, 0),
        Cell(16, 1_000_000, 0),
    ]
    assert left_out == [Cell(1, 1_000_000, 1_000_000), Cell(16, 1_000_000, 1_000_000)]


def made_up():
    """Returns figures in which we are twice as fast in one round, half as fast in the next, equal in the last."""
    rounds = ((200, 0.02), (50, 0.0), (100, 0.01))
    mine = [Turn(messages, 1.0, cpu_s, [0.001] * 100) for messages, cpu_s in rounds]
    theirs = [Turn(100, 1.0, None, [0.002] * 98 + [0.5, 0.6])] * 3
    return Figures(Cell(1, 10, 0), {"put": {"trigmon": mine, "other": theirs}}, {"other": 7}, {"other": "it ended"})


def test_ratios_are_those_of_each_round_and_calls_are_counted_over_all():
    figures = made_up()
    by_peer = figures.turns["put"]
    assert ratios(by_peer["trigmon"], by_peer["other"]) == [2.0, 0.5, 1.0]
    assert statistics.median(each.rate for each in by_peer["trigmon"]) == 100
    ours, other = (line.split() for line in table(figures).splitlines()[2:4])
    # CPU: 0.03 s for 350 messages.
    assert ours == ["trigmon", "100", "50", "to", "200", "85.7", "1,000", "1,000"]
    assert other == ["other", "100", "100", "to", "100", "1.00", "x", "0.50", "to", "2.00", "-", "2,000", "600,000"]
    assert "other could not keep up: up to 7 more on its queue" in table(figures)
    assert "other fell out: it ended" in table(figures)


def test_others_are_shown_without_ratios_where_we_fell_out():
    figures = made_up()
    del figures.turns["put"]["trigmon"]
    (other,) = (line.split() for line in table(figures).splitlines() if line.startswith("  other   "))
    assert other == ["other", "100", "100", "to", "100", "-", "2,000", "600,000"]


def test_a_picture_is_drawn_where_it_can_be_and_else_the_reason_is_given(tmp_path):
    path = tmp_path / "rates.svg"
    printed = picture([made_up()], path)
    if path.exists():
        assert printed == f"{path} is drawn"
        assert path.read_text().startswith("<?xml")
    else:
        assert printed == f"{path} is not drawn: matplotlib is not importable"
