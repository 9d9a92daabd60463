"""IBM's package ``ibmmq`` from the index, unchanged but for its C module, in programs of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.waiting import until
from trigmon.mq.calls import Runs

NEEDS_IBMMQ = pytest.mark.skipif(find_spec("ibmmq") is None, reason="ibmmq has no wheel for this machine")
PUT_AND_GET = """\
import ibmmq as mq

qmgr = mq.connect("QM1", "DEV.APP.SVRCONN", "localhost(1414)", "app", "password")
queue = mq.Queue(qmgr, "SYSTEM.DEFAULT.LOCAL.QUEUE", mq.CMQC.MQOO_OUTPUT)
pmo = mq.PMO(Options=mq.CMQC.MQPMO_SYNCPOINT)
md = mq.MD(Format=mq.CMQC.MQFMT_STRING, CodedCharSetId=500)
queue.put("Grüße".encode("cp500"), md, pmo)
qmgr.commit()
gmo = mq.GMO(Options=mq.CMQC.MQGMO_CONVERT | mq.CMQC.MQGMO_WAIT, WaitInterval=1000)
got = mq.MD()
print(mq.Queue(qmgr, "SYSTEM.DEFAULT.LOCAL.QUEUE").get(None, got, gmo).decode(), got.CodedCharSetId)
print(qmgr.inquire(mq.CMQC.MQCA_Q_MGR_NAME).decode().strip(), mq.get_versions()["module"])
try:
    mq.Queue(qmgr, "NOBODY").get()
except mq.MQMIError as error:
    print(error.reason == mq.CMQC.MQRC_UNKNOWN_OBJECT_NAME)
qmgr.disconnect()
"""
TRIGGERED = """\
import sys

import ibmmq as mq

tmc = mq.TMC2().unpack(sys.argv[1].encode())
qmgr = mq.QueueManager(None)
qmgr.connect_with_options(tmc["QMgrName"].strip(b" \\0"), cno=mq.CNO())
queue = mq.Queue(qmgr, tmc["QName"].strip(b" \\0").decode(), mq.CMQC.MQOO_INPUT_SHARED)
gmo = mq.GMO(Options=mq.CMQC.MQGMO_SYNCPOINT)
try:
    while True:
        queue.get(None, mq.MD(), gmo)
except mq.MQMIError as error:
    assert error.reason == mq.CMQC.MQRC_NO_MSG_AVAILABLE, error
qmgr.commit()
queue.close()
qmgr.disconnect()
"""
DEFINITIONS = """\
- process: TAKES
  appl_id: {command}
  tmc_argument: yes
- qlocal: TAKES.IN
  trigger_control: on
  trigger_type: depth
  trigger_depth: 3
  process_name: TAKES
  initiation_q_name: SYSTEM.DEFAULT.INITIATION.QUEUE
"""


@NEEDS_IBMMQ
def test_a_program_of_ibmmq_runs_unchanged(daemon, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PUT_AND_GET)
    done = subprocess.run(
        [sys.executable, "-m", "trigmon.mqi", str(program)], env=daemon().env, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "Grüße 1208\nQM1 2.1.2\nTrue\n"), done.stderr


@NEEDS_IBMMQ
def test_a_triggered_program_of_ibmmq_reads_its_mqtmc2_and_its_run_counts_its_messages(daemon, tmp_path):
    manager = daemon(with_monitor=True)
    program = tmp_path / "takes.py"
    program.write_text(TRIGGERED)
    file = tmp_path / "takes.yaml"
    file.write_text(DEFINITIONS.format(command=json.dumps(f"{sys.executable} -m trigmon.mqi {program}")))
    done = manager.trigmon("apply", str(file))
    assert done.returncode == 0, done.stderr
    with manager.connect() as qm:
        qm.put_many("TAKES.IN", [b"one", b"two", b"three"])
        run = until(lambda: [run for run in qm.call(Runs()).rows if run["state"] == "exited"], 120)[0]
    assert (run["exit_status"], run["taken"], run["committed"]) == (0, 3, 3), run


def test_a_program_has_its_own_arguments_and_name(tmp_path):
    program = tmp_path / "says.py"
    program.write_text("import sys\nprint(__name__, sys.argv[1:], sys.modules['ibmmq.ibmmqc'].__name__)\n")
    done = subprocess.run(
        [sys.executable, "-m", "trigmon.mqi", str(program), "a", "-b"], capture_output=True, text=True
    )
    assert done.stdout == "__main__ ['a', '-b'] trigmon.mqi.ibmmqc\n", done.stderr
    done = subprocess.run([sys.executable, "-m", "trigmon.mqi"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "python -m trigmon.mqi PROGRAM" in done.stderr


def test_a_program_pays_for_no_more_than_the_client(tmp_path):
    program = tmp_path / "imports.py"
    program.write_text(
        "import sys\nprint({'pydantic', 'structlog', 'click', 'asyncio', 'yaml', 'apsw'} & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-m", "trigmon.mqi", str(program)], capture_output=True, text=True)
    assert done.stdout == "set()\n", done.stderr
