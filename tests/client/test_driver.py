from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.waiting import until
from trigmon.keeper import run_directory

PROGRAM = "import sys, time, trigmon; trigmon.connect(sys.argv[1]); print('connected', flush=True); time.sleep(600)"
DRIVER = f"""
import subprocess, sys
program = subprocess.Popen([sys.executable, "-c", {PROGRAM!r}, sys.argv[1]], stdout=subprocess.PIPE)
print(program.stdout.readline() and program.pid, flush=True)
program.wait()
"""


@pytest.mark.parametrize(
    ("variables", "lives"),
    [
        ({"PYSPARK_GATEWAY_PORT": "1", "TRIGMON_RUN": ""}, False),
        ({"TRIGMON_RUN": ""}, True),
        ({"PYSPARK_GATEWAY_PORT": "1"}, True),
    ],
)
def test_a_triggered_pyspark_program_ends_with_its_driver_and_no_other_with_its_parent(shared_daemon, variables, lives):
    ours = {name: value for name, value in shared_daemon.env.items() if name != "TRIGMON_RUN"}
    argv = [sys.executable, "-c", DRIVER, shared_daemon.address]
    with subprocess.Popen(argv, env=ours | variables, stdout=subprocess.PIPE, text=True) as driver:
        program = int(driver.stdout.readline())
        driver.kill()
    try:
        if lives:
            time.sleep(1.5)
            assert run_directory.start_ticks(program)
        else:
            until(lambda: not run_directory.start_ticks(program))
    finally:
        if lives:
            os.kill(program, signal.SIGKILL)
