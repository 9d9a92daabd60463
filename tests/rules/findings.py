"""What a queue manager says needs attention, for tests that drive it by calls."""

from tests.rules.launching_ledger import INITQ, Ledger
from trigmon.mq.calls import Close, Get, Status
from trigmon.mq.enums import OpenOption

MONITOR = OpenOption.INPUT_SHARED


def monitored(tmp_path):
    """Yields a queue manager in memory whose initiation queue a monitor reads: the body of a fixture."""
    made = Ledger("memory", tmp_path)
    made.open(INITQ, MONITOR, as_="monitor")
    yield made
    made.end()


def found(ledger):
    """Returns what needs attention as kind and name."""
    return [(each["kind"], each["name"]) for each in items(ledger)]


def items(ledger):
    return ledger.did(Status(), "operator").values["attention"]


def take_trigger_messages(ledger):
    """Takes what lies on the initiation queue, as a monitor that dies does: no run is recorded."""
    handle = ledger.open(INITQ, MONITOR, as_="monitor")
    while getattr(ledger.do(Get(handle=handle), "monitor"), "data", None) is not None:
        pass
    ledger.did(Close(handle=handle), "monitor")
