"""The record of a new run, and its id. What a record holds: :mod:`trigmon.mq.run`."""

from __future__ import annotations

from hashlib import blake2b
from typing import Unpack

from trigmon.mq.descriptors import TriggerMessage
from trigmon.mq.replies import Recorded
from trigmon.mq.run import Run, RunFields, RunState, new_run

_OF_MESSAGE = 20


def new_run_id(now_ms: int, msg_id: bytes, after: str = "0") -> str:
    """Returns the id of the run of a trigger message: 11 digits of time, 5 of the message's id.

    It sorts by time, and behind ``after``, the one made before.
    """
    of_message = int.from_bytes(blake2b(msg_id, digest_size=4).digest(), "big") >> (32 - _OF_MESSAGE)
    return f"{max((now_ms << _OF_MESSAGE) + of_message, int(after, 16) + 1):016x}"


def bridged_run_id(put_ms: int, q_mgr_name: str, msg_id: bytes, more: int = 0) -> str:
    """Returns the id of the run of a trigger message from elsewhere: the same whenever that message is taken.

    So the ledger, which has each id once, has one run a message. It sorts by the time at which the message was put.
    ``more`` counts up where the ledger has this id for another message.
    """
    of_message = int.from_bytes(blake2b(q_mgr_name.encode() + b"\0" + msg_id, digest_size=4).digest(), "big")
    return f"{(max(put_ms, 0) << _OF_MESSAGE) + ((of_message + more) & ((1 << _OF_MESSAGE) - 1)):016x}"


def recorded(run_id: str, trigger: TriggerMessage, /, *, now_ms: int, **known: Unpack[RunFields]) -> Run:
    """Returns a new run with its whole record; ``known`` overrides what is not known yet of each."""
    fields: RunFields = {
        "run_id": run_id,
        "state": RunState.DUE,
        "q_name": trigger.q_name,
        "process_name": trigger.process_name,
        "trigger_data": trigger.trigger_data,
        "appl_type": trigger.appl_type,
        "appl_id": trigger.appl_id,
        "env_data": trigger.env_data,
        "user_data": trigger.user_data,
        "occasion": "",
        "argv": [],
        "directory": "",
        "user": "",
        "pid": 0,
        "start_ms": 0,
        "end_ms": 0,
        "exit_status": None,
        "signal": None,
        "stderr_tail": "",
        "why": "",
        "monitor": "",
        "host": "",
        "recorded_ms": now_ms,
        "initiation_q": "",
        "repeats": "",
        "attempt": 1,
    }
    return new_run(**(fields | known))


def as_recorded(run: Run, stands: Recorded) -> Run:
    """Returns a new run as the ledger has recorded it."""
    return run.changed(state=RunState(stands.state), why=stands.why, process=stands.process)
