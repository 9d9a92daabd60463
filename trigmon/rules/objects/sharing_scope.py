"""QSGDISP: whose an object is, one queue manager's or its queue-sharing group's (mq-facts 8).

A name is one object's on a member: what the group shares cannot be a member's own as well, and an object stays whose
it was defined as. CFSTRUCT is kept and not looked up.
"""

from __future__ import annotations

from typing import Any

from trigmon.mq.enums import QsgDisp
from trigmon.mq.errors import AttrValueError, AttrValueFixed, ObjectNotUnique, UnknownObjectName
from trigmon.rules.model.facts import Facts

_MEANT = {
    "qmgr": (QsgDisp.Q_MGR,),
    "copy": (QsgDisp.COPY,),
    "private": (QsgDisp.Q_MGR, QsgDisp.COPY),
    "shared": (QsgDisp.SHARED,),
    "group": (QsgDisp.GROUP,),
}


def whose(definition: Any) -> QsgDisp:
    """The disposition of an object; one that has none is its queue manager's own."""
    disp: QsgDisp = getattr(definition, "qsg_disp", QsgDisp.Q_MGR)
    return disp


def check_defined(where: str, values: dict[str, Any], existing: Any, facts: Facts) -> None:
    """DEFINE of what is not this queue manager's own needs a group, and a name that is not otherwise taken.

    Raises AttrValueError without a group, ObjectNotUnique (2343) for a name that would be both shared and private.
    """
    disp = values.get("qsg_disp", QsgDisp.Q_MGR)
    if disp is not QsgDisp.Q_MGR and not facts.group:
        word = disp.name.replace("_", "")
        raise AttrValueError(f"{where} QSGDISP({word}): {facts.q_mgr.name} is in no queue-sharing group")
    if existing is not None and (whose(existing) is QsgDisp.SHARED) is not (disp is QsgDisp.SHARED):
        there = f"is shared in {facts.group}" if disp is not QsgDisp.SHARED else f"is {facts.q_mgr.name}'s own"
        raise ObjectNotUnique(f"{where}: an object of this name {there}")


def check_altered(where: str, values: dict[str, Any], definition: Any) -> None:
    """ALTER says by QSGDISP which object is meant, and changes none. Raises AttrValueFixed."""
    if values.get("qsg_disp", whose(definition)) is not whose(definition):
        raise AttrValueFixed(f"{where} QSGDISP: whose an object is, is said once, by DEFINE")


def check_meant(where: str, said: str, definition: Any) -> None:
    """DELETE and CLEAR of an object that is another's than QSGDISP says. Raises UnknownObjectName (2085)."""
    if said and whose(definition) not in _MEANT.get(said, ()):
        raise UnknownObjectName(f"{where} QSGDISP({said.upper()})")
