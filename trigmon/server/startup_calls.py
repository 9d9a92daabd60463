"""Calls the daemon makes itself, at its start and between turns: as an administrator, and durable when they return."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trigmon.mq.attributes import EVERY_TYPE
from trigmon.mq.calls import Call, Disconnect, Display
from trigmon.mq.errors import MQError
from trigmon.mq.paging import all_rows
from trigmon.mq.replies import Refused, Reply
from trigmon.qmgr.manager import QueueManager
from trigmon.qmgr.sessions import Identity
from trigmon.rules.model.stored_messages import SLICE
from trigmon.server.exit_status import MISCONFIGURED, STORE_BROKEN, CannotStart
from trigmon.server.peer_identity import user_name

_OWN = "trigmon"


def perform(manager: QueueManager, calls: Sequence[Call]) -> list[Reply]:
    """Makes these calls in order on a connection of their own and returns the replies.

    Raises MQError for the first refused.
    """
    uid = os.geteuid()
    identity = Identity(
        client_id=f"{_OWN}-{os.getpid()}",
        application=_OWN,
        pid=os.getpid(),
        uid=uid,
        user=user_name(uid),
        administrator=True,
    )
    session = manager.connect(identity)
    answers = manager.turn([(session, number, call) for number, call in enumerate([*calls, Disconnect()], 1)])
    replies = [answer.reply for answer in answers if answer.session is session][: len(calls)]
    for reply in replies:
        if isinstance(reply, Refused):
            raise MQError.of(reply.reason, reply.about)
    return replies


def rows(manager: QueueManager, object_type: str) -> list[dict[str, Any]]:
    """Returns every object of a type ("queue" for all queues), as DISPLAY shows it."""
    return list(all_rows(lambda call: perform(manager, [call])[0], Display(object_type=object_type)))


def apply_definitions(manager: QueueManager, paths: Sequence[str], *, is_new: bool) -> list[str]:
    """Makes the objects of these files that do not exist, and returns what was made, as words for the log.

    A new queue manager also gets the attributes the files give to what it was born with; later starts undo nobody's
    ALTER. Raises CannotStart for files that define nothing sensible and for what the rules refuse.
    """
    if not paths:
        return []
    # Who has no such files need not wait for what reads them: a restart is as long as its imports.
    from trigmon.definitions.apply_plan import plan
    from trigmon.definitions.definition_files import DefinitionError, read_files

    made = []
    try:
        wanted = read_files(Path(path) for path in paths)
        existing = [row for kind in EVERY_TYPE for row in rows(manager, kind)]
        steps = plan(wanted, existing, create=not is_new)
        for start in range(0, len(steps), SLICE):
            perform(manager, [step.call for step in steps[start : start + SLICE]])
        made = [f"{step.object_type} {step.name}" for step in steps]
    except (DefinitionError, MQError) as error:
        status = STORE_BROKEN if getattr(error, "can_pass", False) else MISCONFIGURED
        raise CannotStart(f"the definitions cannot be applied: {error}", status) from error
    return made
