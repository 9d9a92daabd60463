"""A watch for a person, in one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trigmon.mq.explanation import moment


def line(row: Mapping[str, Any]) -> str:
    """Returns which files a watch puts messages for, and how it is: a row of DISPLAY WATCH."""
    parts = [f"watch {row['name']}: the files {row['pattern']} of {row['directory']}, {row['state']}"]
    if row["paused"]:
        parts.append(str(row["paused"]))
    if row["files_waiting"] or row["files_taken"]:
        parts.append(f"{row['files_waiting']} there, {row['files_taken']} on the way")
    if row["last_put_ms"]:
        parts.append(f"the last was {row['last_file']} at {moment(row['last_put_ms'])}")
    if row["problem"]:
        parts.append(str(row["problem"]))
    return "; ".join(parts)
