"""The definition of an object as it is now, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trigmon.mq.calls import Call, Display
from trigmon.mq.enums import ObjectType
from trigmon.mq.names import is_object_name
from trigmon.mq.replies import Listing, Reply


def defined(call: Callable[[Call], Reply], object_type: ObjectType, name: str) -> dict[str, Any] | None:
    """Returns an object's row as it is defined now, None when it is not. Raises what ``call`` raises."""
    if not is_object_name(name):
        return None
    reply = call(Display(object_type=object_type.name, name=name))
    return reply.rows[0] if isinstance(reply, Listing) and reply.rows else None
