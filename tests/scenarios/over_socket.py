"""The stage over a socket: scenarios played on a real daemon, every application a real connection.

What a real clock cannot play is left out by :func:`is_playable`. One daemon serves scenario after scenario, so each
begins with :meth:`OverSocket.reset`. A trigger message is seen by browsing the initiation queues after each step.
"""

from __future__ import annotations

import contextlib
import time

from trigmon.mq.calls import Alter, Clear, Close, Delete, Disconnect, Display, Get, Open, Status
from trigmon.mq.descriptors import EXPIRY_UNLIMITED, FORMAT_TRIGGER, unpack_tm
from trigmon.mq.enums import ApplType, GetOption, OpenOption
from trigmon.mq.errors import GetInhibited, NoMsgAvailable, QDeleted
from trigmon.simulate import scenario as act
from trigmon.simulate.stage import Available, numbered

LONGEST_WAIT_MS = 600
DEFAULTS = {
    "TRIGINT": 999_999_999,
    "DEADQ": "",
    "DEFXMITQ": "",
    "MAXUMSGS": 10_000,
    "MAXMSGL": 4_194_304,
    "EXPRYINT": "OFF",
}


def is_playable(scenario) -> bool:
    """Whether a scenario needs neither a clock of its own nor a long wait, and this queue manager's name."""
    for step in scenario.steps:
        if isinstance(step.act, act.Advance):
            return False
        if (step.expected.returns or {}).get("expiry", EXPIRY_UNLIMITED) != EXPIRY_UNLIMITED:
            return False
        if isinstance(step.act, act.Get) and not 0 <= step.act.wait_interval_ms <= LONGEST_WAIT_MS:
            return False
    return scenario.q_mgrs == ("QM1",)


class OverSocket:
    """A stage on a running ``tests.daemons.Daemon``, which stays when the stage is closed."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.applications = {}
        self._connect()
        self.reset()

    def perform(self, q_mgr, application, call):
        if application not in self.applications:
            self.applications[application] = self.daemon.connect(application=application)
        connection = self.applications[application]
        if isinstance(call, Disconnect):
            self.applications.pop(application).disconnect()
            return None
        return connection.call(numbered(call, connection.unit))

    def command(self, q_mgr, call):
        return self.operator.call(call)

    def kill(self, q_mgr, application):
        connection = self.applications.pop(application, None)
        if connection is not None:
            before = self._connections()
            connection.drop()
            deadline = time.monotonic() + 10
            while self._connections() >= before:
                assert time.monotonic() < deadline
                time.sleep(0.001)

    def restart(self, q_mgr):
        assert self.daemon.stop() == 0
        self._start_again()

    def crash(self, q_mgr):
        self.daemon.kill()
        self._start_again()

    def became_available(self):
        self.initiation_queues |= {row["initiation_q_name"] for row in self._rows("QLOCAL")}
        there = {row["name"] for row in self._rows("QLOCAL")}
        return [found for name in sorted(self.initiation_queues & there) for found in self._new_on(name)]

    def close(self):
        for application in list(self.applications):
            self.kill("QM1", application)
        self.operator.disconnect()
        self.onlooker.disconnect()

    def reset(self):
        """Takes away what the scenario before has left."""
        self.seen = set()
        self.initiation_queues = set()
        for kind in ("QALIAS", "QREMOTE", "QMODEL", "QLOCAL", "PROCESS"):
            for row in self._rows(kind):
                name = row["name"]
                if not name.startswith("SYSTEM."):
                    self.operator.call(Delete(object_type=kind, name=name, purge=kind == "QLOCAL"))
                elif row.get("current_q_depth"):
                    self.operator.call(Clear(q_name=name))
        self.operator.call(Alter(object_type="QMGR", name="", attributes=DEFAULTS))

    def _connect(self):
        self.operator = self.daemon.connect(application="operator")
        self.onlooker = self.daemon.connect(application="onlooker")

    def _start_again(self):
        for connection in (*self.applications.values(), self.operator, self.onlooker):
            connection.drop()
        self.applications.clear()
        self.daemon.start()
        self._connect()

    def _connections(self):
        return self.operator.call(Status()).values["connections"]

    def _rows(self, object_type):
        listing = self.operator.call(Display(object_type=object_type))
        assert not listing.more
        return listing.rows

    def _new_on(self, queue):
        """The trigger messages on a queue that were not there before."""
        try:
            handle = self.onlooker.call(Open(object_name=queue, options=int(OpenOption.BROWSE))).handle
        except QDeleted:
            return
        browse = Get(handle=handle, options=int(GetOption.BROWSE_NEXT))
        with contextlib.suppress(NoMsgAvailable, GetInhibited):
            while True:
                message = self.onlooker.call(browse)
                md = message.descriptor
                is_ours = md.format.rstrip() == FORMAT_TRIGGER and md.put_appl_type == ApplType.QMGR
                if is_ours and md.msg_id not in self.seen:
                    self.seen.add(md.msg_id)
                    yield Available(self.onlooker.q_mgr_name, queue, unpack_tm(message.data))
        self.onlooker.call(Close(handle=handle))
