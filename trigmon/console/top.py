"""``trigmon top``: a full-screen console. One thread has the connection, so a slow queue manager stops no key."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ClassVar, NamedTuple, TypeVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.widgets import Footer, Static

from trigmon.client.connection import Connection
from trigmon.console import actions, cells
from trigmon.console.overview import Memory, Overview, read_overview, waiting_overview
from trigmon.console.top_dialogs import QuestionScreen, TextScreen
from trigmon.console.top_tables import Row, Table
from trigmon.mq.errors import CfNotAvailable, MQError

Answer = TypeVar("Answer")
Connect = Callable[[], Connection]

_STALE_S = 5.0
"""After so many seconds without an answer the heading says so."""
_WIDGETS = ("heading", "trouble", "attention", "queues", "running", "copies", "bridges")
"""The widgets that :meth:`Top._show` fills, by their ids."""


class Subject(NamedTuple):
    """What the cursor is on: a queue or another named object (``what``), and a run where there is one."""

    name: str
    run_id: str = ""
    what: str = "queue"


class Top(App[None]):
    """The console. ``connect`` makes a connection, again when one is lost; the screen is renewed every ``every_s``."""

    TITLE = "trigmon top"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #heading { height: auto; padding: 0 0 1 0; }
    #trouble { height: auto; color: $text-error; display: none; }
    DataTable { height: auto; scrollbar-size-vertical: 1; background: transparent; }
    #attention { max-height: 45%; margin: 0 0 1 0; }
    #queues { height: 1fr; min-height: 4; }
    #running { max-height: 30%; margin: 1 0 0 0; }
    #copies, #bridges { max-height: 20%; margin: 1 0 0 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("l", "logs", "logs"),
        Binding("e", "explain", "explain"),
        Binding("p", "pause", "pause"),
        Binding("r", "resume", "resume"),
        Binding("s", "start", "start"),
        Binding("x", "cancel", "cancel"),
        Binding("d", "dead_letters", "dead letters"),
        Binding("tab", "app.focus_next", "next table"),
        Binding("q", "quit", "quit"),
    ]

    def __init__(self, connect: Connect, every_s: float = 2.0) -> None:
        super().__init__()
        self._connect = connect
        self._every_s = every_s
        self._thread = ThreadPoolExecutor(1, "queue manager")
        self._connection: Connection | None = None
        self._memory = Memory()
        self._is_reading = False
        self._is_over = False
        self._answered_s = time.monotonic()
        self.overview: Overview | None = None
        self.trouble = ""

    def compose(self) -> ComposeResult:
        """Yields the parts of the screen, from top to bottom."""
        yield Static("connecting ...", id="heading", markup=False)
        yield Static("", id="trouble", markup=False)
        yield Table(cells.ATTENTION, id="attention", fits=True)
        yield Table(cells.QUEUES, id="queues")
        yield Table(cells.RUNNING, id="running", fits=True)
        yield Table(cells.COPIES, id="copies", fits=True)
        yield Table(cells.BRIDGES, id="bridges", fits=True)
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Reads for the first time, and then again and again."""
        self.query_one("#queues").focus()
        self.set_interval(self._every_s, self._begin_reading)
        self.set_interval(1.0, self._show_trouble)
        self._begin_reading()

    def _begin_reading(self) -> None:
        # A worker: the keys go on while the queue manager has not answered.
        self.run_worker(self.read(), group="reading")

    def on_resize(self, event: Resize) -> None:
        """Fits the tables to the new width."""
        self._show()

    def on_unmount(self) -> None:
        """Drops the connection; a call that has no answer keeps the thread until its time is over."""
        self._is_over = True
        self._thread.shutdown(wait=False, cancel_futures=True)
        if self._connection is not None:
            self._connection.drop()

    # -- the queue manager --------------------------------------------------------------------------------------

    async def read(self) -> None:
        """Reads the overview and shows it; does nothing while the reading before has no answer."""
        if self._is_reading or self._is_over:
            return
        self._is_reading = True
        try:
            self.overview = await self._ask(partial(read_overview, memory=self._memory))
        except CfNotAvailable as error:
            name = self.overview.q_mgr_name if self.overview else ""
            self.overview, self.trouble = waiting_overview(name, error.about), ""
            self._answered_s = time.monotonic()
        except MQError as error:
            self.trouble = f"no answer: {error}; trying again"
        else:
            self.trouble, self._answered_s = "", time.monotonic()
        finally:
            self._is_reading = False
        self._show()

    async def _ask(self, what: Callable[[Connection], Answer]) -> Answer:
        """Calls a function with the connection, in the thread that has it. Raises MQError."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._call, what)

    def _call(self, what: Callable[[Connection], Answer]) -> Answer:
        if self._connection is None or not self._connection.alive:
            self._connection = self._connect()
        return what(self._connection)

    def _begin(self, what: Callable[[Connection], str]) -> None:
        self.run_worker(self._act(what), group="acts")

    def _begin_text(self, title: str, what: Callable[[Connection], str]) -> None:
        self.run_worker(self._read_text(title, what), group="texts")

    async def _act(self, what: Callable[[Connection], str]) -> None:
        """Calls a function that changes something, shows its answer, and reads again."""
        try:
            self.notify(await self._ask(what), markup=False)
        except MQError as error:
            self.notify(str(error), severity="error", markup=False)
        await self.read()

    async def _read_text(self, title: str, what: Callable[[Connection], str]) -> None:
        try:
            text = await self._ask(what)
        except MQError as error:
            self.notify(str(error), severity="error", markup=False)
            return
        self.push_screen(TextScreen(title, text))

    # -- the screen ---------------------------------------------------------------------------------------------

    def _show(self) -> None:
        self._show_trouble()
        it = self.overview
        if it is None or not self._is_whole():
            return
        width = self.size.width
        name = f"{it.q_mgr_name}  "
        heading = Text(name, style="bold") + Text(cells.heading(it, width - len(name)), style="not bold")
        self._static("#heading").update(heading)
        keys = _unique(f"{each.kind} {each.what} {each.name}" for each in it.attention)
        findings = [
            Row(
                key,
                cells.attention_cells(item, it.now_ms, width),
                "red" if cells.is_urgent(item) else "",
                Subject(item.name, what=item.what),
            )
            for key, item in zip(keys, it.attention, strict=True)
        ]
        nothing = [Row("", ["nothing", "", "", ""], "", Subject(""))]
        self._table("#attention").fill(findings or nothing, width, count=len(findings))
        queues = [
            Row(row.name, cells.queue_cells(row, it.now_ms, width), "", Subject(row.name))
            for row in cells.ordered_queues(it)
        ]
        self._table("#queues").fill(queues, width)
        runs = [
            Row(run.run_id, cells.run_cells(run, it.now_ms, width), "", Subject(run.q_name, run.run_id))
            for run in it.running
        ]
        self._fill_or_hide("#running", runs, width)
        self._show_elsewhere(it, width)

    def _show_elsewhere(self, it: Overview, width: int) -> None:
        """Shows the copies of queues elsewhere, whose keys act on the local queue, and the initiation queues there."""
        copies = [
            Row(key, cells.copy_cells(row, it.now_ms, width), _colour(row), Subject(row["q_name"]))
            for key, row in zip(_unique(row["name"] for row in it.copies), it.copies, strict=True)
        ]
        self._fill_or_hide("#copies", copies, width)
        names = _unique(row["initiation_q"] for row in it.bridges)
        bridges = [
            Row(
                key,
                cells.bridge_cells(row, it.now_ms, width),
                _colour(row),
                Subject(row["initiation_q"], what="bridge"),
            )
            for key, row in zip(names, it.bridges, strict=True)
        ]
        self._fill_or_hide("#bridges", bridges, width)

    def _fill_or_hide(self, selector: str, rows: list[Row], width: int) -> None:
        table = self._table(selector)
        table.display = bool(rows)
        table.fill(rows, width)

    def _is_whole(self) -> bool:
        """Says whether each widget is there: an answer may come while the screen is taken down, widget by widget."""
        return all(self.query(f"#{name}") for name in _WIDGETS)

    def _show_trouble(self) -> None:
        if not self._is_whole():
            return
        waited_s = time.monotonic() - self._answered_s
        text = self.trouble
        if not text and waited_s > max(_STALE_S, 3 * self._every_s):
            text = f"no answer for {waited_s:.0f} s"
        trouble = self._static("#trouble")
        trouble.display = bool(text)
        trouble.update(Text(text, style="bold red"))

    def _static(self, selector: str) -> Static:
        return self.query_one(selector, Static)

    def _table(self, selector: str) -> Table:
        return self.query_one(selector, Table)

    # -- the keys -----------------------------------------------------------------------------------------------

    def _subject(self, *kinds: str) -> Subject | None:
        """Returns what the cursor of the focused table is on; None, and a remark, where it is none of these kinds."""
        table = self.focused
        subject = table.subject if isinstance(table, Table) else None
        if not isinstance(subject, Subject) or not subject.name:
            self.notify("choose a line first: tab and the arrow keys", severity="warning")
            return None
        if subject.what not in kinds:
            of = " or ".join(f"a {kind}" for kind in kinds if kind != "everything")
            is_what = "no object" if subject.what == "everything" else f"a {subject.what}"
            self.notify(f"{subject.name} is {is_what}: this key is for {of}", severity="warning", markup=False)
            return None
        return subject

    def action_logs(self) -> None:
        """Shows what the run wrote, or the newest run of the queue or the process."""
        if it := self._subject("queue", "process"):
            where = {"process_name" if it.what == "process" else "q_name": it.name}
            where = {"run_id": it.run_id} if it.run_id else where
            self._begin_text(f"logs {it.run_id or it.name}", lambda qm: actions.logs(qm, where))

    def action_explain(self) -> None:
        """Shows why the next message does or does not start a program."""
        if it := self._subject("queue"):
            self._begin_text(f"explain {it.name}", lambda qm: actions.explain(qm, it.name))

    def action_dead_letters(self) -> None:
        """Shows the dead letters: of the queue the cursor is on where it is one of dead letters, else of DEADQ."""
        subject = self.focused.subject if isinstance(self.focused, Table) else None
        aside = {item.name for item in self.overview.attention if item.kind == "put_aside"} if self.overview else ()
        name = subject.name if subject is not None and subject.name in aside else ""
        self._begin_text(f"dead letters {name}", lambda qm: actions.dead_letters(qm, name))

    def action_pause(self) -> None:
        """Asks for the reason, and pauses the queue, the process or everything."""
        if it := self._subject("queue", "process", "everything"):
            question = f"pause {it.name}: the reason?"
            self._question(question, lambda why: lambda qm: actions.pause(qm, it.what, it.name, why))

    def action_cancel(self) -> None:
        """Asks for the reason, and ends the run."""
        it = self._subject("queue")
        if it is not None and not it.run_id:
            self.notify("choose a run: tab to the list of what runs", severity="warning")
        elif it is not None:
            question = f"cancel run {it.run_id} for {it.name}: the reason?"
            self._question(question, lambda why: lambda qm: actions.cancel(qm, it.run_id, why))

    def action_start(self) -> None:
        """Asks whether the process of the queue is to start, and starts it."""
        if it := self._subject("queue"):
            question = f"start the process of {it.name} now? enter: yes, escape: no"
            self._question(question, lambda _: lambda qm: actions.start(qm, it.name), wants_text=False)

    def action_resume(self) -> None:
        """Ends the pause, or what the breaker holds."""
        if it := self._subject("queue", "process", "everything"):
            self._begin(lambda qm: actions.resume(qm, it.what, it.name))

    def _question(
        self, question: str, act: Callable[[str], Callable[[Connection], str]], *, wants_text: bool = True
    ) -> None:
        def answered(text: str | None) -> None:
            if text is not None:
                self._begin(act(text))

        self.push_screen(QuestionScreen(question, wants_text=wants_text), answered)


def _colour(row: Mapping[str, Any]) -> str:
    return "red" if row["problem"] else ""


def _unique(keys: Iterable[str]) -> list[str]:
    """Returns these keys, with a number from the second on where several rows have the same."""
    seen: Counter[str] = Counter()
    found = []
    for key in keys:
        seen[key] += 1
        found.append(key if seen[key] == 1 else f"{key} {seen[key]}")
    return found
