"""Words of MQSC that a remedy is made of."""

from __future__ import annotations

import re

from trigmon.mq.names import NAME_LENGTH


def quoted_name(name: str) -> str:
    """Returns a name as MQSC reads it: in quotes where it would be folded to capitals."""
    return name if re.fullmatch(r"[A-Z0-9._]+", name) else f"'{name}'"


def quoted_text(text: str) -> str:
    """Returns a text as MQSC reads it."""
    return "'" + (text.replace("'", "''") or " ") + "'"


def related(name: str, ending: str) -> str:
    """Returns a name of legal length for what goes with this one."""
    return f"{name[: NAME_LENGTH - len(ending)]}{ending}"
