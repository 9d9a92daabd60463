"""SET AUTHREC, the rights of a user on an object, and what a definition may name besides itself."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from trigmon.mq.attributes import OBJECT_TYPES, AuthorityRecord, Definition
from trigmon.mq.calls import ExplainRights, SetAuthority
from trigmon.mq.enums import ObjectType, QsgDisp
from trigmon.mq.errors import ObjectNameError, UnknownObjectName
from trigmon.mq.replies import Values
from trigmon.mq.rights import (
    OBJECT_TYPES as RECORD_TYPES,
)
from trigmon.mq.rights import (
    PLAIN_WORDS,
    RIGHTS,
    SELF,
    Right,
    canonical,
    read_record_name,
    read_rights,
)
from trigmon.rules.call_rights import of_q_mgr
from trigmon.rules.model.authority import Need, User, Verdict, check_right, decide_right, grant_command
from trigmon.rules.model.changes import SetDefinition
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.facts import WideFacts
from trigmon.rules.model.manager_state import ManagerState
from trigmon.rules.model.stored_messages import Found

_NAMED = {
    "base_q_name": ("queue", Right.CHG),  # who may use the alias may use the queue
    "backout_requeue_q_name": ("queue", Right.PUT),
    "xmit_q_name": ("queue", Right.PUT),
    "remote_q_mgr_name": ("queue", Right.PUT),
    "initiation_q_name": ("queue", Right.PUT),
    "process_name": ("process", Right.CTRL),
    "q_name": ("queue", Right.CTRL),
}
"""The rights that a definition needs on what it names: an attribute of :mod:`trigmon.mq.attributes` each."""


def decide_set_authority(call: SetAuthority, facts: WideFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Decides SET AUTHREC: rights are added to a record and removed from it, in one step.

    A record stays when its last right goes: a profile that gives nothing hides those that fit more names.
    """
    about = read_record_name(call.name)
    before = facts.named if isinstance(facts.named, AuthorityRecord) else None
    add, remove = read_rights(call.add), read_rights(call.remove)
    if before is None and not call.add:
        raise UnknownObjectName(f"AUTHREC({about})")
    there = before or AuthorityRecord(name=str(about), created_ms=now)
    rights = (read_rights(there.authorities) | add) & ~remove
    after = replace(there, authorities=canonical([right.name for right in RIGHTS if right & rights]), altered_ms=now)
    values = {"before": before.authorities if before is not None else "", "after": after.authorities}
    return Decision(Values(values={"name": after.name, **values}), [SetDefinition(ObjectType.AUTHREC, after)])


def decide_explain_rights(call: ExplainRights, facts: WideFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Gathers what the rights of a user on an object follow from; :func:`complete_explain_rights` judges it."""
    kind = call.object_type.lower()
    if kind not in RECORD_TYPES:
        raise ObjectNameError(f"{call.object_type}: known are {', '.join(RECORD_TYPES)}")
    owner = facts.queue.definition.made_by if kind == "queue" and facts.queue is not None and not facts.alias else ""
    name = SELF if kind == "qmgr" else call.name
    return Decision(
        Values(values={"need": Need(Right(0), kind, name, owner), "records": facts.records, "asks": facts.connection})
    )


def complete_explain_rights(call: ExplainRights, reply: Values, manager: ManagerState) -> Values:
    """Returns each right with the verdict on it, as the user's next call gets it."""
    need, records, asks = (reply.values[key] for key in ("need", "records", "asks"))
    user: User = manager.known_user(call.user, call.groups) if call.user else asks
    rows = []
    for word in PLAIN_WORDS:
        parts = [right for right in RIGHTS if right & read_rights(word)]
        verdicts = [(right, decide_right(need._replace(right=right), user, records)) for right in parts]
        has = [right for right, verdict in verdicts if verdict.has]
        _, verdict = next(((r, v) for r, v in verdicts if not v.has), verdicts[0])
        row = {"right": word, "has": len(has) == len(parts), "why": verdict.why}
        if 0 < len(has) < len(parts):
            row["only"] = [str(one.name).lower() for one in has]
        rows.append({**row, "remedy": _remedy(need, user, verdict, word)})
    about = {"user": user.user, "groups": list(user.groups), "object_type": need.object_type, "name": need.name}
    of = {"is_administrator": user.is_administrator, "is_monitor": user.is_monitor, "is_setter": user.is_setter}
    return replace(reply, values={**about, **of, "has_records": records is not None, "rights": rows})


def _remedy(need: Need, user: User, verdict: Verdict, word: str) -> str:
    return "" if verdict.has or "are for administrators" in verdict.why else grant_command(need, user, word)


def check_named(definition: Definition, before: Any, facts: WideFacts) -> None:
    """Checks the rights on what a new definition names, beside those on itself. Raises NotAuthorized (2035).

    Otherwise an alias of one's own would open every queue, and a trigger of one's own would start every process.
    """
    if facts.connection.is_administrator or OBJECT_TYPES[type(definition)] is ObjectType.QMGR:
        return
    what = f"{definition.name}: naming it"
    if getattr(definition, "qsg_disp", QsgDisp.Q_MGR) in (QsgDisp.GROUP, QsgDisp.SHARED):
        check_right(of_q_mgr(Right.SYSTEM), facts.connection, facts.records, f"{definition.name}: a group's object")
    for attribute, (kind, right) in _NAMED.items():
        name = getattr(definition, attribute, "")
        if name and name != getattr(before, attribute, ""):
            check_right(Need(right, kind, name), facts.connection, facts.records, what)
