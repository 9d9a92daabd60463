"""Orders for the tests of launching."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.launch.keeper_machine import KeeperMachine
from tests.launch.warm_interpreters import Warm
from trigmon.launch.launch_plan import Order
from trigmon.mq.attributes import Process
from trigmon.mq.descriptors import TriggerMessage
from trigmon.mq.enums import ApplType


def make_order(
    appl_id="/bin/true",
    *,
    trigger_data="",
    user_data="",
    env_data="",
    q_name="ORDERS",
    appl_type=ApplType.UNIX,
    **definition,
) -> Order:
    trigger = TriggerMessage(
        q_name=q_name,
        process_name="ORDERS.LOAD",
        trigger_data=trigger_data,
        appl_type=int(appl_type),
        appl_id=appl_id,
        env_data=env_data,
        user_data=user_data,
    )
    process = Process(name="ORDERS.LOAD", appl_type=appl_type, appl_id=appl_id, env_data=env_data, **definition)
    return Order(run_id="0123456789abcdef", q_mgr_name="QM1", trigger=trigger, process=process, occasion="1")


@pytest.fixture(scope="session")
def order():
    """Makes an order: APPLICID, the trigger message's fields, and whatever the definition adds."""
    return make_order


@pytest.fixture
def machine(tmp_path):
    """Yields a keeper and a directory of runs."""
    made = KeeperMachine(tmp_path)
    yield made
    made.end()


@pytest.fixture
def open_machine():
    """Yields the same where other users may pass: programs of other users are started there."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    directory = Path(tempfile.mkdtemp(prefix="trigmon-"))
    directory.chmod(0o755)
    made = KeeperMachine(directory)
    yield made
    made.end()
    shutil.rmtree(directory)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    for file in Path("/proc/self/fd").iterdir():  # what pytest's own parent left open would be open in programs too
        if int(file.name) > 2 and file.exists():
            os.set_inheritable(int(file.name), False)
    machine = KeeperMachine(tmp_path_factory.mktemp("machine"))
    yield Warm(machine)
    machine.end()


@pytest.fixture
def warm(kept):
    """One keeper for all tests that leave it alone."""
    kept.forget()
    return kept


@pytest.fixture
def own(machine):
    """One of the test's own, to be killed."""
    return Warm(machine)
