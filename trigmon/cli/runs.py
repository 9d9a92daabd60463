"""``trigmon runs``: lists, shows, cancels and retries the runs that monitors started."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from trigmon.cli.command import command, group, invocation, reason_option, since
from trigmon.cli.run_history import history
from trigmon.cli.run_selection import any_run, find, has_failed, has_output, one
from trigmon.console.output_files import STREAMS, opened_output, start_of_last_lines, why_not
from trigmon.console.run_text import latencies, progress_text
from trigmon.mq.run import OPEN, Run, RunState, read_run

if TYPE_CHECKING:
    from trigmon.client.connection import Connection

_FOLLOW_S = 0.2
_of_queue = click.option("--queue", "q_name", metavar="QUEUE", help="The newest run for this queue.")
_of_process = click.option("--process", "process_name", metavar="PROCESS", help="The newest run of this process.")
_FIRST = (
    *("run_id", "state", "why", "exit_status", "signal", "q_name", "process_name", "occasion", "attempt", "progress"),
    *("recorded_ms", "start_ms", "first_open_ms", "first_get_ms", "end_ms", "duration_s"),
    *("taken", "committed", "backed_out", "put_aside"),
)
_LAST = ("process", "argv", "directory", "verdict", "stderr_tail")
"""What a person reads first, and last, of a run; all else stands between them as in its record."""

_COLUMNS = ["run_id", "state", "process_name", "q_name", "start_time", "duration_s", "exit_status", "progress", "why"]


@group("runs", example="trigmon runs list")
def runs() -> None:
    """The run ledger: every program that a monitor started, holds, or could not start."""


runs.add_command(history)


@command("list", "trigmon runs list --state held", runs)
@click.option("--queue", "q_name", metavar="QUEUE", help="Only runs for this queue.")
@click.option("--process", "process_name", metavar="PROCESS", help="Only runs of this process.")
@click.option("--state", type=click.Choice([state.value for state in RunState]), help="Only runs in this state.")
@click.option("--failed", is_flag=True, help="Only runs that could not start, failed or were killed.")
@click.option("--since", "since_ms", metavar="TIME", callback=since, help="Since 90s, 5m, 2h or 1d ago, or yesterday.")
@click.option("--until", "until_ms", metavar="TIME", callback=since, help="Until such a time, or 2026-11-21T09:30.")
@click.option("--count", type=click.IntRange(min=1), default=20, show_default=True, help="The newest so many.")
@click.option("--all", "everything", is_flag=True, help="Every run on record.")
def list_(count: int, everything: bool, failed: bool, since_ms: int, until_ms: int, **where: str | None) -> None:
    """List runs, newest first; a run is listed when it fits all options.

    The times of --since and --until are those at which runs were recorded: so long ago, today, yesterday, a day, or a
    time of a day. A day begins and ends by UTC, as all times here.
    """
    from trigmon.cli import output

    fields = {key: value for key, value in where.items() if value is not None}

    def fits(run: Run) -> bool:
        return (has_failed(run) or not failed) and (not until_ms or run.origin.recorded_ms < until_ms)

    limit = sys.maxsize if everything else count
    found = find(fields, limit, since_ms, fits if failed or until_ms else any_run)
    if not print_runs(found.runs):
        output.note("no such runs are on record")
    elif found.more:
        output.note(f"the newest {count} are shown; more are on record: --count N, or --all")


def print_runs(found: Iterable[Run]) -> int:
    """Prints runs as a table or JSON; returns how many there were."""
    from trigmon.cli import output

    return output.listing(map(_shown, found), _COLUMNS, lambda row: has_failed(read_run(dict(row))))


@command("show", "trigmon runs show\ntrigmon runs show 0198c1f2a3b7e41c", runs)
@click.argument("run", required=False)
@_of_queue
@_of_process
def show(run: str | None, **where: str | None) -> None:
    """Show everything on record of a run (default: the newest): its cause, its command, its end.

    RUN is an id or the beginning of one.
    """
    from trigmon.cli import output

    found = one(run, _named(run, where))
    shown = _shown(found)
    if not invocation().is_json:
        shown["verdict"] = "\n".join(shown.get("verdict") or ["not known"])
    if found.state in OPEN:
        with invocation().connected() as qm:
            shown["reserved"] = "\n".join(
                f"{row['summary']}, since {(time.time_ns() // 1_000_000 - row['since_ms']) / 1000:.1f} s"
                for row in qm.reservations(found.trigger.q_name)
            )
    output.one(shown if invocation().is_json else _for_a_reader(shown))


def _for_a_reader(shown: dict[str, Any]) -> dict[str, Any]:
    """Returns what is known of a run, what it came to first and what is long last."""
    known = {name: value for name, value in shown.items() if value not in (None, "", [], {})}
    middle = [name for name in known if name not in (*_FIRST, *_LAST)]
    return {name: known[name] for name in (*_FIRST, *middle, *_LAST) if name in known}


@command("logs", "trigmon runs logs\ntrigmon runs logs -f\ntrigmon runs logs 0198c1f2a3b7e41c --stream stderr", runs)
@click.argument("run", required=False)
@click.option("--stream", type=click.Choice(STREAMS), help="Only this one (default: each to its own).")
@click.option("-f", "--follow", is_flag=True, help="Go on printing until the run has ended.")
@click.option("--tail", type=click.IntRange(min=0), metavar="N", help="Only the last N lines of each stream.")
@_of_queue
@_of_process
@click.pass_context
def logs(
    ctx: click.Context, /, run: str | None, stream: str | None, follow: bool, tail: int | None, **where: str | None
) -> None:
    """Print what a run wrote (default: the newest with a program): output to standard output, errors to standard error.

    RUN is an id or the beginning of one.
    The files lie on the monitor's host and belong to its user. On another host, and for another user, only the end of
    the errors is shown, from the record.
    """
    from trigmon.cli import output
    from trigmon.cli.errors import FAILED

    found = one(run, _named(run, where), any_run if follow else has_output)
    with ExitStack() as until:
        if follow:
            found = _begun(found)
        try:
            files = _files(found, [stream] if stream else STREAMS, until)
        except OSError as error:
            output.note(f"trigmon: {why_not(error)}; from the record of {found.program.monitor or 'its monitor'}:")
            if stream == "stdout":
                output.note("trigmon: the record holds the end of its errors only: give --stream stderr")
                ctx.exit(FAILED)
            known = found.outcome.stderr_tail or found.why or "nothing is known"
            click.echo(known, err=stream is None, nl=not known.endswith("\n"))
            return
        if tail is not None:
            for file in files.values():
                file.seek(start_of_last_lines(file, tail))
        is_over = False
        while not is_over:
            # The state is read before the files: a run that is over has written all of them by then.
            is_over = not follow or one(found.run_id).state not in OPEN
            for name, file in files.items():
                # One stream alone is the data that was asked for, so it goes to standard output.
                while piece := file.read(65_536):
                    click.echo(piece, nl=False, err=name == "stderr" and stream is None)
            if not is_over:
                time.sleep(_FOLLOW_S)
        if follow:
            output.note(f"trigmon: run {found.run_id}: {one(found.run_id).why}")


@command("cancel", "trigmon runs cancel 0198c1f2a3b7e41c --reason 'the wrong day'", runs)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@reason_option
@click.pass_context
def cancel(ctx: click.Context, runs: tuple[str, ...], reason: str) -> None:
    """End runs: a held run is not started, and a run that has started is ended by its monitor.

    The program's process group gets SIGTERM, and SIGKILL after monitor.grace_s. For a Spark job these are spark-submit
    and, in client mode, the driver, whose end ends its executors. With SPKSTART(REST) the driver is killed on its
    cluster; a driver that spark-submit has put into a cluster (YARN, Kubernetes) may go on. The queue keeps its
    messages, and may trigger again at once: pause it first to prevent that.
    """
    from trigmon.cli import output
    from trigmon.mq.calls import CancelRun
    from trigmon.mq.replies import Recorded

    def ask(qm: Connection, run: str) -> None:
        asked = qm.ask(CancelRun(run_id=run, reason=reason), Recorded)
        ended = asked.state == "cancelled"
        result = asked.why if ended else "its monitor was asked to end it: see trigmon runs show"
        output.done(f"{run}: {result}", {"action": "cancelled" if ended else "cancelling", "run_id": run})

    _each(ctx, runs, ask)


@command("retry", "trigmon runs retry 0198c1f2a3b7e41c", runs)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.pass_context
def retry(ctx: click.Context, runs: tuple[str, ...]) -> None:
    """Start runs that have ended again, each as a new run with the same trigger message.

    The message goes to the same initiation queue, and a monitor must read there. The new run names the one it repeats.
    """
    from trigmon.cli import output
    from trigmon.mq.calls import RetryRun
    from trigmon.mq.replies import Done

    def ask(qm: Connection, run: str) -> None:
        qm.ask(RetryRun(run_id=run), Done)
        output.done(f"{run} is to run again: see trigmon runs list", {"action": "retried", "run_id": run})

    _each(ctx, runs, ask)


def _each(ctx: click.Context, runs: tuple[str, ...], ask: Callable[[Connection, str], None]) -> None:
    """Calls ``ask`` for each run, goes on after an error, and exits with the code of the first error."""
    from trigmon.cli import output
    from trigmon.cli.errors import exit_code
    from trigmon.console.error_text import sentence
    from trigmon.mq.errors import MQError

    code = 0
    with invocation().connected() as qm:
        for run in runs:
            try:
                ask(qm, run)
            except MQError as error:
                if not qm.alive:
                    raise
                output.note(f"trigmon: {sentence(error)}")
                code = code or exit_code(error)
    ctx.exit(code)


def _named(run: str | None, where: dict[str, str | None]) -> dict[str, str]:
    """Returns the options that choose a run. Raises UsageError beside a run's id."""
    named = {key: value for key, value in where.items() if value is not None}
    if run is not None and named:
        raise click.UsageError("a run is named by its id, or as the newest of a queue or a process: not by both")
    return named


def _begun(run: Run) -> Run:
    """Waits until the run has started or has ended, and returns it."""
    from trigmon.cli import output

    if run.state in (RunState.HELD, RunState.DUE):
        output.note(f"trigmon: run {run.run_id} is {run.state}: {run.why or 'about to start'}")
    while run.state in (RunState.HELD, RunState.DUE):
        time.sleep(_FOLLOW_S)
        run = one(run.run_id)
    return run


def _files(run: Run, names: Iterable[str], until: ExitStack) -> dict[str, BinaryIO]:
    """Opens the files of a run's output, until the end of the stack.

    Raises OSError when they are not on this host, not readable for this user, or no files.
    """
    files: dict[str, BinaryIO] = {}
    for name in names:
        with suppress(FileNotFoundError):
            files[name] = until.enter_context(opened_output(run.program.directory, name))
    return files


def _shown(run: Run) -> dict[str, Any]:
    """Returns a record with words for its numbers, and its duration in seconds: None while it runs or never began."""
    from trigmon.mq.enums import ApplType, word

    start, end, kind = run.program.start_ms, run.outcome.end_ms, run.trigger.appl_type
    shown = {"appl_type": word(ApplType(kind))} if kind in ApplType._value2member_map_ else {}
    took = {"duration_s": (end - start) / 1000 if start and end else None}
    if run.rows_per_s is not None:
        took["rows_per_s"] = round(run.rows_per_s, 1)
    return {**run.json, **shown, **took, **latencies(run), **_progress(run)}


def _progress(run: Run) -> dict[str, Any]:
    """Returns how far it is on its queue, and its Spark application, as text for the table."""
    text = progress_text(run)
    is_shown = (text or "progress" in run.json) and not invocation().is_json
    return {"progress": text or None} if is_shown else {}
