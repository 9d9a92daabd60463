"""What an operator does from a console: each function makes its calls on a connection and returns a text."""

from __future__ import annotations

from typing import Any

from trigmon.client.connection import Connection
from trigmon.console.dead_letter_text import why
from trigmon.console.output_files import STREAMS, tail_of, why_not
from trigmon.mq.attributes import ATTRIBUTES
from trigmon.mq.calls import CancelRun, DeadLetters, Display, Pause, Resume, Runs, Status
from trigmon.mq.descriptors import FORMAT_TRIGGER, TriggerMessage, pack_tm
from trigmon.mq.enums import ObjectType
from trigmon.mq.errors import CommandFailed, UnknownObjectName
from trigmon.mq.quantities import span
from trigmon.mq.replies import Listing, Recorded, Sifted, Values
from trigmon.mq.run import Run, read_run

LINES = 400
"""So many of the last lines of a run's output are shown."""
MOST_LETTERS = 100
PREVIEW = 60
"""So many characters of a dead letter's data are shown."""


def pause(qm: Connection, what: str, name: str, reason: str) -> str:
    """Pauses a queue, a process or everything (``what``): nothing is started for it.

    Raises MQError, CommandFailed where it is paused already.
    """
    qm.call(Pause(what=what, name="" if what == "everything" else name, reason=reason))
    return f"{name} is paused; what runs goes on"


def resume(qm: Connection, what: str, name: str) -> str:
    """Ends the pause of a queue, a process or everything (``what``), or what the breaker holds.

    Raises MQError, CommandFailed where it is not paused.
    """
    qm.call(Resume(what=what, name="" if what == "everything" else name))
    return f"{name} is resumed"


def start(qm: Connection, q_name: str) -> str:
    """Starts the process of a queue now, without regard to the trigger conditions. Raises MQError."""
    queue = _row(qm, "QLOCAL", q_name)
    if not queue["process_name"]:
        raise CommandFailed(f"{q_name} names no process: trigmon queue alter {q_name} PROCESS=NAME")
    definition = _row(qm, "PROCESS", queue["process_name"])
    if not queue["initiation_q_name"] or not definition["appl_id"]:
        raise CommandFailed(f"{q_name} names no initiation queue, or {definition['name']} no program")
    put_trigger_message(qm, definition, queue, queue["initiation_q_name"])
    return f"{definition['name']} is to run for {q_name}"


def put_trigger_message(
    qm: Connection,
    definition: dict[str, Any],
    queue: dict[str, Any],
    initiation_q: str,
    trigger_data: str | None = None,
) -> None:
    """Puts a trigger message for a process and a queue, both as DISPLAY shows them. Raises MQError."""
    appl_type = ATTRIBUTES[ObjectType.PROCESS]["appl_type"].read(definition["appl_type"], definition["name"])
    message = TriggerMessage(
        q_name=queue["name"],
        process_name=definition["name"],
        trigger_data=queue["trigger_data"] if trigger_data is None else trigger_data,
        appl_type=int(appl_type),
        appl_id=definition["appl_id"],
        env_data=definition["env_data"],
        user_data=definition["user_data"],
    )
    qm.put(initiation_q, pack_tm(message), format=FORMAT_TRIGGER)


def cancel(qm: Connection, run_id: str, reason: str) -> str:
    """Ends a run, or has its monitor end it. Raises MQError, CommandFailed where it has ended."""
    asked = qm.ask(CancelRun(run_id=run_id, reason=reason), Recorded)
    return asked.why if asked.state == "cancelled" else f"{run_id}: its monitor was asked to end it"


def explain(qm: Connection, q_name: str) -> str:
    """Returns why the next message does or does not start a program, and why the last one did or did not."""
    return str(qm.explain(q_name, why_not=True))


def logs(qm: Connection, where: dict[str, str]) -> str:
    """Returns the last lines that the newest run wrote that fits and had a program.

    ``where`` has one of ``run_id``, ``q_name`` and ``process_name``.
    """
    found = [read_run(row) for row in qm.ask(Runs(where=where, limit=20), Listing).rows]
    if not found:
        return f"no run for {' '.join(where.values())} is on record"
    run = next((run for run in found if run.program.directory), found[0])
    head = f"run {run.run_id} of {run.slot} for {run.trigger.q_name}: {run.state}"
    why = f"; {run.why}" if run.why else ""
    return f"{head}{why}\n\n{_output(run)}"


def dead_letters(qm: Connection, q_name: str) -> str:
    """Returns the dead letters of a queue, of the dead-letter queue where the name is blank; an age and a line each."""
    now = qm.ask(Status(), Values).values["now_ms"]
    found = qm.ask(DeadLetters(q_name=q_name, limit=MOST_LETTERS, with_data=True), Sifted)
    if not found.rows:
        return f"no dead letters on {found.q_name}"
    lines = [f"{found.depth} on {found.q_name}; trigmon dlq show, retry and discard act on them", ""]
    for row in found.rows:
        data = _printable(row["data"][:PREVIEW].decode(errors="replace"))
        lines.append(
            f"{span(now - row['dead_ms']):>7} ago  to {row['dest_q_name'] or '-'}  {why(row)}\n             {data}"
        )
    return "\n".join(lines)


def _row(qm: Connection, object_type: str, name: str) -> dict[str, Any]:
    for row in qm.ask(Display(object_type=object_type, name=name), Listing).rows:
        if row["name"] == name:
            return row
    raise UnknownObjectName(f"{object_type}({name})")


def _output(run: Run) -> str:
    """Returns the end of what a run wrote, from its files where they can be read here, else from its record."""
    parts, missing = [], []
    for name in STREAMS:
        try:
            piece = tail_of(run.program.directory, name)
        except FileNotFoundError:
            continue
        except OSError as error:
            missing.append(why_not(error))
            continue
        if lines := piece.text.splitlines()[-LINES:]:
            parts += [f"-- {name} --", *map(_printable, lines)]
    if not parts and run.outcome.stderr_tail:
        parts = ["-- stderr, from the record --", *map(_printable, run.outcome.stderr_tail.splitlines())]
    return "\n".join([*dict.fromkeys(missing), *parts]) or "it wrote nothing"


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() or c == "\t" else "\u00b7" for c in text)
