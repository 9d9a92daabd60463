"""The forms that change something: retry and cancel a run, pause and resume a queue, start its process."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from trigmon.client.connection import Connection
from trigmon.console import actions
from trigmon.console.web.page_templates import queue_path, run_path, with_query
from trigmon.console.web.web_console import console_of
from trigmon.mq.calls import RetryRun


async def retry_run(request: Request) -> Response:
    """Starts a run that has ended again."""

    def act(qm: Connection, fields: dict[str, str]) -> tuple[str, str]:
        run_id = fields.get("run", "")
        qm.call(RetryRun(run_id=run_id))
        return run_path(run_id), f"{run_id} is to run again, as a new run"

    return await _acted(request, act)


async def cancel_run(request: Request) -> Response:
    """Ends a run."""

    def act(qm: Connection, fields: dict[str, str]) -> tuple[str, str]:
        run_id = fields.get("run", "")
        return run_path(run_id), actions.cancel(qm, run_id, fields.get("text", ""))

    return await _acted(request, act)


async def pause_queue(request: Request) -> Response:
    """Pauses a queue: no program is started for it until it is resumed."""

    def act(qm: Connection, fields: dict[str, str]) -> tuple[str, str]:
        name = fields.get("queue", "")
        return queue_path(name), actions.pause(qm, "queue", name, fields.get("text", ""))

    return await _acted(request, act)


async def resume_queue(request: Request) -> Response:
    """Resumes a queue: programs are started for it again."""

    def act(qm: Connection, fields: dict[str, str]) -> tuple[str, str]:
        name = fields.get("queue", "")
        return queue_path(name), actions.resume(qm, "queue", name)

    return await _acted(request, act)


async def start_process(request: Request) -> Response:
    """Starts the process of a queue now, whatever the trigger conditions."""

    def act(qm: Connection, fields: dict[str, str]) -> tuple[str, str]:
        name = fields.get("queue", "")
        return queue_path(name), actions.start(qm, name)

    return await _acted(request, act)


async def _acted(request: Request, act: Callable[[Connection, dict[str, str]], tuple[str, str]]) -> Response:
    """Performs it, and leads to the page that shows it, with what was done as a note."""
    console = console_of(request)
    fields = await console.form(request)
    path, text = await console.clients.act(lambda qm: act(qm, fields))
    console.shared.forget()
    return RedirectResponse(with_query(path, note=console.add_note(text)), 303)
