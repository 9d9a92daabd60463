"""Denials and administrative acts as fields of records: who, from where, what, before and after; and the audit file.

Values that look like secrets are left out. Messages' data is in no call that is recorded.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from trigmon.audit import AuditError, AuditFile, Link
from trigmon.log import Seldom
from trigmon.mq.attributes import ATTRIBUTES, OBJECT_TYPES, Definition
from trigmon.mq.calls import Call
from trigmon.mq.replies import Counted, Sifted
from trigmon.qmgr.manager_events import AdministrativeAct, NotAuthorizedCall
from trigmon.qmgr.sessions import Session
from trigmon.url_credentials import without_credentials

DENIALS_A_SECOND = 10
"""More of them are counted in the file, not written: a client in a loop must not fill the disk."""
_SECRET = re.compile(r"((?:pass|secret|token|key|credential)[\w.-]*\s*[=:]\s*)[^\s,;'\"]+", re.IGNORECASE)
_NOT_SHOWN = frozenset(("attributes", "where", "after", "limit", "with_data"))
Fields = dict[str, Any]


def without_secrets(value: object) -> object:
    """Returns a value as a record holds it: passwords, tokens and keys in a text are left out."""
    if not isinstance(value, str):
        return value
    return without_credentials(_SECRET.sub(r"\1***", value))


def who_and_where(session: Session) -> Fields:
    """Returns who made a call, and from where."""
    it = session.identity
    where = {"address": it.address} if it.address else {}
    where |= {"run_id": it.run_id} if it.run_id else {}
    who = {"user": it.user or "nobody (TCP)", "uid": it.uid, "pid": it.pid}
    return {**who, **where, "application": it.application}


def denial_fields(event: NotAuthorizedCall) -> Fields:
    """Returns a denial: the call, what it was about, and why it was refused."""
    call = {"call": type(event.call).__name__, "about": event.error.about}
    return {"event_name": event.name, **call, **who_and_where(event.session)}


def act_fields(event: AdministrativeAct) -> Fields:
    """Returns an act: the call, its object, and the attributes that differ, before and after."""
    call = event.call
    fields: Fields = {"event_name": event.name, "call": type(call).__name__, **_about(call)}
    if event.before is not None or event.after is not None:
        fields["before"], fields["after"] = _difference(event.before, event.after)
    if isinstance(event.reply, Counted | Sifted):
        fields["count"] = event.reply.count
    return {**fields, **who_and_where(event.session)}


def _about(call: Call) -> Fields:
    given = {name: value for name, value in asdict(call).items() if name not in _NOT_SHOWN}
    return {name: without_secrets(value) for name, value in given.items() if value not in ("", None, [], False)}


def _difference(before: Definition | None, after: Definition | None) -> tuple[Fields, Fields]:
    """Returns the attributes that differ; of an object that is new or gone those that are not at their default."""
    some = after if after is not None else before
    table = ATTRIBUTES[OBJECT_TYPES[type(some)]] if some is not None else {}
    was, now = ({name: getattr(of, name, a.default) for name, a in table.items()} for of in (before, after))
    differing = [name for name in table if was[name] != now[name]]
    shown = ({name: without_secrets(table[name].plain(of[name])) for name in differing} for of in (was, now))
    first, second = shown
    return first if before is not None else {}, second if after is not None else {}


class AuditLog:
    """The audit file of a daemon, opened by its first record. What cannot be written is an error in the log."""

    def __init__(self, path: str | None, log: Any) -> None:
        self._path = path
        self._file: AuditFile | None = None
        self._seldom = Seldom(log, interval_s=60)
        self._second = 0
        self._denials = 0
        self._left_out = 0

    def write(self, fields: Fields, *, lasts: bool = True) -> Link | None:
        """Writes a record, and makes it durable where it ``lasts``; returns its place, None where there is no file."""
        if self._path is None:
            return None
        try:
            if self._file is None:
                self._file = AuditFile(Path(self._path))
            place = self._file.append(fields)
            if lasts:
                self._file.sync()
        except AuditError as error:
            self._seldom.warning("the audit file cannot be written", why=str(error))
            return None
        return place

    def write_denial(self, fields: Fields) -> Link | None:
        """Writes a denial, which is durable with the next act; of more than ten in a second how many there were."""
        second = int(time.monotonic())
        if second != self._second:
            if self._left_out:
                self.write({"event_name": "denials_left_out", "count": self._left_out}, lasts=False)
            self._second, self._denials, self._left_out = second, 0, 0
        self._denials += 1
        if self._denials > DENIALS_A_SECOND:
            self._left_out += 1
            return None
        return self.write(fields, lasts=False)
