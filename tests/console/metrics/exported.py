"""A queue manager that serves its metrics, and what a scrape of them says."""

from __future__ import annotations

import socket
import time
from urllib.error import HTTPError
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from tests.waiting import until
from trigmon.console.metrics.exporter import FRESH_S

WAIT_S = 60.0


def free_port():
    """Returns a port of the loopback interface that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


class Scrape:
    """The samples of a text in Prometheus's format; prometheus-client's parser has read all of it."""

    def __init__(self, text):
        self.families = list(text_string_to_metric_families(text))
        self.samples = [sample for family in self.families for sample in family.samples]

    def series(self, name, /, **labels):
        """Returns the samples of this name that have these labels."""
        return [each for each in self.samples if each.name == name and labels.items() <= each.labels.items()]

    def value(self, name, /, **labels):
        """Returns the sum of their values; 0 for no series."""
        return sum(each.value for each in self.series(name, **labels))


class Exported:
    """A queue manager with the setting ``metrics.listen``."""

    def __init__(self, make, **settings):
        self.port = free_port()
        named = {f"metrics.{key}": value for key, value in settings.items()}
        with_monitor = named.pop("metrics.with_monitor", False)
        address = {"metrics.listen": f"127.0.0.1:{self.port}"}
        self.daemon = make(with_monitor=with_monitor, settings=address | named)
        until(lambda: self.page("healthz")[0] == 200)

    answered_s = float("-inf")

    def page(self, name):
        """Returns status and body of a page, read anew; 0 where nobody listens."""
        time.sleep(max(0.0, self.answered_s + FRESH_S - time.monotonic()))
        try:
            return self._asked(name)
        finally:
            self.answered_s = time.monotonic()

    def _asked(self, name):
        try:
            with urlopen(f"http://127.0.0.1:{self.port}/{name}", timeout=WAIT_S) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def scrape(self):
        """Returns the metrics as they are now."""
        status, text = self.page("metrics")
        assert status == 200, text
        return Scrape(text)
