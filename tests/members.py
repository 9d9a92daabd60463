"""Members of a queue-sharing group for tests: real daemons over one schema of a real PostgreSQL."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import Future

from tests.daemons import define
from tests.postgres import shared
from tests.waiting import until
from trigmon.mq.calls import DisplayGroup, Status
from trigmon.mq.replies import Values

GROUP = "QSG1"
LEASE_S = 2.0
_numbers = itertools.count(1)


def settings(dsn=None, *, schema=None, lease_s=LEASE_S, **more):
    """Returns a member's settings; without ``schema`` those of a group of its own."""
    group = {
        "name": GROUP,
        "postgres": dsn or shared().dsn,
        "postgres_schema": schema or f"group_{next(_numbers)}",
        "accept_loss": "true",
        "lease_s": lease_s,
    }
    return {f"group.{key}": value for key, value in group.items()} | more


def members(make, *names, start=True, chosen=None, **named):
    """Daemons of these names in one group, each with a store of its own."""
    chosen = chosen or settings()
    made = [make(name, settings=chosen, start=False, **named) for name in names]
    for one in made if start else ():
        one.launch()
    return [one.wait_until_ready() for one in made] if start else made


def share(member, name, **attributes):
    """Defines a shared queue through a member."""
    with member.connect() as qm:
        define(qm, name, qsg_disp="shared", **attributes)


def group_of(member):
    """Returns the group as a member displays it."""
    with member.connect() as qm:
        return qm.ask(DisplayGroup(), Values).values


def depth(member, q_name):
    """Returns the depth of a shared queue, as a member sees it; None where it knows none of this name."""
    return {queue["name"]: queue["current_q_depth"] for queue in group_of(member)["queues"]}.get(q_name)


def sees(*some, q_name):
    """Waits until each of these members knows a shared queue."""
    for member in some:
        until(lambda member=member: depth(member, q_name) is not None)


def waits(member, count=1):
    """Waits until so many gets wait at a member."""

    def found():
        with member.connect() as qm:
            return qm.ask(Status(), Values).values["waiting_gets"] >= count

    until(found)


def aside(call):
    """Starts a call in a thread and returns its future. The thread ends with the call, or with the process."""
    future = Future()

    def run():
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def get(member, q_name, *opened, wait_interval_ms=60_000):
    """Waits for the next message of a queue through a member and returns it."""
    with member.connect() as qm, qm.open(q_name, *(opened or ("input_shared",))) as q:
        return q.get(wait_interval_ms=wait_interval_ms)
