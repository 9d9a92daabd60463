"""The web page of a driver or of a Spark Connect server, which answers to the key that it was started with."""

from __future__ import annotations

import urllib.request

from trigmon.launch.spark.cold import web_page


def read_page(url, key):
    """Returns a page's text. It is slow where queries take all cores. Raises OSError."""
    asked = urllib.request.Request(url, headers=dict(web_page.headers(key)))
    with urllib.request.urlopen(asked, timeout=60) as answer:
        return answer.read().decode()
