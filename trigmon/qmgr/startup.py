"""The objects that exist from the first start: the manual's SYSTEM objects of the kinds trigmon has."""

from __future__ import annotations

from typing import Any

from trigmon.mq.calls import Define
from trigmon.mq.compatibility import COMMAND_INPUT_Q
from trigmon.mq.enums import ObjectType
from trigmon.mq.event_kinds import EVENT_QUEUE, PERFORMANCE_EVENT_QUEUE
from trigmon.mq.names import RECORD_QUEUE

_UNBOUNDED = 999_999_999
_QUEUES: dict[str, dict[str, Any]] = {
    "SYSTEM.DEFAULT.LOCAL.QUEUE": {},
    "SYSTEM.DEFAULT.INITIATION.QUEUE": {"max_msg_length": 1000},
    "SYSTEM.DEAD.LETTER.QUEUE": {"max_q_depth": _UNBOUNDED},
    "SYSTEM.CHANNEL.INITQ": {},
    "SYSTEM.CICS.INITIATION.QUEUE": {"max_msg_length": 1000},
    COMMAND_INPUT_Q: {},
    "SYSTEM.ADMIN.QMGR.EVENT": {},
    PERFORMANCE_EVENT_QUEUE: {},
    "SYSTEM.ADMIN.CONFIG.EVENT": {},
    EVENT_QUEUE: {"def_persistence": "persistent"},
    "SYSTEM.CLUSTER.TRANSMIT.QUEUE": {"usage": "transmission"},
    # Ours: the files of watches that are on their way to their messages.
    RECORD_QUEUE: {"max_q_depth": _UNBOUNDED, "def_persistence": "persistent"},
    # Nothing here puts to these. Scripts define queues like them, alter them, and monitors open them.
    "SYSTEM.BROKER.DEFAULT.STREAM": {"def_persistence": "persistent"},
    "SYSTEM.BROKER.ADMIN.STREAM": {"def_persistence": "persistent"},
    "SYSTEM.BROKER.CONTROL.QUEUE": {"def_persistence": "persistent"},
    "SYSTEM.ADMIN.ACCOUNTING.QUEUE": {},
    "SYSTEM.ADMIN.ACTIVITY.QUEUE": {},
    "SYSTEM.ADMIN.CHANNEL.EVENT": {},
    "SYSTEM.ADMIN.COMMAND.EVENT": {},
    "SYSTEM.ADMIN.LOGGER.EVENT": {},
    "SYSTEM.ADMIN.PUBSUB.EVENT": {},
    "SYSTEM.ADMIN.STATISTICS.QUEUE": {},
    "SYSTEM.ADMIN.TRACE.ROUTE.QUEUE": {},
}
_DEFAULTS = {
    ObjectType.QALIAS: "SYSTEM.DEFAULT.ALIAS.QUEUE",
    ObjectType.QREMOTE: "SYSTEM.DEFAULT.REMOTE.QUEUE",
    ObjectType.QMODEL: "SYSTEM.DEFAULT.MODEL.QUEUE",
    ObjectType.NAMELIST: "SYSTEM.DEFAULT.NAMELIST",
    ObjectType.PROCESS: "SYSTEM.DEFAULT.PROCESS",
}
_MODELS = ("SYSTEM.MQSC.REPLY.QUEUE", "SYSTEM.MQEXPLORER.REPLY.MODEL", "SYSTEM.JMS.TEMPQ.MODEL")
"""Model queues of temporary queues, for replies."""


def system_objects() -> list[Define]:
    """Returns the commands that define them; the default objects come first, since the others take after them."""
    defines = [Define(object_type=ObjectType.QLOCAL.name, name=n, attributes=a) for n, a in _QUEUES.items()]
    defines += [Define(object_type=kind.name, name=name) for kind, name in _DEFAULTS.items()]
    defines += [Define(object_type=ObjectType.QMODEL.name, name=name) for name in _MODELS]
    return defines
