"""Every call by programs that a real monitor started: of the monitor's own user, and of a user of RUNAS."""

from __future__ import annotations

import functools
import os
import pickle

import pytest

from tests.attacks.stage import TARGET, Stage
from tests.daemons import define
from tests.server.test_call_rights import FIELDS, NEEDED, cells, expected, give
from tests.waiting import until
from trigmon.mq.calls import Put, Reserve
from trigmon.mq.replies import Reserved
from trigmon.mq.rights import read_rights
from trigmon.wire import codec

PROGRAM = """
import os, pickle, sys, trigmon
from trigmon.wire import codec
calls, answer = sys.argv[1:3]
refused = set()
with open(calls, "rb") as file:
    rows = pickle.load(file)
for name, frame in rows:
    qm = None
    try:
        qm = trigmon.connect(application="cells", reconnect_s=0)  # its run is in the environment
        qm.call(codec.decode_request(frame[4:])[1])
    except trigmon.NotAuthorized:
        refused.add(name)
    except trigmon.MQError as error:
        assert not isinstance(error, (trigmon.ConnectionBroken, trigmon.MaxConnsLimitReached)), name
    finally:
        qm and qm.drop()
with open(answer + ".new", "wb") as file:
    pickle.dump((os.environ["TRIGMON_RUN"], os.getuid(), refused), file)
os.rename(answer + ".new", answer)
"""


@pytest.fixture
def stage():
    if os.geteuid() != 0:
        pytest.skip("only root can become other users")
    one = Stage()
    (one.home / "bin" / "cells.py").write_text(PROGRAM)
    for name in ("Q", "EMPTY"):
        define(one.qm, name)
    one.qm.call(Put(q_name="Q", data=b"reserved"))
    call = Reserve(handle=one.qm.open("Q", "input_shared").handle, consumer="JOB")
    FIELDS["read_reserved"] = {"reservation": one.qm.ask(call, Reserved).reservation, "count": 1}
    yield one
    one.end()


def played(stage, name, run_as=""):
    """The names of the rows that are refused to a program of this process, and the user's number."""
    answer = stage.home / "open" / name
    frames = [(row, codec.encode_request(1, call)) for row, call in cells()]
    (stage.home / "bin" / name).write_bytes(pickle.dumps(frames))
    environment = f"PYTHONPATH={stage.code.variables({}).get('PYTHONPATH', '')} PYTHONDONTWRITEBYTECODE=1"
    program = f"/usr/bin/env {environment} {stage.code.python} {stage.home}/bin/cells.py"
    stage.process(name, f"{program} {stage.home}/bin/{name} {answer}", **({"run_as": run_as} if run_as else {}))
    stage.qm.put(name, b"go")
    (run,) = until(lambda: [row for state in ("exited", "failed") for row in stage.runs_of(name, state)])
    assert answer.exists(), (run["why"], (stage.home / "m" / "runs" / run["run_id"] / "stderr").read_text())
    run_id, uid, refused = pickle.loads(answer.read_bytes())
    assert run_id == run["run_id"]
    return refused, uid


def test_a_program_has_what_its_user_has_whatever_its_run(stage):
    everywhere = read_rights(["put", "get", "browse", "inquire"])
    of_monitor = expected(everywhere, monitor=True)
    play = functools.partial(played, stage)
    assert play("OWN.ONE") == (of_monitor, stage.monitors.uid)
    outside = set(NEEDED)
    assert play("AS.OUTSIDE", TARGET) == (outside, 65534)  # no member of the socket's group
    stage.daemon.socket.chmod(0o666)
    for directory in (stage.daemon.socket.parent, stage.daemon.socket.parent.parent):
        directory.chmod(0o755)
    assert play("AS.ONE", TARGET) == (expected(everywhere), 65534)
    give(stage.qm, "user", TARGET, ["get", "pause"])
    assert play("OWN.TWO") == (of_monitor, stage.monitors.uid)
    assert play("AS.TWO", TARGET) == (expected(read_rights("get, pause")), 65534)
