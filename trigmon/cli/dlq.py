"""``trigmon dlq``: lists, shows, retries and discards messages of the dead-letter queue or of a backout queue."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import click

from trigmon.cli.command import age, command, complete_names, group, invocation, nearest
from trigmon.mq.quantities import counted

if TYPE_CHECKING:
    from trigmon.client.connection import Connection
    from trigmon.mq.calls import AnySift, Sieve
    from trigmon.mq.replies import Sifted

F = TypeVar("F", bound=Callable[..., Any])

SLICE = 256
"""Messages that the queue manager looks through in one call."""
_COLUMNS = [
    *("msg_id", "dead_time", "reason_name", "dest_q_name", "backout_count", "put_appl_name", "length"),
]


@group("dlq", example="trigmon dlq list --reason BACKOUT_THRESHOLD_REACHED")
def dlq() -> None:
    """Dead letters: list, show, retry, discard.

    The commands work on the dead-letter queue of the queue manager (DEADQ) or, with --queue, on a backout queue
    (BOQNAME). The queue manager applies the filters. A message is selected when it fits all of them.
    """


def _reason(ctx: click.Context, parameter: click.Parameter, value: str | None) -> int:
    """Returns the number of a reason or feedback code, by name or number."""
    if value is None:
        return 0
    from trigmon.mq.enums import Feedback
    from trigmon.mq.reasons import Reason

    code = value.upper()
    if code.isdecimal() and 0 < int(code) < 2**31:
        return int(code)
    # TM_ERROR is both; a monitor writes the feedback code.
    names = {name: int(number) for kind in (Reason, Feedback) for name, number in kind.__members__.items() if number}
    names |= {f"MQRC_{name}": int(number) for name, number in Reason.__members__.items() if number}
    names |= {f"MQFB_{name}": int(number) for name, number in Feedback.__members__.items() if number}
    if code not in names:
        raise click.BadParameter(f"{value!r} is no reason{nearest(code, names)}")
    return names[code]


def _msg_id(ctx: click.Context, parameter: click.Parameter, value: str | None) -> bytes | str:
    """Returns a message id; the end of one, as text, where list has shortened it."""
    if value is None:
        return b""
    if end := re.fullmatch(r"(?:\.\.|…)([0-9A-Fa-f]+)", value):
        return end[1].lower()
    if not re.fullmatch(r"([0-9A-Fa-f]{2}){1,24}", value):
        raise click.BadParameter(f"{value!r} is no message id: up to 48 hexadecimal digits")
    return bytes.fromhex(value).ljust(24, b"\0")


def filtered(function: F) -> F:
    """Adds the options that select messages."""
    for option in (
        click.option("--limit", type=click.IntRange(min=1), help="At most so many messages."),
        click.option("--since", "since_ms", metavar="TIME", callback=age, help="Dead for this long or shorter: 1h."),
        click.option("--older-than", "older_ms", metavar="TIME", callback=age, help="Dead for longer than this: 5m."),
        click.option(
            "--msg-id",
            metavar="HEX",
            callback=_msg_id,
            help="Only the message with this id: whole, or its end behind two dots.",
        ),
        click.option("--dest", metavar="QUEUE", default="", help="Only messages that were meant for this queue."),
        click.option("--reason", metavar="REASON", callback=_reason, help="Only with this reason: a name or a number."),
        click.option(
            "--queue",
            "q_name",
            metavar="QUEUE",
            default="",
            shell_complete=complete_names("queue"),
            help="This queue instead of the dead-letter queue.",
        ),
    ):
        function = option(function)
    return function


@command("list", "trigmon dlq list --older-than 5m\ntrigmon dlq list --queue ORDERS.FAILED --output json", dlq)
@filtered
def list_(limit: int | None, **which: Any) -> None:
    """List dead letters in the order of a get: the time, the reason, and the queue that each was meant for."""
    from trigmon.cli import output

    with invocation().connected() as qm:
        seen = list(_listed(qm, limit, which))
    rows = [row for sifted in seen for row in sifted.rows]
    columns = _COLUMNS
    if any(row["said"] for row in rows):
        columns = [*_COLUMNS, "said"]
        rows = rows if invocation().is_json else [row | {"said": _shortened(row["said"])} for row in rows]
    if not output.listing(rows, columns):
        output.note(f"{seen[0].q_name} holds no such message")


@command("show", "trigmon dlq show\ntrigmon dlq show --dest ORDERS --output json", dlq)
@filtered
def show(limit: int | None, **which: Any) -> None:
    """Show the first message that fits, whole: why it is there, what to do, its header, its descriptor, its data."""
    from trigmon.cli import output
    from trigmon.cli.dead_letter import whole

    with invocation().connected() as qm:
        rows = [row for sifted in _listed(qm, 1, which, with_data=True) for row in sifted.rows]
    if not rows:
        raise _no_such(which)
    output.one(whole(rows[0]))


@command(
    "retry",
    "trigmon dlq retry --reason Q_FULL --dry-run\ntrigmon dlq retry --queue ORDERS.FAILED --to ORDERS",
    dlq,
)
@filtered
@click.option(
    "--to", "to_q_name", metavar="QUEUE", default="", shell_complete=complete_names("queue"), help="To this queue."
)
@click.option("--dry-run", is_flag=True, help="Print what would be returned, and to which queue; return nothing.")
@click.pass_context
def retry(ctx: click.Context, /, limit: int | None, to_q_name: str, dry_run: bool, **which: Any) -> None:
    """Return messages to their queues, each in one step; a message that its queue refuses stays.

    A message of the dead-letter queue goes to the queue that its header names, with the descriptor that it had before.
    A message of a backout queue goes to the queue that names the backout queue in BOQNAME; where several queues do,
    give one by --to. Exit 1 when any message was refused.
    """
    from trigmon.cli import output
    from trigmon.cli.errors import FAILED
    from trigmon.mq.calls import RetryDeadLetters

    with invocation().connected() as qm:
        if dry_run:
            _would(qm, limit, which, lambda row: to_q_name or row["return_q_name"], "returned")
            return
        seen = _all(qm, RetryDeadLetters, limit, which, "returning", to_q_name=to_q_name)
    count, refused = sum(sifted.count for sifted in seen), _merged(seen)
    if which["msg_id"] and not count and not refused:
        raise _no_such(which)
    result = {"q_name": seen[0].q_name, "messages": count, "refused": refused}
    output.done(f"{_messages(count)} returned from {seen[0].q_name}", result)
    for row in refused:
        output.note(f"trigmon: {_stays(row)}")
    if refused:
        ctx.exit(FAILED)


@command("discard", "trigmon dlq discard --reason TM_ERROR --older-than 7d --yes", dlq)
@filtered
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Print what would be discarded; discard nothing.")
def discard(limit: int | None, yes: bool, dry_run: bool, **which: Any) -> None:
    """Delete messages for good; on a terminal a question shows their number first."""
    from trigmon.cli import output
    from trigmon.mq.calls import DiscardDeadLetters

    asks = sys.stdin.isatty() and sys.stderr.isatty()
    if not (yes or dry_run or asks):
        raise click.UsageError("discard deletes for good, and there is no terminal to ask on: give --yes or --dry-run")
    with invocation().connected() as qm:
        if dry_run:
            _would(qm, limit, which, lambda row: "", "discarded")
            return
        if not yes:
            found = list(_listed(qm, limit, which))
            # The question was not about what comes meanwhile.
            limit = sum(sifted.count for sifted in found)
            if limit:
                click.confirm(f"Delete {_messages(limit)} of {found[0].q_name} for good?", abort=True, err=True)
        seen = _all(qm, DiscardDeadLetters, limit, which, "discarding") if limit != 0 else found
    count = sum(sifted.count for sifted in seen)
    if which["msg_id"] and not count:
        raise _no_such(which)
    output.done(f"{_messages(count)} discarded from {seen[0].q_name}", {"q_name": seen[0].q_name, "messages": count})


def _sieve(qm: Connection, which: dict[str, Any]) -> Sieve:
    """Returns the filter that the options make; ages count back from the queue manager's clock."""
    from trigmon.mq.calls import Sieve, Status
    from trigmon.mq.replies import Values

    if isinstance(which["msg_id"], str):
        which["msg_id"] = _whole_id(qm, which)
    times = {}
    if which["since_ms"] or which["older_ms"]:
        now = int(qm.ask(Status(), Values).values["now_ms"])
        times["since_ms"] = max(1, now - which["since_ms"]) if which["since_ms"] else 0
        times["before_ms"] = max(1, now - which["older_ms"]) if which["older_ms"] else 0
    return Sieve(reason=which["reason"], dest_q_name=which["dest"], msg_id=which["msg_id"], **times)


def _whole_id(qm: Connection, which: dict[str, Any]) -> bytes:
    """Returns the message id that ends so. Raises UsageError where several do, UnknownObjectName for none."""
    from trigmon.mq.errors import UnknownObjectName

    found: list[bytes] = [row["msg_id"] for sifted in _listed(qm, None, which | {"msg_id": b""}) for row in sifted.rows]
    ending = {msg_id for msg_id in found if msg_id.hex().endswith(which["msg_id"])}
    if len(ending) > 1:
        raise click.UsageError(f"{len(ending)} messages have an id that ends in {which['msg_id']}: give more of it")
    if not ending:
        raise UnknownObjectName(f"MESSAGE(..{which['msg_id']})")
    return ending.pop()


def _slices(
    qm: Connection, kind: type[AnySift], limit: int | None, which: dict[str, Any], **more: Any
) -> Iterator[Sifted]:
    """Yields the answers, slice by slice, until ``limit`` messages were tried or all that were there at the beginning.

    Messages that come meanwhile are left out: where a message fails again at once, the command would never end.
    """
    from trigmon.mq.replies import Sifted

    where = _sieve(qm, which)
    left = limit or sys.maxsize
    after: list[int] = []
    still = None
    while True:
        call = kind(q_name=which["q_name"], where=where, after=after, limit=min(left, SLICE), **more)
        sifted = qm.ask(call, Sifted)
        yield sifted
        still = (sifted.depth if still is None else still) - sifted.looked_at
        left -= sifted.count + sum(row["count"] for row in sifted.refused)
        after = sifted.after
        if not sifted.more or left <= 0 or still <= 0:
            return


def _listed(qm: Connection, limit: int | None, which: dict[str, Any], *, with_data: bool = False) -> Iterator[Sifted]:
    from trigmon.mq.calls import DeadLetters

    return _slices(qm, DeadLetters, limit, which, with_data=with_data)


def _all(
    qm: Connection, kind: type[AnySift], limit: int | None, which: dict[str, Any], doing: str, **more: Any
) -> list[Sifted]:
    """Sends the calls and returns every answer, with a progress bar on a terminal; an error undoes nothing."""
    from trigmon.cli import output

    seen: list[Sifted] = []
    hidden = not sys.stderr.isatty()
    try:
        with click.progressbar(length=1, label=doing, file=sys.stderr, hidden=hidden) as bar:
            for sifted in _slices(qm, kind, limit, which, **more):
                if not seen:
                    bar.length = max(1, sifted.depth)
                seen.append(sifted)
                bar.update(sifted.looked_at)
    except BaseException as error:
        output.note_of_end(error, sum(sifted.count for sifted in seen), f"messages are done by {doing}")
        raise
    return seen


def _would(
    qm: Connection, limit: int | None, which: dict[str, Any], goes_to: Callable[[dict[str, Any]], str], done: str
) -> None:
    """Prints which messages a command would take, and to which queues they would go."""
    from trigmon.cli import output

    seen = list(_listed(qm, limit, which))
    rows = [row for sifted in seen for row in sifted.rows]
    if which["msg_id"] and not rows:
        raise _no_such(which)
    q_name = seen[0].q_name
    to = Counter(goes_to(row) for row in rows)
    stays = Counter(row["why_not"] for row in rows if not goes_to(row)) if done == "returned" else Counter()
    parts = [f"{count} to {name}" for name, count in to.items() if name]
    count = len(rows) - stays.total()
    result: dict[str, Any] = {"q_name": q_name, "messages": count, "dry_run": True}
    if done == "returned":
        result |= {"to": {name: n for name, n in to.items() if name}, "stay": dict(stays)}
    output.done(f"{_messages(count)} of {q_name} would be {done}" + (f": {', '.join(parts)}" if parts else ""), result)
    for why, n in stays.items():
        output.note(f"trigmon: {_messages(n)} would stay: {why}; give --to QUEUE")


def _merged(seen: list[Sifted]) -> list[dict[str, Any]]:
    """Returns the refusals of all slices, one for each reason and queue."""
    merged: dict[tuple[int, str], dict[str, Any]] = {}
    for sifted in seen:
        for row in sifted.refused:
            known = merged.setdefault((row["reason"], row["to_q_name"]), row | {"count": 0})
            known["count"] += row["count"]
    return list(merged.values())


def _stays(row: dict[str, Any]) -> str:
    from trigmon.console.error_text import sentence
    from trigmon.mq.errors import MQError

    count = f"{_messages(row['count'])} {'stays' if row['count'] == 1 else 'stay'}"
    if not row["to_q_name"]:
        return f"{count}: {row['about']}; give --to QUEUE"
    return f"{count}: {sentence(MQError.of(row['reason'], row['about']))}"


def _messages(count: int) -> str:
    return counted(count, "message")


def _shortened(text: str, most: int = 60) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _no_such(which: dict[str, Any]) -> Exception:
    from trigmon.mq.errors import UnknownObjectName

    return UnknownObjectName(f"MESSAGE({which['msg_id'].hex()})" if which["msg_id"] else "MESSAGE(*): none fits")
