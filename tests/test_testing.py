"""trigmon.testing: the example in its text runs, and its queue manager is a queue manager."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

import trigmon
from tests.project.test_examples import ROOT
from tests.project.test_examples import blocks as page_blocks
from tests.waiting import until
from trigmon import testing
from trigmon.mq.enums import UnitOutcome
from trigmon.testing import InMemory, mq  # noqa: F401 - a fixture

INITQ = testing.INITIATION_Q
TUTORIAL = ROOT / "docs" / "tutorial" / "testing-your-triggers.md"


@pytest.fixture
def armed(mq):  # noqa: F811 - pytest's way to ask for a fixture
    mq.define("P", "PROCESS", appl_id="program")
    mq.define("Q", trigger_control="on", process_name="P", INITQ=INITQ, default_persistence="persistent")
    return mq


def names(in_memory):
    return [trigger.q_name for trigger in in_memory.triggers()]


def run_pytest(directory, **files):
    for name, text in files.items():
        (directory / f"{name}.py").write_text(text)
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(directory)]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(argv, cwd=directory, env=env, capture_output=True, text=True, timeout=600, check=False)


def blocks(text):
    """Yields the blocks of code in a text, each after a line that ends in two colons."""
    found, inside = [], False
    for line in text.splitlines():
        if inside and line and not line.startswith("    "):
            inside = False
        if inside:
            found[-1].append(line)
        if line.endswith("::"):
            inside = True
            found.append([])
    return [textwrap.dedent("\n".join(block)).strip() + "\n" for block in found]


def test_the_worked_example_runs_as_it_stands(tmp_path):
    conftest, example, *_ = blocks(testing.__doc__)
    done = run_pytest(tmp_path, conftest=conftest, test_example=example)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_the_worked_examples_of_a_spark_job_run_as_they_stand_here_and_in_the_tutorial(tmp_path):
    *_, conftest, example = blocks(testing.__doc__)
    files = {Path(block.file).stem: block.text for block in page_blocks(TUTORIAL)}
    examples = {name: files[name] for name in ("test_bad_order", "test_poison")}
    done = run_pytest(tmp_path, conftest=conftest, test_job=example, **examples)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


def test_it_may_be_named_as_a_plugin_too(tmp_path):
    test = "def test_it(mq):\n    mq.define('Q')\n    assert mq.messages('Q') == []\n"
    done = run_pytest(tmp_path, conftest="pytest_plugins = ['trigmon.testing']\n", test_it=test)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_nobody_who_does_not_import_it_gets_the_fixture(tmp_path):
    done = run_pytest(tmp_path, test_it="def test_it(mq):\n    pass\n")
    assert "fixture 'mq' not found" in done.stdout


def test_it_needs_no_pytest_but_for_the_fixture():
    program = (
        "import sys; from trigmon.testing import InMemory\n"
        "with InMemory() as mq: mq.define('Q'); mq.put('Q', 'one'); print(mq.get('Q').text, 'pytest' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "one False\n"


def test_a_trigger_is_reported_once(armed):
    armed.put("Q", "one")
    (trigger,) = armed.triggers()
    assert (trigger.q_name, trigger.process_name, trigger.appl_id) == ("Q", "P", "program")
    assert armed.triggers() == []


def test_the_monitor_takes_what_it_reads(armed):
    armed.alter("Q", trigger_type="every")
    for _ in range(3):
        armed.put("Q", "m")
    assert names(armed) == ["Q"] * 3
    assert armed.messages(INITQ) == []


def test_without_a_monitor_nothing_is_triggered_until_one_comes():
    with InMemory(monitor="") as in_memory:
        in_memory.define("P", "PROCESS")
        in_memory.define("Q", trigger_control="on", process_name="P", initiation_q_name=INITQ)
        in_memory.put("Q", "one")
        assert in_memory.triggers() == []
        assert in_memory.explain("Q").fails == ["8"]
        in_memory.monitor(INITQ)
        assert names(in_memory) == ["Q"]


def test_a_second_initiation_queue_has_its_own_monitor(armed):
    armed.define("OTHER.INITQ")
    armed.mqsc("DEFINE QLOCAL(R) LIKE(Q) INITQ(OTHER.INITQ)")
    armed.put("R", "one")
    assert armed.triggers() == []
    armed.monitor("OTHER.INITQ")
    assert names(armed) == ["R"]
    armed.restart()
    assert names(armed) == ["R"]


def test_a_monitor_whose_queue_is_closed_for_gets_does_no_harm(armed):
    armed.alter(INITQ, inhibit_get="inhibited")
    armed.put("Q", "one")
    assert armed.explain("Q").fails == ["7"]
    assert armed.triggers() == []


def test_time_is_the_tests(armed):
    armed.alter("", "QMGR", trigger_interval=1000)
    armed.put("Q", "one")
    armed.put("Q", "two")
    assert names(armed) == ["Q"]
    armed.advance(1000)
    armed.put("Q", "three")
    assert names(armed) == ["Q"]


def test_time_that_passes_may_trigger_by_itself(armed):
    armed.mqsc("ALTER QLOCAL(Q) TRIGTYPE(DEPTH) TRIGDPTH(100) MAXWAIT(300)")
    armed.put("Q", "one")
    armed.advance(299_000)
    assert armed.triggers() == []
    armed.advance(2_000)
    assert names(armed) == ["Q"]


def test_a_message_expires_when_its_time_has_come(armed):
    armed.put("Q", "short", expiry_tenths=10)
    assert len(armed.messages("Q")) == 1
    armed.advance(1000)
    assert armed.messages("Q") == []


def test_a_wait_moves_the_clock_and_takes_no_time(armed):
    with pytest.raises(trigmon.NoMsgAvailable):
        armed.get("Q", wait_interval_ms=3_600_000)
    armed.put("Q", "one")
    first = armed.messages("Q")[0].put_ms
    with pytest.raises(trigmon.NoMsgAvailable):
        armed.get("Q", wait_interval_ms=1000, match={"correl_id": b"other"})
    armed.put("Q", "two")
    assert armed.messages("Q")[1].put_ms == first + 1000


@pytest.mark.parametrize("many", [False, True])
def test_a_wait_without_end_is_refused_and_does_not_hang(armed, many):
    with armed.connect() as qm, qm.open("Q", "input_shared") as queue:
        with pytest.raises(trigmon.MQError, match="it waits without end"):
            list(queue.get_many(5, wait_interval_ms=-1)) if many else queue.get(wait_interval_ms=-1)
        qm.backout()


def test_units_of_work_are_the_connections_own(armed):
    armed.put("Q", "one", syncpoint=True)
    assert armed.messages("Q") != []  # its own
    with armed.connect(application="other") as other, other.open("Q", "browse") as queue:
        assert list(queue.browse()) == []
    armed.backout()
    assert armed.messages("Q") == []
    assert names(armed) == ["Q"]  # FIRST's trigger message comes on backout, too
    armed.put("Q", "two", syncpoint=True)
    armed.commit()
    assert [message.text for message in armed.messages("Q")] == ["two"]


def test_a_connection_left_by_an_exception_backs_out(armed):
    armed.put("Q", "one")
    with pytest.raises(ZeroDivisionError), armed.connect() as qm, qm.open("Q", "input_shared") as queue:
        queue.get(syncpoint=True)
        _ = 1 / 0
    (message,) = armed.messages("Q")
    assert message.backout_count == 1


def test_a_dropped_connection_is_a_lost_one(armed):
    armed.put("Q", "one")
    armed.triggers()
    qm = armed.connect()
    qm.open("Q", "input_shared").get(syncpoint=True)
    qm.drop()
    assert armed.messages("Q")[0].backout_count == 1
    assert names(armed) == ["Q"]
    assert armed.explain("Q", why_not=True).last[0].call == "lost_connection"


@pytest.mark.parametrize("end", ["restart", "crash"])
def test_connections_are_lost_and_what_is_persistent_stays(armed, end):
    qm = armed.connect()
    armed.put("Q", "kept")
    armed.put("Q", "volatile", persistence="not_persistent")
    qm.put("Q", "unfinished", syncpoint=True)
    unit = qm.unit
    armed.triggers()
    getattr(armed, end)()
    with pytest.raises(trigmon.ConnectionBroken):
        qm.put("Q", "more")
    qm.drop()
    assert [message.text for message in armed.messages("Q")] == ["kept"]
    assert names(armed) == ["Q"]  # the monitor came back, and a message waits
    with armed.connect() as again:
        assert again.outcome(unit, qm.client_id) in (UnitOutcome.BACKED_OUT, UnitOutcome.UNKNOWN)


def test_a_refusal_is_the_exception_of_its_reason(armed):
    armed.alter("Q", max_q_depth=1)
    armed.put("Q", "one")
    with pytest.raises(trigmon.QFull, match=r"Q: MAXDEPTH\(1\)"):
        armed.put("Q", "two")
    with pytest.raises(trigmon.UnknownObjectName):
        armed.put("NONE", "one")


def test_many_messages_travel_as_on_a_wire(armed):
    with armed.connect() as qm, qm.open("Q", "input_shared", "output") as queue:
        queue.put_many([str(n) for n in range(600)])
        assert [int(message.data) for message in queue.drain(batch=100)] == list(range(600))


def test_what_no_frame_can_hold_is_refused_as_by_a_daemon(armed):
    with pytest.raises(trigmon.MsgTooBigForQMgr):
        armed.put("Q", bytes(5_000_000))


def test_definition_files_are_applied(armed, tmp_path):
    file = tmp_path / "orders.yaml"
    file.write_text("- qlocal: ORDERS\n  max_q_depth: 7\n- qlocal: Q\n  trigger_type: every\n")
    armed.apply(file)
    armed.put("ORDERS", "one")
    armed.put("Q", "one")
    armed.put("Q", "two")
    assert names(armed) == ["Q", "Q"]


def test_mqsc_answers_and_a_command_that_fails_is_an_error(armed):
    assert "CURDEPTH(0)" in armed.mqsc("DISPLAY QLOCAL(Q) CURDEPTH")
    with pytest.raises(ValueError, match="AMQ8147E"):
        armed.mqsc("ALTER QLOCAL(NONE) MAXDEPTH(1)")


def test_two_are_strangers_to_each_other(armed):
    with InMemory("QM2") as other:
        other.define("Q")
        armed.put("Q", "here")
        assert other.messages("Q") == []
        assert other.connect().q_mgr_name == "QM2"


def test_a_program_that_connects_by_itself_is_given_this_one(armed, monkeypatch):
    monkeypatch.setattr(trigmon, "connect", armed.connect)
    with trigmon.connect("QM1", application="program") as qm:
        qm.put("Q", "one")
    look = armed.explain("Q", why_not=True).last[0]
    assert (look.happened, look.application) == ("put", "program")


# -- on a socket ----------------------------------------------------------------------------------------


def run_program(text, **environ):
    done = subprocess.run(
        [sys.executable, "-c", text], env=os.environ | environ, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


def test_another_process_puts_and_gets_as_on_a_daemon(armed):
    program = (
        "import trigmon\n"
        "with trigmon.connect(application='other') as qm, qm.open('Q', 'input_shared', 'output') as q:\n"
        "    q.put('two'); q.put('x' * 3_000_000); print(q.get().text, qm.q_mgr_name)\n"
        "    try: qm.open('NONE', 'output')\n"
        "    except trigmon.UnknownObjectName as error: print(error.about)\n"
    )
    armed.put("Q", "one")
    said = run_program(program, TRIGMON_QMGR=armed.serve())
    assert said.splitlines()[0] == "one QM1"
    assert "NONE" in said
    assert [len(message.data) for message in armed.messages("Q")] == [3, 3_000_000]
    assert "Q" in names(armed)


def test_a_process_that_ends_in_its_unit_backs_out(armed):
    armed.put("Q", "one")
    program = (
        "import os, trigmon\nqm = trigmon.connect(); qm.open('Q', 'input_shared').get(syncpoint=True); os._exit(0)\n"
    )
    run_program(program, TRIGMON_QMGR=armed.serve())
    until(lambda: [message.backout_count for message in armed.messages("Q")] == [1])


def test_many_threads_and_the_test_itself_use_it_at_once(armed):
    address = armed.serve()

    def put():
        with trigmon.connect(address) as qm:
            for _ in range(50):
                qm.put("Q", "m")

    threads = [threading.Thread(target=put) for _ in range(8)]
    for one in threads:
        one.start()
    for _ in range(50):
        armed.put("Q", "m")
    for one in threads:
        one.join()
    assert len(armed.messages("Q")) == 9 * 50


@pytest.mark.parametrize("end", ["restart", "crash"])
def test_a_restart_breaks_the_connections_on_the_socket_and_serves_new_ones(armed, end):
    qm = trigmon.connect(armed.serve(), reconnect_s=0)
    qm.put("Q", "one", persistence="persistent")
    getattr(armed, end)()
    with pytest.raises(trigmon.ConnectionBroken):
        qm.put("Q", "two")
    with trigmon.connect(armed.serve()) as again, again.open("Q", "input_shared") as queue:
        assert queue.get().text == "one"


def test_the_socket_goes_with_the_queue_manager():
    with InMemory() as in_memory:
        address = in_memory.serve()
    with pytest.raises(trigmon.QMgrNotAvailable):
        trigmon.connect(address, reconnect_s=0)
    assert not Path(address.removeprefix("unix:")).parent.exists()
