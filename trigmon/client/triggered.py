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
    variable = os.environ.get
    if not variable("TRIGMON_QNAME"):
        return None
    return Triggered(
        q_mgr_name=variable("TRIGMON_QMGR", ""),
        q_name=variable("TRIGMON_QNAME", ""),
        process_name=variable("TRIGMON_PROCESS", ""),
        trigger_data=variable("TRIGMON_TRIGDATA", ""),
        user_data=variable("TRIGMON_USERDATA", ""),
        env_data=variable("TRIGMON_ENVDATA", ""),
        occasion=variable("TRIGMON_OCCASION", ""),
        run_id=variable("TRIGMON_RUN", ""),
    )
