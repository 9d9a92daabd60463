"""How an event message is made and put: like any other message, so its queue may trigger; or it is dropped."""

from __future__ import annotations

from typing import Any

import msgspec

from trigmon.mq.attributes import LocalQueue
from trigmon.mq.descriptors import CCSID_UTF8, EXPIRY_UNLIMITED, FORMAT_STRING, MessageDescriptor
from trigmon.mq.enums import ApplType
from trigmon.mq.errors import MQError
from trigmon.mq.event_kinds import EVENT_QUEUE, EVENT_QUEUES, LONGEST_TEXT
from trigmon.rules.messages.put import decide_deliver
from trigmon.rules.messages.put_plan import check_puts_allowed
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.events import EventMessageDropped
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.internal_calls import Deliver, PutEvent
from trigmon.rules.model.resolve_name import base_queue
from trigmon.rules.model.stored_messages import Found


class Happened(msgspec.Struct, frozen=True):
    """What is to be reported: the name of an event, a sentence for a person, and the event's own fields."""

    event: str
    text: str
    fields: dict[str, Any]

    @property
    def is_about_events(self) -> bool:
        """Whether it is about an event queue: reporting it would lead to the next."""
        return bool(EVENT_QUEUES & {self.fields.get("q_name"), self.fields.get("name")})


def json_event(happened: Happened, q_mgr_name: str, now: int) -> PutEvent:
    """Returns the put of trigmon's own event: one JSON object, each text of at most LONGEST_TEXT characters."""
    common = {"event": happened.event, "at_ms": now, "q_mgr_name": q_mgr_name, "text": happened.text}
    fields = {name: _short(value) for name, value in (common | happened.fields).items()}
    data = msgspec.json.encode(fields)
    return PutEvent(q_name=EVENT_QUEUE, event=happened.event, format=FORMAT_STRING, data=data)


def _short(value: Any) -> Any:
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        return value[: LONGEST_TEXT - 3] + "..."
    return value


def decide_put_event(call: PutEvent, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Puts an event message outside any unit of work, or drops it; never refuses.

    A shared event queue does not take any: what is reported must not wait for the group's database. An alias does not
    either: events are reported of the queue behind it, and of the runs that it starts.
    """
    try:
        queue, route = base_queue(call.q_name, facts)
        if route is None and queue.definition.name != call.q_name:
            return _dropped(call, f"it is an alias of {queue.definition.name}")
        if queue.shared is not None:
            return _dropped(call, "the queue is shared")
        check_puts_allowed(facts, queue)
        descriptor = _descriptor(call, queue.definition, facts.q_mgr.name, ids.msg_id(ids.message()), now)
        return decide_deliver(
            Deliver(q_name=call.q_name, descriptor=descriptor, data=call.data), facts, found, now, ids
        )
    except MQError as error:
        return _dropped(call, str(error))


def _dropped(call: PutEvent, why: str) -> Decision:
    return Decision(events=(EventMessageDropped(call.q_name, call.event, why),))


def _descriptor(call: PutEvent, definition: LocalQueue, q_mgr_name: str, msg_id: bytes, now: int) -> MessageDescriptor:
    """Returns the MQMD: priority and persistence as the event queue defines them."""
    return MessageDescriptor(
        coded_char_set_id=CCSID_UTF8,
        expiry=EXPIRY_UNLIMITED,
        format=call.format,
        priority=definition.def_priority,
        persistence=int(definition.def_persistence),
        msg_id=msg_id,
        put_appl_type=int(ApplType.QMGR),
        put_appl_name=q_mgr_name[:28],
        put_ms=now,
    )
