"""Commands that are wrong as text: MQSC's reader says so, with a command's reason, before anything is asked."""

from __future__ import annotations

from trigmon.mq.reasons import Reason

SCRIPTS: dict[Reason, str] = {
    Reason.PARM_SYNTAX_ERROR: "DEFINE QLOCAL(A) TRIGGERS",
    Reason.PARM_CONFLICT: "DEFINE QLOCAL(A) TRIGGER NOTRIGGER",
    Reason.PARM_MISSING: "DEFINE QLOCAL(A) MAXDEPTH",
    Reason.PARM_VALUE_ERROR: "DISPLAY QSTATUS(A) TYPE(NEITHER)",
}
