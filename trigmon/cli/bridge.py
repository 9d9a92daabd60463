"""``trigmon bridge``: queue managers of IBM MQ elsewhere, named in the settings' section bridges."""

from __future__ import annotations

from trigmon.cli.bridge_check import check
from trigmon.cli.bridge_copy import copy
from trigmon.cli.command import group


@group("bridge", example="trigmon bridge copy ORDERS@PROD")
def bridge() -> None:
    """Queues of IBM MQ elsewhere, reached through IBM's package ibmmq (extra bridge).

    The settings' section bridges names the queue managers and how they are reached.
    """


bridge.add_command(copy)
bridge.add_command(check)
