"""Dashboards for IBM's mq-metric-samples work here: their expressions have the values of DISPLAY QSTATUS."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from tests.console.metrics.exported import Exported
from tests.daemons import define, queue_managers
from tests.waiting import until
from trigmon.mq.calls import Get, Open
from trigmon.mq.enums import GetOption, OpenOption

Q = "ORDERS"


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A queue with four messages of a second, one of them got and not committed, a reader and two writers."""
    with queue_managers(lambda: tmp_path_factory.mktemp("qm")) as make:
        one = Exported(make)
        with one.daemon.connect() as qm:
            define(qm, Q, max_q_depth=200, def_persistence="persistent")
            writers = [qm.open(Q, "output") for _ in range(2)]
            for writer in (*writers, *writers, writers[0]):
                writer.put(b"m")
            until(lambda: shown(one)["MSGAGE"] == "1")
            handle = qm.call(Open(object_name=Q, options=int(OpenOption.INPUT_SHARED))).handle
            qm.call(Get(handle=handle))
            qm.call(Get(handle=handle, options=int(GetOption.SYNCPOINT), unit=qm.unit))
            yield one


def shown(one):
    """Returns DISPLAY QSTATUS, by MQSC word."""
    done = one.daemon.trigmon("mqsc", input=f"DISPLAY QSTATUS({Q}) ALL\nDISPLAY QLOCAL({Q}) MAXDEPTH\n")
    return dict(re.findall(r"(\w+)\(([^)]*)\)", done.stdout))


def seconds_since(texts, begin, now):
    at = datetime.strptime(f"{texts[f'{begin}DATE']} {texts[f'{begin}TIME']}", "%Y-%m-%d %H.%M.%S")
    return (now - at.replace(tzinfo=UTC)).total_seconds()


def depth(texts):
    return int(texts["CURDEPTH"])


# The expressions about queues of the dashboard, and what DISPLAY QSTATUS shows for each.
SHOWN = {
    "ibmmq_queue_qtime_short": lambda texts, _: int(texts["QTIME"].split(",")[0]),
    "ibmmq_queue_qtime_long": lambda texts, _: int(texts["QTIME"].split(",")[1]),
    "ibmmq_queue_oldest_message_age": lambda texts, _: int(texts["MSGAGE"]),
    "max(ibmmq_queue_oldest_message_age)": lambda texts, _: int(texts["MSGAGE"]),
    "ibmmq_queue_time_since_get": lambda texts, now: seconds_since(texts, "LGET", now),
    "ibmmq_queue_time_since_put": lambda texts, now: seconds_since(texts, "LPUT", now),
    "ibmmq_queue_depth": lambda texts, _: depth(texts),
    "(ibmmq_queue_depth * 100 )/ ibmmq_queue_attribute_max_depth": lambda texts, _: (
        100 * depth(texts) / int(texts["MAXDEPTH"])
    ),
    "ibmmq_queue_uncommitted_messages": lambda texts, _: int(texts["UNCOM"]),
    "ibmmq_queue_input_handles": lambda texts, _: int(texts["IPPROCS"]),
    "ibmmq_queue_output_handles": lambda texts, _: int(texts["OPPROCS"]),
}
PASSES = ("oldest_message_age", "time_since")


def evaluated(expression, found):
    """Returns the value of an expression for the queue; max() is of all queues, of which no other has a message."""
    if inner := re.fullmatch(r"max\((\w+)\)", expression):
        return max(each.value for each in found.series(inner[1]))

    def value(name):
        (sample,) = found.series(name[0], queue=Q)
        return str(sample.value)

    return eval(re.sub(r"[a-z]\w+", value, expression))  # numbers, brackets, * and / are left


@pytest.mark.parametrize("expression", SHOWN)
def test_an_expression_has_a_series_with_the_value_that_display_qstatus_shows(exported, expression):
    # Ages are whole seconds.
    until(lambda: evaluated(expression, exported.scrape()) > 0)
    before, began = shown(exported), datetime.now(UTC)
    value = evaluated(expression, exported.scrape())
    after, ended = shown(exported), datetime.now(UTC)
    least, most = SHOWN[expression](before, began), SHOWN[expression](after, ended)
    if any(word in expression for word in PASSES):
        # DISPLAY shows whole seconds, and the first may be of the second before.
        assert least - 2 <= value <= most
    else:
        assert least == value == most
    assert value > 0


def test_a_series_has_the_labels_by_which_dashboards_choose(exported):
    (series,) = exported.scrape().series("ibmmq_queue_depth", queue=Q)
    labels = {"qmgr": "QM1", "usage": "NORMAL", "description": "-", "cluster": "-", "platform": "UNIX", "queue": Q}
    assert series.labels == labels
