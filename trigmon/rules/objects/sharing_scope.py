"""QSGDISP: the disposition of an object, to one queue manager or to its queue-sharing group (mq-facts 8).

A name is one object's on a member: what the group shares cannot be a member's own as well, and an object keeps the
disposition it was defined with. CFSTRUCT is kept and not looked up.
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


def disposition(definition: Any) -> QsgDisp:
    """Returns the disposition of an object; one that has none is its queue manager's own."""
    disp: QsgDisp = getattr(definition, "qsg_disp", QsgDisp.Q_MGR)
    return disp


def check_defined(where: str, values: dict[str, Any], existing: Any, facts: Facts) -> None:
    """Checks QSGDISP of a DEFINE: one other than QMGR needs a group, and a name that is not otherwise taken.

    Raises AttrValueError without a group, ObjectNotUnique (2343) for a name that would be both shared and private.
    """
    disp = values.get("qsg_disp", QsgDisp.Q_MGR)
    if disp is not QsgDisp.Q_MGR and not facts.group:
        word = disp.name.replace("_", "")
        raise AttrValueError(f"{where} QSGDISP({word}): {facts.q_mgr.name} is in no queue-sharing group")
    if existing is not None and (disposition(existing) is QsgDisp.SHARED) is not (disp is QsgDisp.SHARED):
        there = f"is shared in {facts.group}" if disp is not QsgDisp.SHARED else f"is {facts.q_mgr.name}'s own"
        raise ObjectNotUnique(f"{where}: an object of this name {there}")


def check_altered(where: str, values: dict[str, Any], definition: Any) -> None:
    """Checks QSGDISP of an ALTER: it names the object that is meant and changes none. Raises AttrValueFixed."""
    if values.get("qsg_disp", disposition(definition)) is not disposition(definition):
        raise AttrValueFixed(f"{where} QSGDISP: an object's disposition is set once, by DEFINE")


def check_meant(where: str, qsg_disp: str, definition: Any) -> None:
    """Raises UnknownObjectName (2085) for DELETE and CLEAR of an object with another disposition than QSGDISP names."""
    if qsg_disp and disposition(definition) not in _MEANT.get(qsg_disp, ()):
        raise UnknownObjectName(f"{where} QSGDISP({qsg_disp.upper()})")
