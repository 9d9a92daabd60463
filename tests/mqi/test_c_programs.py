"""Programs as they are on the C library: one in C that is killed, IBM's Python package, and how fast connecting is."""

from __future__ import annotations

import importlib.util
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.daemons import define
from trigmon.mqi import library

HERE = Path(__file__).parent
KILLS, MANY_KILLS = 10, 200
IBMMQ = """
import sys
import ibmmq as mq
seen = []
qmgr = mq.connect("QM1")
queue = mq.Queue(qmgr, sys.argv[1], mq.CMQC.MQOO_INPUT_SHARED | mq.CMQC.MQOO_OUTPUT | mq.CMQC.MQOO_INQUIRE)
queue.put("grün")
assert queue.inquire(mq.CMQC.MQIA_CURRENT_Q_DEPTH) == 1
assert queue.get() == "grün".encode()
queue.put(b"x" * 100_000, mq.MD(), mq.PMO(Options=mq.CMQC.MQPMO_SYNCPOINT))
qmgr.commit()
assert len(queue.get()) == 100_000
handle = mq.MessageHandle(qmgr)
handle.properties.set("colour", "red")
queue.put(b"with", mq.MD(), mq.PMO(Version=3, OriginalMsgHandle=handle.msg_handle))
taken = mq.MessageHandle(qmgr)
gmo = mq.GMO(Version=4, Options=mq.CMQC.MQGMO_PROPERTIES_IN_HANDLE, MsgHandle=taken.msg_handle)
assert queue.get(None, mq.MD(), gmo) == b"with"
assert taken.properties.get("colour") == "red"
status = qmgr.stat(mq.CMQC.MQSTAT_TYPE_ASYNC_ERROR)
assert status.PutFailureCount == 0
queue.cb(operation=mq.CMQC.MQOP_REGISTER, cbd=mq.CBD(CallbackFunction=lambda **named: seen.append(named["msg"])))
qmgr.ctl(mq.CMQC.MQOP_START, mq.CTLO())
qmgr.ctl(mq.CMQC.MQOP_STOP, mq.CTLO())
try:
    queue.get()
except mq.MQMIError as error:
    assert error.reason == mq.CMQC.MQRC_NO_MSG_AVAILABLE
queue.close()
qmgr.disconnect()
print("done")
"""


@pytest.fixture(scope="module")
def crash(library_directory, tmp_path_factory):
    """The C program that is killed, compiled against the library's header."""
    program = tmp_path_factory.mktemp("c") / "crash"
    flags = ["-O1", "-Wall", "-Werror", f"-I{library.SOURCES}", f"-L{library_directory}"]
    subprocess.run([library.compiler(), *flags, "-o", program, HERE / "crash.c", "-lmqm_r"], check=True)
    return program


def environment(shared_daemon, directory):
    return shared_daemon.env | {"LD_LIBRARY_PATH": str(directory)}


def killed_again_and_again(crash, env, qm, name, kills, seed):
    """Returns what is on both queues after a program that moves messages was killed so often."""
    chance = random.Random(seed)
    define(qm, f"{name}.FROM", max_q_depth=100_000)
    define(qm, f"{name}.TO", max_q_depth=100_000)
    bodies = [b"%d" % number for number in range(40 * kills)]
    with qm.open(f"{name}.FROM", "output") as queue:
        queue.put_many(bodies)
    for _ in range(kills):
        with subprocess.Popen([crash, f"{name}.FROM", f"{name}.TO"], env=env, stdout=subprocess.PIPE) as program:
            dots = chance.randrange(1, 30)
            assert len(program.stdout.read(dots)) == dots, "it ended by itself"
            program.kill()
    done = subprocess.run([crash, f"{name}.FROM", f"{name}.TO"], env=env, stdout=subprocess.PIPE, timeout=120)
    assert done.returncode == 0
    with qm.open(f"{name}.FROM", "input_shared") as left, qm.open(f"{name}.TO", "input_shared") as moved:
        return bodies, [m.data for m in left.drain()], [m.data for m in moved.drain(1000)]


def test_a_c_program_killed_between_get_and_commit_loses_and_doubles_nothing(
    crash, shared_daemon, qm, library_directory
):
    env = environment(shared_daemon, library_directory)
    bodies, left, moved = killed_again_and_again(crash, env, qm, "CRASH", KILLS, seed=1)
    assert left == []
    assert sorted(moved) == sorted(bodies)


@pytest.mark.slow
def test_it_is_so_with_two_hundred_kills(crash, shared_daemon, qm, library_directory):
    env = environment(shared_daemon, library_directory)
    bodies, left, moved = killed_again_and_again(crash, env, qm, "CRASH200", MANY_KILLS, seed=time.time_ns())
    assert left == []
    assert sorted(moved) == sorted(bodies)


@pytest.mark.skipif(importlib.util.find_spec("ibmmq") is None, reason="IBM's package ibmmq is not installed")
def test_ibm_s_python_package_runs_on_the_library_as_it_is(shared_daemon, q_name, library_directory):
    env = environment(shared_daemon, library_directory) | {"PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-c", IBMMQ, q_name], env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr


def test_a_wheel_s_own_library_comes_before_one_that_was_built(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(library, "INCLUDED", tmp_path / "lib")
    assert library.find() is None
    for place in (library.built_directory(), library.INCLUDED):
        place.mkdir(parents=True)
        for name in library.NAMES:
            (place / name).touch()
        assert library.find() == place


def test_another_library_of_the_name_is_seen_and_ours_is_not(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    real, ours = tmp_path / "real", library.built_directory()
    for place in (real, ours):
        place.mkdir(parents=True)
        (place / "libmqic_r.so").touch()
    monkeypatch.setenv("LD_LIBRARY_PATH", os.pathsep.join([str(ours), str(real)]))
    assert library.others() == [real / "libmqic_r.so"]
