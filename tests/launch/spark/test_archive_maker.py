"""The process that makes an archive of classes, and its Java machine, end with their monitor, however that ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.daemons import define
from tests.launch.spark.homes import java_script, pips
from tests.launch.spark.test_cold import at_work
from tests.processes import is_there, parent_of
from tests.waiting import until
from trigmon.keeper import run_directory

MAKES_FOR_LONG = f"""#!{sys.executable}
import sys, time
if any(word.startswith("-XX:ArchiveClassesAtExit") for word in sys.argv):
    time.sleep(600)
"""
"""A Java that runs a job in no time, and needs long for an archive."""
MONITOR = """
import sys, threading, time
from pathlib import Path
from tests.launch.spark.test_cold import ColdMachine

it = ColdMachine(Path(sys.argv[1]))
it.plan()

def reap():
    it.launcher.tend()
    print(it.launcher.maker.pid, flush=True)
    time.sleep(600)

threading.Thread(target=reap, daemon=True).start()
time.sleep(600)
"""
"""A process that has the real maker started as a monitor does: by a thread that stays."""


def makers(directory):
    """The processes that make an archive below this directory: the maker and its Java machine."""
    module = b"trigmon.launch.spark.cold.make_archive"
    found = [pid for pid in run_directory.all_processes() if {module, os.fsencode(directory)} <= {*words(pid)}]
    return found + at_work(directory)


def words(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGKILL])
def test_the_real_maker_and_its_java_end_with_the_process_that_started_them(tmp_path, by):
    process = subprocess.Popen([sys.executable, "-c", MONITOR, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    maker = int(process.stdout.readline())
    (java,) = until(lambda: at_work(tmp_path), 120)
    process.send_signal(by)
    process.communicate()
    until(lambda: not is_there(maker) and not is_there(java), 60)
    assert not list((tmp_path / "java").glob("*.jsa"))


def test_the_java_ends_with_a_maker_that_is_killed(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", MONITOR, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        maker = int(process.stdout.readline())
        (java,) = until(lambda: at_work(tmp_path), 120)
        os.kill(maker, signal.SIGKILL)
        until(lambda: not is_there(java), 60)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("victim", "by"), [("daemon", signal.SIGTERM), ("daemon", signal.SIGKILL), ("monitor", signal.SIGKILL)]
)
def test_nothing_makes_an_archive_any_more_when_trigmon_run_or_its_monitor_has_ended(daemon, tmp_path, victim, by):
    home, java = pips(tmp_path / "spark"), java_script(tmp_path / "jdk", MAKES_FOR_LONG)
    (tmp_path / "job.py").touch()
    one = daemon(with_monitor=True, settings={"monitor.class_archives": "true"})
    with one.connect() as qm:
        attributes = {"spark_master": "local[1]", "spark_environment": f"SPARK_HOME={home} JAVA_HOME={java}"}
        define(qm, "JOB", "PROCESS", appl_type="spark", appl_id=str(tmp_path / "job.py"), retry=0, **attributes)
        initq = "SYSTEM.DEFAULT.INITIATION.QUEUE"
        define(qm, "Q", trigger_control="on", trigger_type="every", process_name="JOB", initiation_q_name=initq)
        qm.put("Q", b"one")
        directory = one.data / "java"
        started = until(lambda: it if len(it := makers(directory)) == 2 else None, 120)
    if victim == "daemon":
        one.process.send_signal(by)
        one.process.wait()
    else:
        os.kill(parent_of(started[0]), by)
    until(lambda: not any(map(is_there, started)), 60)
