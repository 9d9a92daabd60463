"""The page of a run: its timeline, what it did to its queue, its output, why it was started; live while it runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from trigmon.client.connection import Connection
from trigmon.console.error_text import sentence
from trigmon.console.output_files import STREAMS, Piece, read_from, tail_of, why_not
from trigmon.console.run_text import latencies, progress_text, spark_progress
from trigmon.console.web.run_list import outcome_of
from trigmon.console.web.web_console import WebConsole, console_of, event, now_ms
from trigmon.mq.calls import Runs
from trigmon.mq.enums import ApplType
from trigmon.mq.errors import MQError, UnknownObjectName
from trigmon.mq.replies import Listing
from trigmon.mq.run import OPEN, Run, RunState, read_run

EVERY_S = 0.5


class Moment(msgspec.Struct, frozen=True):
    """A moment of a run's life; ``after_s`` is the time since the moment before it, ``at_ms`` 0 for not yet."""

    name: str
    at_ms: int
    after_s: float | None
    note: str = ""


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    """All that the page shows of a run beside its output."""

    run: Run
    outcome: str
    mark: str
    timeline: list[Moment]
    progress: str
    stages: tuple[int, int] | None
    latencies: dict[str, float]
    ui: str
    is_open: bool
    reserved: list[str]
    process: dict[str, Any]


async def run_page(request: Request) -> Response:
    """Returns the page."""
    console, run_id = console_of(request), request.path_params["run_id"]
    view = await console.clients.read(lambda qm: read_run_view(qm, run_id))
    output, why_none = await asyncio.to_thread(_output, view.run)
    return console.page(
        "run.html",
        run_id=run_id,
        view=view,
        fragment=_fragment(console, view),
        output=output,
        why_no_output=why_none,
        note=console.note(request),
        place=",".join(str(output[name].end if name in output else 0) for name in STREAMS),
    )


async def run_events(request: Request) -> Response:
    """Returns what changes of it, and what it writes, as server-sent events. Raises UnknownObjectName."""
    console, run_id = console_of(request), request.path_params["run_id"]
    given = request.headers.get("last-event-id") or request.query_params.get("from", "")

    async def read() -> RunView:
        return await console.clients.read(lambda qm: read_run_view(qm, run_id))

    await console.must_be_there(("run", run_id), read)
    return console.live(_events(console, run_id, read, _offsets(given)))


def _offsets(text: str) -> dict[str, int]:
    numbers = [int(part) if part.isdecimal() and len(part) < 19 else 0 for part in text.split(",")]
    return dict(zip(STREAMS, [*numbers, 0, 0][:2], strict=True))


async def _events(
    console: WebConsole, run_id: str, read: Callable[[], Awaitable[RunView]], offsets: dict[str, int]
) -> AsyncIterator[str]:
    """Yields the part of the page, pieces of output, and at last that the run is over, or no longer on record."""
    last, goes_on = "", True
    while goes_on:
        try:
            # The state is read before the files: a run that is over has written all of them by then.
            view: RunView = await console.shared.get(("run", run_id), read)
        except MQError as error:
            if isinstance(error, UnknownObjectName):
                yield event("end", "no longer on record")
                return
            yield event("away", sentence(error))
            last = ""
            goes_on = await console.goes_on(EVERY_S * 4)
            continue
        if (part := _fragment(console, view)) != last:
            yield event("part", part)
            last = part
        for name in STREAMS:
            while (piece := await asyncio.to_thread(_behind, view.run, name, offsets[name])).text:
                offsets[name] = piece.end
                place = ",".join(str(offsets[each]) for each in STREAMS)
                yield event("output", json.dumps({"stream": name, "text": piece.text}), place)
        if not view.is_open:
            yield event("end", view.outcome)
            return
        goes_on = await console.goes_on(EVERY_S)


def _behind(run: Run, stream: str, offset: int) -> Piece:
    with suppress(OSError):
        return read_from(run.program.directory, stream, offset)
    return Piece("", offset)


def _output(run: Run) -> tuple[dict[str, Piece], str]:
    """Returns the ends of a run's files, or what the record holds of them and why."""
    found: dict[str, Piece] = {}
    why = ""
    for name in STREAMS:
        try:
            found[name] = tail_of(run.program.directory, name)
        except OSError as error:
            why = why_not(error)
    if not found and run.outcome.stderr_tail:
        why += "; from the record:"
        found["stderr"] = Piece(run.outcome.stderr_tail, 0)
    return found, why


def _fragment(console: WebConsole, view: RunView) -> str:
    return console.fragment("run_part.html", view=view, run=view.run, now_ms=now_ms())


def read_run_view(qm: Connection, run_id: str) -> RunView:
    """Reads a run. Raises UnknownObjectName."""
    rows = qm.ask(Runs(where={"run_id": run_id}, limit=1), Listing).rows
    if not rows:
        raise UnknownObjectName(f"RUN({run_id})")
    run = read_run(rows[0])
    is_open = run.state in OPEN
    reserved = qm.reservations(run.trigger.q_name) if is_open and run.trigger.q_name else []
    outcome, mark = outcome_of(run)
    seen = spark_progress(run)
    stages = (seen.get("stages_done"), seen.get("stages"))
    kind = run.trigger.appl_type
    return RunView(
        run=run,
        outcome=outcome,
        mark=mark,
        timeline=timeline(run, now_ms()),
        progress=progress_text(run),
        stages=(int(stages[0]), int(stages[1])) if isinstance(stages[0], int) and isinstance(stages[1], int) else None,
        latencies=latencies(run),
        ui=run.spark.ui if run.spark.ui.startswith(("http://", "https://")) and is_open else "",
        is_open=is_open,
        reserved=[row["summary"] for row in reserved],
        process=run.origin.process if isinstance(run.origin.process, dict) else _of_trigger(run, kind),
    )


def _of_trigger(run: Run, kind: int) -> dict[str, Any]:
    known = kind in ApplType._value2member_map_
    return {"appl_type": ApplType(kind).name.lower() if known else kind, "appl_id": run.trigger.appl_id}


def timeline(run: Run, now: int) -> list[Moment]:
    """Returns due, started, opened, first row, drained, ended, in the order of time."""
    first_row = run.work.first_get_ms or run.spark.first_rows_ms
    drained = run.state == RunState.DRAINED
    moments = [
        ("due", run.origin.recorded_ms, run.origin.occasion and f"by condition {run.origin.occasion}"),
        ("started", run.program.start_ms, f"pid {run.program.pid}" if run.program.pid else ""),
        ("opened", run.work.first_open_ms, ""),
        ("first row", first_row, ""),
        ("drained", run.work.settled_ms, "" if run.work.settled_ms or not drained else "its queue is empty"),
        ("ended", run.outcome.end_ms, run.why if run.is_ended else ""),
    ]
    shown: list[Moment] = []
    before = 0
    for name, at_ms, note in moments:
        shown.append(Moment(name, at_ms, (at_ms - before) / 1000 if at_ms and before else None, note))
        before = at_ms or before
    return shown
