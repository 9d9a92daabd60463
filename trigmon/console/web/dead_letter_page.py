"""The dead letters by queue and error, a sample of each, and the rehearsal of what is to be done with a group."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from trigmon.client.connection import Connection
from trigmon.console.dead_letter_text import readable, worded
from trigmon.console.web.dead_letter_groups import (
    DeadQueue,
    GroupKey,
    Rehearsed,
    dead_queues,
    perform,
    read_dead_queue,
    rehearse_group,
    sample,
)
from trigmon.console.web.page_templates import with_query
from trigmon.console.web.web_console import console_of
from trigmon.mq.quantities import counted

MOST_SAMPLES = 20
LONGEST_SAMPLE = 4096
PATH = "/dead-letters"


async def dead_letter_page(request: Request) -> Response:
    """Returns the page."""
    console, named = console_of(request), request.query_params.get("queue", "")

    def read(qm: Connection) -> tuple[list[DeadQueue], dict[str, dict[str, str]]]:
        names = [named] if named else dead_queues(qm)
        queues = [read_dead_queue(qm, name) for name in names]
        return queues, _samples(qm, queues, console.show_data)

    queues, samples = await console.shared.get(("dead", named), lambda: console.clients.read(read))
    return console.page("dead_letters.html", queues=queues, named=named, samples=samples, note=console.note(request))


def _samples(qm: Connection, queues: list[DeadQueue], show_data: bool) -> dict[str, dict[str, str]]:
    """Returns a sample of the first groups, by message id; what its data is only where that may be shown."""
    found: dict[str, dict[str, str]] = {}
    for group in [group for queue in queues for group in queue.groups][:MOST_SAMPLES]:
        row = dict(group.row)
        if show_data:
            whole = sample(qm, row)
            if whole is None:
                continue
            data, descriptor = whole.pop("data"), worded(whole.pop("descriptor"))
            shown = readable(whole["format"], data[:LONGEST_SAMPLE])
            row |= {"msg_type": descriptor["msg_type"], **shown}
        hidden = {"msg_id", "q_name", "why_not", "reason", "dead_ms", "put_ms"}
        found[group.row["msg_id"].hex()] = {
            name: str(value) for name, value in row.items() if name not in hidden and value not in ("", None)
        }
    return found


async def dead_letter_rehearsal(request: Request) -> Response:
    """Returns the page that says what would be done, with the button that does it."""
    console, given = console_of(request), request.query_params
    what, key, to = _asked(dict(given))
    rehearsed = await console.clients.read(lambda qm: rehearse_group(qm, what, key, to))
    ticket = console.keys.made_for(rehearsed.purpose)
    return console.page("dead_letter_rehearsal.html", rehearsed=rehearsed, ticket=ticket)


async def dead_letter_action(request: Request) -> Response:
    """Performs what was rehearsed, and leads back to the page."""
    console = console_of(request)
    fields = await console.form(request)
    what, key, to = _asked(fields)
    count, newest_ms = fields.get("count", ""), fields.get("newest_ms", "")
    if not (count.isdecimal() and newest_ms.isdecimal()):
        raise HTTPException(400, "The form does not say how many messages are meant.")
    rehearsed = Rehearsed(what=what, key=key, to=to, count=int(count), newest_ms=int(newest_ms), goes={}, stays={})
    if not console.keys.is_for(rehearsed.purpose, fields.get("ticket", "")):
        raise HTTPException(400, "This was not rehearsed: look at what would be done first.")
    done, stays = await console.clients.act(lambda qm: perform(qm, rehearsed))
    console.shared.forget()
    verb = "returned from" if what == "retry" else "discarded from"
    text = ". ".join([f"{counted(done, 'message')} {verb} {key.q_name}", *stays])
    return RedirectResponse(with_query(PATH, note=console.add_note(text)), 303)


def _asked(given: dict[str, str]) -> tuple[str, GroupKey, str]:
    what, reason = given.get("what", ""), given.get("reason", "")
    if what not in ("retry", "discard") or not reason.isdecimal() or len(reason) > 10 or not given.get("queue"):
        raise HTTPException(400, "The form names no group of dead letters.")
    key = GroupKey(given["queue"], given.get("dest", ""), int(reason), given.get("error", ""))
    return what, key, given.get("to", "") if what == "retry" else ""
