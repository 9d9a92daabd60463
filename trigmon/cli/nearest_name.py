"""The nearest known name of an object, for the error about one that does not exist."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

from trigmon.mq.calls import Display
from trigmon.mq.errors import MQError
from trigmon.mq.paging import all_rows

if TYPE_CHECKING:
    from trigmon.client.connection import Connection

_ABOUT = re.compile(r"(?:(Q[A-Z]+|PROCESS|NAMELIST|SCHEDULE|WATCH)\()?([A-Za-z0-9./_%]+)\)?$")


def nearest_name(qm: Connection, about: str) -> str:
    """Returns the name of an object that is most like the one an error is about; "" if none is."""
    named = _ABOUT.match(about)
    if named is None:
        return ""
    kind = named[1] if named[1] and not named[1].startswith("Q") else "queue"
    try:
        names = [str(row["name"]) for row in all_rows(qm.call, Display(object_type=kind, name="*"))]
    except MQError:  # the connection has gone: the first error is the one to report
        return ""
    return next(iter(difflib.get_close_matches(named[2], names, n=1)), "")
