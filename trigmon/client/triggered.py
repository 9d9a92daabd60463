"""What a program finds in its environment when a trigger started it."""

from __future__ import annotations

import os
from typing import NamedTuple


class Triggered(NamedTuple):
    """The trigger message this process was started for, and the run it is.

    ``occasion`` is the law's name of what happened: ``1`` a message was put, ``12`` the last reader closed, ...
    """

    q_mgr_name: str
    q_name: str
    process_name: str
    trigger_data: str
    user_data: str
    env_data: str
    occasion: str
    run_id: str


def triggered() -> Triggered | None:
    """Returns the trigger message this process was started for, or None when nobody's trigger started it."""
    said = os.environ.get
    if not said("TRIGMON_QNAME"):
        return None
    return Triggered(
        q_mgr_name=said("TRIGMON_QMGR", ""),
        q_name=said("TRIGMON_QNAME", ""),
        process_name=said("TRIGMON_PROCESS", ""),
        trigger_data=said("TRIGMON_TRIGDATA", ""),
        user_data=said("TRIGMON_USERDATA", ""),
        env_data=said("TRIGMON_ENVDATA", ""),
        occasion=said("TRIGMON_OCCASION", ""),
        run_id=said("TRIGMON_RUN", ""),
    )
