"""A queue manager of tests whose events are on, and what it told."""

import json

from tests.rules.launching_ledger import Ledger
from trigmon.mq.calls import Alter, Close, Get
from trigmon.mq.enums import OpenOption
from trigmon.mq.event_kinds import COMMON, EVENT_QUEUE, EVENTS, PERFORMANCE_EVENT_QUEUE
from trigmon.pcf.structures import unpack_message
from trigmon.rules.model.events import EventMessageDropped


class Told(Ledger):
    """A queue manager whose events are on, and what it told."""

    def __init__(self, kind, directory, **switches):
        self.dropped_events = []
        super().__init__(kind, directory)
        tell = self.telling.tell

        def noted(event):
            if isinstance(event, EventMessageDropped):
                self.dropped_events.append((event.event, event.why))
            tell(event)

        self.telling.tell = noted
        self.alter("QMGR", "", **(switches or {"trigmon_event": "enabled"}))

    def alter(self, kind, name, **attributes):
        self.did(Alter(object_type=kind, name=name, attributes=attributes), "operator")

    def taken(self, q_name=EVENT_QUEUE):
        """The messages of an event queue, which is empty then."""
        handle, found = self.open(q_name, OpenOption.INPUT_SHARED, as_="reader"), []
        while not isinstance(reply := self.do(Get(handle=handle), "reader"), type(None)) and not hasattr(
            reply, "about"
        ):
            found.append(reply)
        self.did(Close(handle=handle), "reader")
        return found

    def events(self):
        """The events told since the last look; each has the fields that its row of the table names."""
        told = [json.loads(message.data) for message in self.taken()]
        for event in told:
            assert set(event) == {*COMMON, *EVENTS[event["event"]].fields}, event
        return told

    def names(self):
        return [event["event"] for event in self.events()]

    def pcf(self):
        return [unpack_message(message.data) for message in self.taken(PERFORMANCE_EVENT_QUEUE)]

    def get(self, q_name, count=1):
        handle = self.open(q_name, OpenOption.INPUT_SHARED, as_="getter")
        for _ in range(count):
            self.did(Get(handle=handle), "getter")
        self.did(Close(handle=handle), "getter")

    def look(self, seconds=5):
        self.clock.advance(1000 * seconds)
        self.qm.housekeeping.report_changes()
