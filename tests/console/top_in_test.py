"""trigmon top, run without a terminal: keys go in, and what is on its screen comes out."""

import asyncio
import time

from trigmon.console.top import Top
from trigmon.console.top_dialogs import TextScreen

SIZE = (100, 30)
PATIENCE_S = 120


class Console:
    """The running application with its pilot, and what is on its screen."""

    def __init__(self, app, pilot):
        self.app, self.pilot = app, pilot

    async def until(self, found):
        """Waits until ``found()`` is true, with a new reading each time; returns it."""
        deadline = time.monotonic() + PATIENCE_S
        while not (value := found()):
            assert time.monotonic() < deadline, self.lines()
            await self.app.read()
            await self.pilot.pause()
        return value

    def lines(self):
        """Returns what the terminal shows, a text a line."""
        return [strip.text.rstrip() for strip in self.app.screen._compositor.render_strips()]

    def shows(self, *words):
        """Returns the first line with all of these words; None for none."""
        return next((line for line in self.lines() if all(word in line for word in words)), None)

    async def press(self, *keys):
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def choose(self, table, key):
        """Moves the cursor of a table to the row of a key."""
        widget = self.app.query_one(f"#{table}")
        widget.focus()
        await self.until(lambda: key in [row.key for row in widget._shown])
        widget.move_cursor(row=[row.key for row in widget._shown].index(key))
        await self.pilot.pause()

    async def text(self):
        """Waits for a text over the console, and returns it."""
        await self.until(lambda: isinstance(self.app.screen, TextScreen))
        return self.app.screen.text


def console(daemon, act, size=SIZE):
    """Runs the application against a daemon, and ``act`` with its Console."""

    async def run():
        app = Top(lambda: daemon.connect(timeout_s=5.0), every_s=0.2)
        async with app.run_test(size=size, notifications=True) as pilot:
            it = Console(app, pilot)
            await it.until(lambda: app.overview)
            await pilot.pause()
            await act(it)

    asyncio.run(run())


def said(it):
    """Returns all remarks of the console."""
    return " ".join(each.message for each in it.app._notifications)
