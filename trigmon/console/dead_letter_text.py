"""What a dead letter means to a person: why it is there, what to do about it, its data in readable form."""

from __future__ import annotations

from typing import Any


def worded(descriptor: dict[str, Any]) -> dict[str, Any]:
    """Returns a descriptor with words for its numbers."""
    from trigmon.mq.enums import MsgType, Persistence, word

    kinds = {"msg_type": MsgType, "persistence": Persistence}
    words = {
        name: word(kind(descriptor[name]))
        for name, kind in kinds.items()
        if descriptor[name] in kind._value2member_map_
    }
    return descriptor | words


def readable(format_: str, data: bytes) -> dict[str, Any]:
    """Returns the data in readable form: text, the fields of a trigger message, or hexadecimal."""
    from msgspec.structs import asdict

    from trigmon.mq.descriptors import FORMAT_TRIGGER, unpack_tm
    from trigmon.mq.errors import TmError

    if format_ == FORMAT_TRIGGER:
        try:
            return {
                f"trigger_{name.removeprefix('trigger_')}": value for name, value in asdict(unpack_tm(data)).items()
            }
        except TmError:
            pass  # the data is shown as it is
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = ""
    if text and all(character.isprintable() or character in "\n\t" for character in text):
        return {"data": text}
    lines = [data[at : at + 32].hex(" ", 4) for at in range(0, min(len(data), 1024), 32)]
    if len(data) > 1024:
        lines.append(f"and {len(data) - 1024} bytes more, in --output json")
    return {"data_hex": "\n".join(lines)}


def why(row: dict[str, Any]) -> str:
    """Returns why a message is where it is, as a sentence."""
    from trigmon.rules.dead_letters.reason_text import reason_text

    return reason_text(row["reason"], row["said"], row["dest_q_name"], row["backout_count"])


def remedy(row: dict[str, Any]) -> str:
    """Returns what to do before the message is returned, and the command that returns it."""
    from trigmon.console.error_text import remedy_of
    from trigmon.mq.reasons import Reason

    queue = f" --queue {row['q_name']}" if not row["dest_q_mgr_name"] else ""
    to = "" if row["return_q_name"] else " --to QUEUE"
    again = f"trigmon dlq retry{queue} --msg-id {row['msg_id'].hex()}{to}"
    if row["reason"] == Reason.BACKOUT_THRESHOLD_REACHED:
        first = "see why its program fails on it, and mend that"
    else:
        first = remedy_of(row["reason"], row["dest_q_name"] or "QUEUE") or "put right what hindered it"
    return f"{first}; then: {again}"
