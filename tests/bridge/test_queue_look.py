"""What a monitor sees of a queue elsewhere: uncommitted messages, its own program's handles, and with few rights."""

# ruff: noqa: F401, F811 - fixtures are imported
from __future__ import annotations

import os
import subprocess
import threading
from types import SimpleNamespace

import pytest

from tests.bridge.conftest import NEEDS_IBMMQ
from tests.bridge.queues_elsewhere import (
    INITIATION,
    PROCESS,
    QUEUE,
    THERE,
    Elsewhere,
    by_name,
    for_other_users,
    library_directory,
    pair,
)
from tests.daemons import define
from tests.strangers import as_user
from trigmon.bridge.connection import RemoteConnection, ibmmq
from trigmon.bridge.copy_threads import copy_of
from trigmon.bridge.intake import RemoteIntake
from trigmon.bridge.queue_look import QueueLook, own_readers, pids_tell
from trigmon.bridge.seen_queue import OpenHandle
from trigmon.monitor.remote_looks import Look
from trigmon.mq.calls import Alter, Delete, SetAuthority
from trigmon.mq.enums import ApplType
from trigmon.mq.run import RunState
from trigmon.setting_sections import BridgeSettings

pytestmark = NEEDS_IBMMQ
ALICE = 5001
COMMANDS = "SYSTEM.ADMIN.COMMAND.QUEUE"
SETTINGS = BridgeSettings(queue_manager=THERE, initiation_queues=[INITIATION], wait_s=0.1)
PCF = [(f"queue {COMMANDS}", ["put"]), ("queue SYSTEM.DEFAULT.MODEL.QUEUE", ["get", "dsp"])]


@pytest.fixture
def there(by_name):
    """Yields the objects of a test at the queue manager that plays the real MQ."""
    one = Elsewhere(by_name[1]).begin()
    yield one
    one.qm.call(Delete(object_type="QLOCAL", name=QUEUE, purge=True))
    one.close()
    with by_name[1].connect() as qm:
        qm.call(Delete(object_type="PROCESS", name=PROCESS))
        qm.call(Delete(object_type="QLOCAL", name=INITIATION, purge=True))


@pytest.fixture
def looks():
    """Yields the looks of a bridge's connection to it."""
    connection = RemoteConnection("REAL", SETTINGS)
    yield QueueLook(connection)
    connection.drop()


def test_the_priority_at_which_messages_count_is_that_of_the_first_one_or_defprty(there, looks):
    there.alter(QUEUE, trigger_msg_priority=3, def_priority=4)
    assert (looks.look(QUEUE).trigger_priority, looks.look(QUEUE).priority) == (3, -1)
    for priority in (1, 2):
        there.qm.put(QUEUE, b"", priority=priority)
    assert looks.look(QUEUE).priority == 2
    with there.qm.open(QUEUE, "input_shared") as queue:
        list(queue.drain())
    there.alter(QUEUE, msg_delivery_sequence="fifo")
    there.qm.put(QUEUE, b"", priority=1)
    assert looks.look(QUEUE).priority == 4


def mine(pid):
    return pid == os.getpid()


def nobodys(pid):
    return False


def test_messages_that_are_not_committed_are_no_work_that_is_left(there, looks):
    assert looks.look(QUEUE).uncommitted == 0
    there.qm.put(QUEUE, b"one", syncpoint=True)
    seen = looks.look(QUEUE)
    assert (seen.depth, seen.uncommitted, seen.first) == (1, 1, "")
    there.qm.commit()
    seen = looks.look(QUEUE)
    assert (seen.depth, seen.uncommitted, seen.first != "") == (1, 0, True)


def test_handles_are_counted_that_are_of_the_programs_processes(there, looks):
    assert looks.look(QUEUE, mine).own_readers == -1  # nobody has it open, so nobody is asked
    with there.qm.open(QUEUE, "input_shared"):
        assert looks.look(QUEUE).own_readers == -1
        assert looks.look(QUEUE, mine).own_readers == 1
        assert looks.look(QUEUE, nobodys).own_readers == 0


def test_what_a_program_had_in_flight_that_ends_during_a_look_is_left(there, looks):
    there.qm.put(QUEUE, b"one")
    reader = there.qm.open(QUEUE, "input_shared")
    assert reader.get(syncpoint=True)

    def ends(pid):
        there.qm.backout()
        reader.close()
        return False

    seen = looks.look(QUEUE, ends)
    assert (seen.depth, seen.readers, seen.own_readers) == (1, 0, 0)


def test_a_handle_of_a_process_that_has_ended_is_the_programs_behind_its_end_alone():
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    process = SimpleNamespace(appl_type=ApplType.UNIX)
    child = SimpleNamespace(pid=os.getpid(), run_id="R", trigger=process)
    assert Look(child, {"state": RunState.EXITED}, 0.0).is_own(gone.pid)
    assert not Look(child, None, 0.0).is_own(gone.pid)  # is it open? The program does not hold it
    assert Look(child, None, 0.0).is_own(os.getpid())


def handle(pid=1, for_input=True, channel=""):
    return OpenHandle(pid=pid, application="", user="", for_input=for_input, channel=channel)


def test_process_ids_tell_only_where_this_process_has_its_own_and_no_channel_is_between():
    assert pids_tell([handle(1), handle(os.getpid(), for_input=False)])
    assert not pids_tell([handle(1)])
    assert not pids_tell([handle(os.getpid())])
    assert not pids_tell([handle(1), handle(os.getpid(), for_input=False, channel="C")])


def test_a_reader_that_came_by_a_channel_may_be_the_program():
    assert own_readers([handle(1), handle(2, for_input=False)], nobodys) == 0
    assert own_readers([handle(1), handle(1), handle(2)], lambda pid: pid == 1) == 2
    assert own_readers([handle(1, channel="C"), handle(2)], nobodys) == -1
    assert own_readers([handle(1, channel="C"), handle(2)], lambda pid: True) == 1


def test_a_command_server_that_does_not_answer_is_not_asked_again_at_once(there, looks):
    with there.qm.open(QUEUE, "input_shared"):
        there.alter(COMMANDS, inhibit_get="inhibited")
        try:
            seen = QueueLook(looks._connection, answer_s=0.1).look(QUEUE, mine)
            assert (seen.readers, seen.own_readers) == (1, -1)
            there.alter(COMMANDS, inhibit_put="inhibited")
            assert looks.look(QUEUE, mine).own_readers == -1
        finally:
            there.alter(COMMANDS, inhibit_put="allowed", inhibit_get="allowed")
        assert looks.look(QUEUE, mine).own_readers == -1


# -- with few rights -------------------------------------------------------------------------------------------


@pytest.fixture
def guarded(passable, library_directory, monkeypatch):
    """Yields a queue at a queue manager that other users of this machine reach, with one message of a unit of work."""
    with for_other_users(passable, library_directory, monkeypatch, trigger_type="first") as one:
        yield one


def allow(qm, *records):
    for name, rights in records:
        qm.call(SetAuthority(name=f"{name} user {ALICE}", add=list(rights)))


def alice_sees(one, *records):
    """Returns how a user with these rights sees the queue."""
    allow(one.qm, *records)

    def work():
        connection = RemoteConnection("REAL", SETTINGS)
        seen = QueueLook(connection).look(QUEUE)
        connection.drop()
        return seen

    return as_user(ALICE, work)


def test_without_a_browse_pcf_tells_that_all_is_uncommitted(guarded):
    guarded.qm.put(QUEUE, b"one", syncpoint=True)
    seen = alice_sees(guarded, (f"queue {QUEUE}", ["inq"]))
    assert (seen.depth, seen.uncommitted) == (1, 0)
    seen = alice_sees(guarded, *PCF, (f"queue {QUEUE}", ["inq", "dsp"]))
    assert (seen.depth, seen.uncommitted) == (1, 1)
    # An uncommitted get is counted by MQ as well.
    guarded.qm.commit()
    guarded.qm.put(QUEUE, b"two")
    with guarded.qm.open(QUEUE, "input_shared") as queue:
        queue.get(syncpoint=True)
        seen = alice_sees(guarded)
        assert (seen.depth, seen.uncommitted, seen.readers) == (1, 0, 1)
        guarded.qm.backout()


def test_without_mqinq_pcf_tells_the_trigger_type_and_the_depth(guarded):
    guarded.qm.put(QUEUE, b"one")
    assert alice_sees(guarded, (f"queue {QUEUE}", ["browse"])) is None
    seen = alice_sees(guarded, *PCF, (f"queue {QUEUE}", ["dsp"]))
    assert (seen.trigger_type, seen.depth, seen.readers, seen.first != "") == ("first", 1, 0, True)


def test_an_intake_without_the_right_to_inquire_takes_and_gives_back(guarded):
    define(guarded.qm, "OTHER.INIT")
    guarded.qm.put("OTHER.INIT", b"no trigger message", format="MQTRIG")
    guarded.qm.call(Alter(object_type="QMGR", name=THERE, attributes={"dead_letter_q_name": "DEAD"}))
    allow(guarded.qm, ("queue OTHER.INIT", ["get"]))

    def work():
        intake = RemoteIntake(RemoteConnection("REAL", SETTINGS), "OTHER.INIT")
        intake.open()
        (got,) = intake.take()
        assert intake.look(QUEUE) is None
        try:
            intake.dead_letter(got, 266, 0)
        except Exception as error:
            refused = str(error)
        intake.give_back()
        (again,) = intake.take()
        intake.give_back()
        intake.close()
        return refused, again.data

    refused, data = as_user(ALICE, work)
    assert refused.endswith("MQINQ of the queue manager: 2035 MQRC_NOT_AUTHORIZED")
    assert data == b"no trigger message"


def test_a_copy_without_the_right_to_inquire_copies_and_knows_no_depth(guarded, passable):
    here = passable(
        name="QM1",
        home=guarded.daemon.home,
        settings={"server.socket_mode": "0666", "server.administrators": f"{ALICE},root"},
    )
    with here.connect() as qm:
        define(qm, "COPIED")
    define(guarded.qm, "COPIED")
    for number in range(3):
        guarded.qm.put("COPIED", b"%d" % number)
    allow(guarded.qm, ("queue COPIED", ["get", "browse"]))

    def work():
        over = threading.Event()
        loop = copy_of("COPIED", "REAL", SETTINGS, secrets=None, address="QM1", until_empty=True, stopped=over)
        loop.run()
        return loop.state.copied, loop.state.left, loop.state.problem

    assert as_user(ALICE, work) == (3, -1, "")
    with here.connect() as qm, qm.open("COPIED", "input_shared") as queue:
        assert [message.data for message in queue.drain()] == [b"0", b"1", b"2"]
    with guarded.qm.open("COPIED", "inquire") as queue:
        assert queue.inquire("current_q_depth")["current_q_depth"] == 0
