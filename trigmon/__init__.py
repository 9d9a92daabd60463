"""trigmon: a queue manager with IBM MQ's semantics, and a trigger monitor that starts programs and Spark jobs.

>>> import trigmon
>>> with trigmon.connect("QM1", application="loader") as qm:  # doctest: +SKIP
...     qm.put("ORDERS", b"one")

Names are looked up when they are first used, so importing the package costs next to nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # what type checkers take for true, without the import of typing
if TYPE_CHECKING:
    from typing import Any

    from trigmon.client.address import connect
    from trigmon.client.connection import Connection
    from trigmon.client.message import Message, Receipt
    from trigmon.client.queue import Queue
    from trigmon.client.triggered import Triggered, triggered
    from trigmon.mq.errors import ConnectionBroken, MQError, NoMsgAvailable
    from trigmon.mq.reasons import Reason

    __version__: str

__all__ = [
    "Connection",
    "ConnectionBroken",
    "MQError",
    "Message",
    "NoMsgAvailable",
    "Queue",
    "Reason",
    "Receipt",
    "Triggered",
    "__version__",
    "connect",
    "triggered",
]

_HOMES = {
    "Connection": "trigmon.client.connection",
    "Message": "trigmon.client.message",
    "Queue": "trigmon.client.queue",
    "Reason": "trigmon.mq.reasons",
    "Receipt": "trigmon.client.message",
    "Triggered": "trigmon.client.triggered",
    "connect": "trigmon.client.address",
    "triggered": "trigmon.client.triggered",
}


def __getattr__(name: str) -> Any:
    """Returns a public name, or the class of any reason: ``trigmon.QFull``."""
    import importlib

    if name == "__version__":
        from importlib.metadata import version

        return version("trigmon")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name[:1].isupper():
        errors = importlib.import_module("trigmon.mq.errors")
        if isinstance(found := getattr(errors, name, None), type) and issubclass(found, errors.MQError):
            return found
    raise AttributeError(f"module 'trigmon' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
