"""One notification of many events: repetitions of an event about the same object are one line with a count."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from trigmon.mq.event_kinds import EVENT_QUEUES
from trigmon.mq.explanation import moment

_OBJECTS = ("q_name", "process_name", "name", "member")
_UNREADABLE = "unreadable"


class Group(msgspec.Struct):
    """Events of one name about one object: how many, when the first and the last came, and the text of the last."""

    event: str
    about: str
    count: int
    first_ms: int
    last_ms: int
    text: str
    last: dict[str, Any]

    @property
    def line(self) -> str:
        """One line for a person."""
        if self.count == 1:
            return f"{moment(self.last_ms)}  {self.event}: {self.text}"
        return f"{moment(self.first_ms)} to {moment(self.last_ms)}, {self.count} times  {self.event}: {self.text}"


class Notification(msgspec.Struct, frozen=True):
    """What is sent at once. ``key`` is the same when the same events are sent again."""

    q_mgr_name: str
    key: str
    groups: list[Group]

    @property
    def subject(self) -> str:
        """The first group in a few words, and how many others there are."""
        first, *others = self.groups
        times = f" ({first.count} times)" if first.count > 1 else ""
        more = f", and {len(others)} more" if others else ""
        return f"trigmon {self.q_mgr_name}: {first.event} {first.about}{times}{more}"

    @property
    def text(self) -> str:
        """A line a group."""
        return "".join(f"{group.line}\n" for group in self.groups)

    @property
    def json(self) -> bytes:
        """The same as one JSON object: subject, text, and the groups with the fields of the last event of each."""
        fields = {"q_mgr_name": self.q_mgr_name, "key": self.key, "subject": self.subject, "text": self.text}
        return msgspec.json.encode(fields | {"groups": self.groups})


def read_event(data: bytes, put_ms: int) -> dict[str, Any]:
    """Returns the event of a message; one that is no event of trigmon's is reported as unreadable."""
    try:
        event = msgspec.json.decode(data, type=dict[str, Any])
    except msgspec.DecodeError:
        event = {}
    is_event = isinstance(event.get("event"), str) and isinstance(event.get("at_ms"), int)
    if is_event and isinstance(event.get("text"), str):
        return event
    shown = data[:200].decode(errors="replace")
    return {"event": _UNREADABLE, "at_ms": put_ms, "text": f"a message that is no event: {shown!r}"}


def grouped(events: Iterable[dict[str, Any]], own_queue: str, own_process: str) -> list[Group]:
    """Returns the groups in the order of their first events; none is about the notifier's own queue or process."""
    groups: dict[tuple[str, str], Group] = {}
    for event in events:
        about = next((str(event[name]) for name in _OBJECTS if event.get(name)), "")
        if about in EVENT_QUEUES or about == own_queue or (own_process and event.get("process_name") == own_process):
            continue
        name, at_ms, text = event["event"], event["at_ms"], event["text"]
        group = groups.get((name, about))
        if group is None:
            groups[name, about] = Group(name, about, 1, at_ms, at_ms, text, event)
        else:
            group.count += 1
            group.last_ms, group.text, group.last = at_ms, text, event
    return list(groups.values())
