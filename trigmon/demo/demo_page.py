"""The page of the demo: a web console of the demo's own queue manager, that ends with it."""

from __future__ import annotations

import importlib.util
import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

END_S = 10.0
NEEDED = ("jinja2", "starlette", "uvicorn")


@contextmanager
def demo_page(environment: Mapping[str, str], address: str) -> Iterator[str]:
    """Yields the address of a page that shows the queue manager, for the block; "" without the extra web."""
    if any(importlib.util.find_spec(name) is None for name in NEEDED):
        yield ""
        return
    argv = [sys.executable, "-m", "trigmon", "--qmgr", address, "--output", "json", "web", "--show-data"]
    # A session of its own: Ctrl-C is for the demo, which then ends the page in order.
    web = subprocess.Popen(
        argv,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        assert web.stdout is not None
        line = web.stdout.readline()  # empty where it has ended
        yield str(json.loads(line)["url"]) if line else ""
    finally:
        web.send_signal(signal.SIGTERM)
        try:
            web.wait(END_S)
        except subprocess.TimeoutExpired:
            web.kill()
            web.wait()
        if web.stdout is not None:
            web.stdout.close()
