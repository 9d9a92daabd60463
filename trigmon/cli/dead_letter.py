"""One dead letter as ``trigmon dlq show`` prints it: its reason, what to do, its header, its descriptor, its data."""

from __future__ import annotations

from typing import Any

from trigmon.cli.command import invocation
from trigmon.console.dead_letter_text import readable, remedy, why, worded


def whole(row: dict[str, Any]) -> dict[str, Any]:
    """Returns one message, for a table or for JSON: the reason and the remedy first, the data last."""
    data, header, descriptor = row.pop("data"), row.pop("dead_letter"), worded(row.pop("descriptor"))
    meaning = {"why": why(row), "remedy": remedy(row)}
    if invocation().is_json:
        return row | meaning | {"dead_letter": header, "descriptor": descriptor} | _data(data)
    for name in ("why_not", "said"):
        if not row[name]:
            del row[name]
    headed = {f"header_{name}": value for name, value in (header or {}).items() if name not in row}
    plain = {name: value for name, value in descriptor.items() if name not in row}
    return {"msg_id": row["msg_id"], **meaning, **row, **headed, **plain, **readable(row["format"], data)}


def _data(data: bytes) -> dict[str, str]:
    import base64

    try:
        return {"data": data.decode()}
    except UnicodeDecodeError:
        return {"data_base64": base64.b64encode(data).decode()}
