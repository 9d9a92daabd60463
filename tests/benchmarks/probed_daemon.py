"""``python -m tests.benchmarks.probed_daemon``: the command line of a daemon whose stages have probes.

SIGUSR1 makes it write what was spent so far to the file that $PROBES names, numbered.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tests.benchmarks.probes import Probes, put_in
from trigmon.cli.main import main
from trigmon.mq.calls import Commit, Get, Put, PutMany
from trigmon.rules.verbs import VERBS

RULES = "rules: what the call wants, and the decision"
STAGES = {
    "sockets: wait (epoll)": ["trigmon.server.event_loop:_Selector.select"],
    "sockets: read (recv)": ["asyncio.selector_events:_SelectorSocketTransport._read_ready"],
    "frame read": [
        "trigmon.server.connection:Connection.buffer_updated",
        "trigmon.wire.frames:FrameReader.feed",
    ],
    "decode": ["trigmon.wire.codec:decode_request"],
    "turn: gather calls": ["trigmon.server.turns:Turns._turn"],
    "manager: one call after the other": ["trigmon.qmgr.manager:QueueManager.turn"],
    RULES: [],
    "store: facts": ["trigmon.store.sqlite.store:SqliteStore.facts"],
    "store: look for messages": ["trigmon.store.sqlite.store:SqliteStore.find"],
    "store: changes and their rows": [
        "trigmon.store.sqlite.store:SqliteStore.mark",
        "trigmon.store.sqlite.store:SqliteStore.apply",
        "trigmon.store.sqlite.store:SqliteStore.end",
    ],
    "journal: the record, its write and its sync": ["trigmon.journal.journal:Journal.write"],
    "database: commit without a sync": ["trigmon.store.sqlite.durable_turns:DurableTurns._commit"],
    "database: sync and checkpoint": ["trigmon.store.sqlite.durable_turns:DurableTurns.rest"],
    "notes of what follows": [
        "trigmon.qmgr.follow_ups:Notes.note",
        "trigmon.qmgr.queue_history:Looks.note",
    ],
    "reply: encode": ["trigmon.server.connection:Connection.answer", "trigmon.wire.codec:encode_response"],
    "reply: send": ["trigmon.server.connection:Connection.flush"],
}
"""By stage the functions that are it; what they call that has no stage of its own belongs to it."""


def probe() -> Probes:
    """Returns the probes, which are in all the stages of a call."""
    probes = Probes(tuple(STAGES))
    put_in(probes, STAGES)
    for kind in (Put, PutMany, Get, Commit):
        verb = VERBS[kind]
        functions = {name: getattr(verb, name) for name in ("wants", "look_for", "decide")}
        VERBS[kind] = replace(verb, **{name: it and probes.probed(RULES, it) for name, it in functions.items()})
    return probes


def write_when_asked(probes: Probes, path: Path) -> None:
    """Writes what was spent so far at each SIGUSR1."""
    written = 0

    def write(*_: Any) -> None:
        nonlocal written
        written += 1
        beside = path.with_suffix(".new")
        beside.write_text(json.dumps(probes.taken()))
        beside.rename(f"{path}.{written}")

    signal.signal(signal.SIGUSR1, write)


if __name__ == "__main__":
    write_when_asked(probe(), Path(os.environ["PROBES"]))
    main()
