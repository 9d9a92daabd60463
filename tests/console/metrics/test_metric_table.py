"""The table of metrics, the reference page, the alert rules and the board name the same metrics."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from prometheus_client import generate_latest
from prometheus_client.core import Metric as Family
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from trigmon.console.metrics.exposition import families, text
from trigmon.console.metrics.metric_table import METRICS, QMGR, QUEUE
from trigmon.console.metrics.snapshot import QmgrStatus, QueueFigures, Snapshot
from trigmon.mq.run import Ending
from trigmon.rules.attention import KINDS, URGENT
from trigmon.rules.model.events import EventMessageDropped, PoisonKept, PoisonMoved

ROOT = Path(__file__).parents[3]
ALERTS = yaml.safe_load((ROOT / "config" / "prometheus" / "alerts.yaml").read_text())
BOARD = json.loads((ROOT / "config" / "grafana" / "trigmon.json").read_text())
RULES = [rule for group in ALERTS["groups"] for rule in group["rules"]]
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
EXPRESSIONS = [
    *((rule["alert"], rule["expr"]) for rule in RULES),
    *((panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"]),
    *((each["label"], each["query"]) for each in BOARD["templating"]["list"] if each["type"] == "query"),
]
TABLE = {metric.name: metric for metric in METRICS}
HISTOGRAM = {f"{name}{end}": name for name in TABLE for end in ("_bucket", "_count", "_sum")}


def named(expression):
    """Returns the metrics of an expression, each with the labels that choose its series."""
    for name, chosen in re.findall(r"\b((?:ibmmq|trigmon)_\w+)(?:\{([^}]*)\})?", expression):
        yield HISTOGRAM.get(name, name), re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", chosen or "")


def test_a_name_stands_once_and_says_what_it_is():
    assert len(TABLE) == len(METRICS)
    for metric in METRICS:
        assert re.fullmatch(r"(ibmmq_(queue|qmgr)|trigmon)_[a-z_]+", metric.name)
        assert (metric.kind == "counter") == metric.name.endswith("_total")
        assert metric.labels[0] == "qmgr"
        assert metric.labels in (QMGR, QUEUE) or metric.name.startswith("trigmon_")


@pytest.mark.parametrize(("title", "expression"), EXPRESSIONS)
def test_an_alert_or_a_panel_asks_for_metrics_that_there_are_by_labels_that_they_have(title, expression):
    found = list(named(expression))
    assert found
    for name, labels in found:
        assert name in TABLE, title
        assert set(labels) <= {*TABLE[name].labels, "le"}, title
    assert expression.count("(") == expression.count(")")


def test_a_histogram_is_asked_for_by_its_parts_and_a_counter_for_its_rate():
    for title, expression in EXPRESSIONS:
        for name, _ in named(expression):
            kind = TABLE[name].kind
            assert kind != "histogram" or re.search(rf"rate\({name}_bucket", expression), title
            assert kind != "counter" or re.search(rf"(rate|increase)\({name}\b", expression), title


POISON = {PoisonMoved("Q", to, b"", 1).name for to in ("Q2", "")} | {PoisonKept.name}
VALUES = {
    "kind": set(KINDS),
    "event": POISON | {EventMessageDropped.name},
    "outcome": set(Ending),
}
OF_ITS_OWN = {"disk": "TrigmonPutsRefused"}
"""The urgent kinds with an alert of their own."""


@pytest.mark.parametrize(("title", "expression"), EXPRESSIONS)
def test_a_label_value_that_is_asked_for_is_one_that_there_is(title, expression):
    for label, values in re.findall(r'\b(kind|event|outcome)=~?"([^"$]*)"', expression):
        for value in values.split("|"):
            assert any(re.fullmatch(value, each) for each in VALUES[label]), (title, value)


def test_each_urgent_kind_and_each_end_of_poison_has_an_alert():
    rules = {rule["alert"]: rule["expr"] for rule in RULES}
    assert set(OF_ITS_OWN.values()) <= rules.keys()
    asked = re.search(r'kind=~"([^"]*)"', rules["TrigmonNothingStarted"])[1]
    assert {kind for kind in KINDS if re.fullmatch(asked, kind)} == URGENT - OF_ITS_OWN.keys()
    asked = re.search(r'event=~"([^"]*)"', rules["TrigmonDeadLetters"])[1]
    assert all(re.fullmatch(asked, each) for each in POISON)


def test_each_kind_of_finding_has_a_series():
    status = {"attention": [{"kind": kind} for kind in KINDS]}
    snapshot = Snapshot(q_mgr_name="QM1", qmgr_status=QmgrStatus.RUNNING, status=status)
    found = {labels["kind"]: value for labels, value in TABLE["trigmon_attention"].values(snapshot)}
    assert found == dict.fromkeys(KINDS, 1)


def test_what_hinders_copies_and_bridges_makes_them_nothing():
    copy = {"name": "Q@QM9", "q_name": "Q", "last_copy_ms": 0, "left": -1}
    bridge = {"bridge": "PROD", "initiation_q": "I@QM9"}
    status = {"now_ms": 9000, "copies": [copy | {"problem": "2538"}, copy | {"last_copy_ms": 1500, "problem": ""}]}
    status["bridges"] = [
        bridge | {"problem": "2538"},
        bridge | {"problem": ""},
        {**bridge, "bridge": "B", "problem": "x"},
    ]
    snapshot = Snapshot(q_mgr_name="QM1", qmgr_status=QmgrStatus.RUNNING, status=status)

    def values(name):
        return [value for _, value in TABLE[name].values(snapshot)]

    assert values("trigmon_copy_up") == [0, 1]
    assert values("trigmon_copy_time_since_commit") == [7]
    assert values("trigmon_copy_left") == []
    assert values("trigmon_bridge_monitors") == [1, 0]


def test_an_event_with_an_alert_has_a_series_before_the_first():
    asked = {value for _, expression in EXPRESSIONS for value in re.findall(r'event=~?"([^"$]*)"', expression)}
    snapshot = Snapshot(q_mgr_name="QM1", qmgr_status=QmgrStatus.RUNNING, statistics={"events": {"held": 2}})
    found = {labels["event"]: value for labels, value in TABLE["trigmon_events_total"].values(snapshot)}
    assert found == dict.fromkeys(POISON | {EventMessageDropped.name}, 0) | {"held": 2}
    assert all(any(re.fullmatch(each, name) for name in found) for each in asked)


def test_an_alert_says_what_and_what_helps_and_how_bad_it_is():
    for rule in RULES:
        assert re.fullmatch(r"Trigmon[A-Za-z]+", rule["alert"])
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert rule["annotations"].keys() == {"summary", "remedy"}


def test_the_panels_of_the_board_fill_rows_and_do_not_overlap():
    taken = set()
    for panel in BOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])


# -- the text


def snapshot(description):
    row = {"current_q_depth": 3, "max_q_depth": 5000, "oldest_age_s": 7, "open_input_count": 1, "open_output_count": 0}
    row |= {"uncommitted_msgs": 0, "last_put_ms": 1000, "last_get_ms": 0, "q_time_short_us": -1, "q_time_long_us": -1}
    row |= {"high_q_depth": 3, "puts": 3, "gets": 0, "name": "Q"}
    labels = dict.fromkeys(QUEUE, "-") | {"description": description}
    histogram = {"bounds": [0.1, 1.0], "counts": [2, 0, 1], "sum": 9.25}
    status = {"now_ms": 5000, "started_ms": 0, "connections": 1, "attention": [], "pauses": [], "waiting_gets": 0}
    status |= {"initiation_queues": [], "open_units": 0, "reservations": 0, "description": description}
    counted = {"calls": 2, "turns": histogram, "commits": histogram, "events": {}, "triggers": {"13c": 1}}
    counted |= {"refused_calls": {}, "runs_ended": [["P", "failed", 2]], "run_durations": {"P": histogram}}
    counted |= {"put_to_start": {}, "runs_in_progress": {"P": 1, "/bin/sh -c x": 2}, "room": {}}
    return Snapshot(
        q_mgr_name="QM1",
        qmgr_status=QmgrStatus.RUNNING,
        status=status,
        statistics=counted,
        queues=[QueueFigures(labels, row)],
    )


class Registry:
    """What prometheus-client's own encoder takes."""

    def __init__(self, found):
        self.found = found

    def collect(self):
        return self.found


@pytest.mark.parametrize("description", ["plain", 'a "b"', "back\\slash", "two\nlines", "\\n", "", "Ä {}=,"])
def test_the_text_says_the_same_as_that_of_prometheus_client(description):
    found = families(snapshot(description))
    ours = list(text_string_to_metric_families(text(found).decode()))
    theirs = list(text_string_to_metric_families(generate_latest(Registry(found)).decode()))
    assert ours == theirs
    (depth,) = [sample for family in ours for sample in family.samples if sample.name == "ibmmq_queue_depth"]
    assert (depth.labels["description"], depth.value) == (description, 3)


def test_a_histogram_counts_what_is_at_most_each_bound():
    (family,) = [each for each in families(snapshot("")) if each.name == "trigmon_run_duration_seconds"]
    assert [(sample.labels.get("le"), sample.value) for sample in family.samples] == [
        ("0.1", 2),
        ("1.0", 2),
        ("+Inf", 3),
        (None, 3),
        (None, 9.25),
    ]


def test_a_command_line_is_no_label():
    (family,) = [each for each in families(snapshot("")) if each.name == "trigmon_runs_in_progress"]
    assert {sample.labels["process"]: sample.value for sample in family.samples} == {"P": 1, "": 2}


def test_numbers_are_as_prometheus_reads_them():
    family = Family("x", "", "gauge")
    family.samples = [Sample("x", {}, value) for value in (1e-7, 2.5e22, float("inf"), 10**17)]
    assert text([family]).decode().splitlines()[2:] == ["x 1e-07", "x 2.5e+22", "x +Inf", "x 100000000000000000"]
