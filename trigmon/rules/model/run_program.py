"""The source of what a run executes: the queue manager's own trigger message, or a definition; never its writer.

A monitor writes the ledger, and programs of its user can do what it can. With RUNAS the ledger would make them any
user that a definition names. So a run that may start is recorded only as in a trigger message that the same unit of
work has got: one that the queue manager wrote, in every field; one that an application put, as far as it names a queue
and the process of that queue, and the rest is the definition's. Of one that a monitor got from a queue manager
elsewhere the definition says all, and it runs as no other user than the monitor's. What is executed never changes
behind that.
An administrator may define processes, and so may write any record.
"""

from __future__ import annotations

from msgspec.structs import replace

from trigmon.mq.attributes import Process
from trigmon.mq.descriptors import FORMAT_TRIGGER, TM_LENGTH, MessageDescriptor, TriggerMessage, unpack_tm
from trigmon.mq.enums import ApplType, MsgType
from trigmon.mq.errors import NotAuthorized, TmError
from trigmon.mq.run import Run, RunJson, whole_trigger
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.stored_messages import StoredMessage

FIXED = (
    *(
        *TriggerMessage.__struct_fields__,
        "process",
        "initiation_q",
        "occasion",
        "verdict",
        "recorded_ms",
        "triggered_ms",
        "schedule",
        "moment_ms",
        "traceparent",
    ),
    *("bridge", "remote_q_mgr", "remote_initiation_q", "remote_msg_id", "bridged_by", "remote_before"),
    *("repeats", "attempt", "retries", "joins", "cancelled_by", "cancelled_ms", "cancel_reason"),
)
"""What a monitor does not change in a record."""


def is_the_queue_managers(descriptor: MessageDescriptor) -> bool:
    """Returns whether the queue manager wrote this trigger message.

    It overwrites the type in a client's put and in a context that a client passes on
    (:mod:`trigmon.rules.messages.context`). A report is the queue manager's as well, but what it carries is the
    sender's.
    """
    return descriptor.put_appl_type == ApplType.QMGR and descriptor.msg_type == MsgType.DATAGRAM


def as_defined(trigger: TriggerMessage, process: Process) -> TriggerMessage:
    """Returns a trigger message with what the process definition of today executes."""
    return replace(
        trigger,
        appl_type=int(process.appl_type),
        appl_id=process.appl_id,
        env_data=process.env_data,
        user_data=process.user_data,
    )


def not_of_its_queue(trigger: TriggerMessage, facts: Facts) -> str:
    """Returns why a trigger message of an application starts nothing; "" where its queue names its process."""
    if facts.process is None:
        return f"process {trigger.process_name} is not defined" if trigger.process_name else "it names no process"
    queue = facts.queue
    if queue is None or queue.is_deleted:
        return f"QLOCAL({trigger.q_name}) is not defined"
    named = queue.definition.process_name
    return "" if named == trigger.process_name else f"QLOCAL({trigger.q_name}) names process {named or 'none'}"


def with_known_program(run: Run, facts: Facts) -> Run:
    """Returns a new run with its origin as the queue manager knows it.

    Raises NotAuthorized where the run could start and no trigger message got in this unit of work asks for it.
    """
    if run.is_ended or facts.connection.is_administrator:
        return run
    recorded = whole_trigger(run.json)
    if recorded is None:
        raise NotAuthorized(f"RUN({run.run_id}): its record has no trigger message")
    if run.bridged.remote_q_mgr:
        return _of_bridge(run, recorded, facts)
    for message in facts.unit.triggers if facts.unit is not None else ():
        if _agrees(message, recorded, facts):
            is_own = is_the_queue_managers(message.descriptor)
            occasion = message.descriptor.appl_origin_data.strip() if is_own else ""
            return run.changed(initiation_q=message.q_name, occasion=occasion)
    raise NotAuthorized(
        f"RUN({run.run_id}): no trigger message got in this unit of work starts {recorded.process_name or 'it'} for "
        f"{recorded.q_name or 'a queue'} so: what a run executes comes from the queue manager, or from its definition"
    )


def _of_bridge(run: Run, recorded: TriggerMessage, facts: Facts) -> Run:
    """Returns a new run whose trigger message a monitor got elsewhere, where the queue manager sees no unit of work.

    The monitor could have invented it. So what is executed is the definition's, and as nobody but the monitor's user.
    Raises NotAuthorized.
    """
    process = facts.process
    if not recorded.q_name.endswith(f"@{run.bridged.remote_q_mgr}"):
        raise NotAuthorized(f"RUN({run.run_id}): {recorded.q_name!r} is no queue of {run.bridged.remote_q_mgr}")
    if process is None or as_defined(recorded, process) != recorded:
        named = recorded.process_name or "no process"
        raise NotAuthorized(
            f"RUN({run.run_id}): a run for {recorded.q_name} executes what PROCESS defines, and it names {named}: only "
            "a monitor of an administrator starts what a trigger message from elsewhere says itself"
        )
    if process.run_as:
        raise NotAuthorized(
            f"RUN({run.run_id}): PROCESS({process.name}) has RUNAS({process.run_as}): for {recorded.q_name} only a "
            "monitor of an administrator starts it"
        )
    return run.changed(bridged_by=facts.connection.user)


def check_unchanged(before: Run, fields: RunJson, facts: Facts) -> None:
    """Raises NotAuthorized for a change of what a run executes, or of why it is there."""
    if facts.connection.is_administrator:
        return
    if changed := [name for name in FIXED if name in fields and fields[name] != before.json.get(name)]:
        raise NotAuthorized(f"RUN({before.run_id}): {', '.join(changed)}: a monitor does not change this in a record")


def is_trigger(message: StoredMessage) -> bool:
    """Returns whether a message may be a trigger message, of the queue manager or of an application."""
    return message.descriptor.format == FORMAT_TRIGGER and len(message.data) == TM_LENGTH


def _agrees(message: StoredMessage, recorded: TriggerMessage, facts: Facts) -> bool:
    """Returns whether a run that executes this may follow from that message."""
    try:
        came = unpack_tm(message.data)
    except TmError:
        return False
    if is_the_queue_managers(message.descriptor):
        return came == recorded
    if facts.process is None or not_of_its_queue(came, facts):
        return False
    return as_defined(came, facts.process) == recorded
