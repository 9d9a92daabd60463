"""Own time: neither the wall clock's jumps nor restarts move a deadline by more than a second."""

import pytest

from trigmon.mq.calls import Define, Disconnect, Get, Open
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import OpenOption
from trigmon.mq.replies import WasGot
from trigmon.qmgr.clock import SystemClock
from trigmon.qmgr.manager import QueueManager
from trigmon.qmgr.sessions import Identity
from trigmon.rules.model.internal_calls import Deliver
from trigmon.store.sqlite.store import SqliteStore

DAY_MS = 86_400_000
NOON = 1_767_225_600_000


class Fake:
    """A machine whose clocks a test moves: time passes for all, a jump is the wall clock's alone."""

    def __init__(self) -> None:
        self.wall, self.boot, self.id = NOON, 5_000_000, "boot-1"

    def wall_ms(self) -> int:
        return self.wall

    def boot_ms(self) -> int:
        return self.boot

    def boot_id(self) -> str:
        return self.id

    def passes(self, ms: int) -> None:
        self.wall += ms
        self.boot += ms

    def boots(self, off_ms: int = 60_000) -> None:
        self.wall += off_ms
        self.boot, self.id = 1000, self.id + "'"


@pytest.fixture
def machine():
    return Fake()


def test_a_first_start_takes_the_time_of_the_wall_clock(machine):
    assert SystemClock("", machine).now() == NOON


@pytest.mark.parametrize("jump_ms", [3 * DAY_MS, -3 * DAY_MS])
def test_a_jump_of_the_wall_clock_moves_nothing(machine, jump_ms):
    clock = SystemClock("", machine)
    machine.passes(10_000)
    machine.wall += jump_ms
    assert clock.now() == NOON + 10_000
    assert clock.off_wall_ms() == -jump_ms


@pytest.mark.parametrize("jump_ms", [0, 3 * DAY_MS, -3 * DAY_MS])
def test_a_restart_within_one_boot_goes_on_whatever_the_wall_clock_did_meanwhile(machine, jump_ms):
    kept = SystemClock("", machine).kept()
    machine.passes(10_000)
    machine.wall += jump_ms
    assert SystemClock(kept, machine).now() == NOON + 10_000


def test_what_was_kept_early_serves_as_well_as_what_was_kept_late(machine):
    clock = SystemClock("", machine)
    early = clock.kept()
    machine.passes(DAY_MS)
    late = clock.kept()
    machine.passes(5000)
    assert SystemClock(early, machine).now() == SystemClock(late, machine).now() == NOON + DAY_MS + 5000


def test_after_a_boot_it_is_the_wall_clocks_time(machine):
    kept = SystemClock("", machine).kept()
    machine.passes(10_000)
    machine.boots(60_000)
    assert SystemClock(kept, machine).now() == NOON + 70_000


def test_after_a_boot_it_is_never_behind_where_it_was(machine):
    clock = SystemClock("", machine)
    machine.passes(10_000)
    kept = clock.kept()
    machine.wall -= 3 * DAY_MS
    machine.boots()
    again = SystemClock(kept, machine)
    assert again.now() == NOON + 10_000
    machine.passes(500)
    assert again.now() == NOON + 10_500


def test_where_the_system_names_no_boot_each_start_is_one(machine):
    machine.id = ""
    clock = SystemClock("", machine)
    machine.passes(10_000)
    kept = clock.kept()
    machine.wall += 3 * DAY_MS
    assert SystemClock(kept, machine).now() == NOON + 10_000 + 3 * DAY_MS


def test_a_boot_clock_that_went_back_is_another_boots(machine):
    clock = SystemClock("", machine)
    machine.passes(10_000)
    kept = clock.kept()
    machine.boot = 10
    assert SystemClock(kept, machine).now() == NOON + 10_000


@pytest.mark.parametrize("kept", ["", "{", "{}", '{"boot_id": 1}', "nonsense"])
def test_what_cannot_be_read_is_a_first_start(machine, kept):
    assert SystemClock(kept, machine).now() == NOON


def test_the_real_clock_is_the_machines():
    clock = SystemClock()
    assert abs(clock.off_wall_ms()) < 50
    assert abs(SystemClock(clock.kept()).off_wall_ms()) < 50


class Harness:
    """A queue manager on disk, on a fake machine."""

    def __init__(self, directory, machine) -> None:
        self.directory, self.machine = directory, machine
        self.start()

    def start(self) -> None:
        self.store = SqliteStore(self.directory)
        self.qm = QueueManager("QM1", self.store, SystemClock(self.store.kept_time(), self.machine))
        self.session = self.qm.connect(Identity(client_id="a", administrator=True))

    def do(self, call):
        (answer,) = [a for a in self.qm.turn([(self.session, 1, call)]) if a.session is self.session]
        return answer.reply

    def got(self):
        handle = self.do(Open(object_name="Q", options=int(OpenOption.INPUT_SHARED))).handle
        return self.do(Get(handle=handle))


@pytest.mark.parametrize("jump_ms", [0, 3 * DAY_MS, -3 * DAY_MS])
@pytest.mark.parametrize("end", ["stop", "crash"])
def test_a_deadline_stands_over_a_restart_and_a_jump(tmp_path, machine, jump_ms, end):
    harness = Harness(tmp_path, machine)
    harness.do(Define(object_type="QLOCAL", name="Q", attributes={"def_persistence": "persistent"}))
    for expiry in (200, 400):
        descriptor = MessageDescriptor(persistence=1, expiry=expiry, priority=0)
        harness.do(
            Deliver(q_name="Q", descriptor=descriptor, data=b"m", expires_ms=harness.qm.clock.now() + expiry * 100)
        )
    machine.passes(10_000)
    machine.wall += jump_ms
    if end == "stop":
        harness.qm.stop()
    else:
        harness.store.abandon()
    harness.start()
    machine.passes(9_999)
    assert harness.do(Open(object_name="Q", options=int(OpenOption.BROWSE))).handle
    reply = harness.got()
    assert isinstance(reply, WasGot)
    assert (reply.descriptor.expiry, len(reply.data)) == (1, 1)
    assert harness.got().descriptor.expiry == 200
    harness.do(Disconnect())
    harness.qm.stop()


def test_the_time_is_kept_at_least_each_second_in_which_something_is_written(tmp_path, machine):
    harness = Harness(tmp_path, machine)
    harness.do(Define(object_type="QLOCAL", name="Q"))
    for _ in range(5):
        machine.passes(600)
        harness.do(Define(object_type="QLOCAL", name="Q", replace=True))
    at = harness.qm.clock.now()
    harness.store.abandon()
    machine.wall -= DAY_MS
    machine.boots()
    harness.start()
    assert at - 1000 <= harness.qm.clock.now() <= at
    harness.qm.stop()
