"""One notification of many events: repetitions are one line, and none is about the notifier itself."""

import json

from trigmon.mq.event_kinds import EVENT_QUEUE
from trigmon.notifier.notification import Notification, grouped, read_event


def event(name="run_failed", at_ms=1000, q_name="ORDERS", process_name="P"):
    fields = {"event": name, "at_ms": at_ms, "q_name": q_name, "process_name": process_name}
    return {**fields, "text": f"{name} {at_ms}"}


def test_repetitions_of_an_event_about_one_object_are_one_group_with_count_first_and_last():
    groups = grouped([event(at_ms=1000), event("queue_held"), event(at_ms=4000), event(q_name="OTHER")], "E", "N")
    assert [(g.event, g.about, g.count) for g in groups] == [
        *(("run_failed", "ORDERS", 2), ("queue_held", "ORDERS", 1), ("run_failed", "OTHER", 1)),
    ]
    assert (groups[0].first_ms, groups[0].last_ms, groups[0].text) == (1000, 4000, "run_failed 4000")


def test_none_is_about_the_notifiers_own_queue_or_process_or_an_event_queue():
    own = [event(q_name="E"), event(process_name="N"), event(q_name=EVENT_QUEUE)]
    assert grouped(own, "E", "N") == []
    assert len(grouped([event(process_name="")], "E", "")) == 1


def test_a_message_that_is_no_event_is_reported_as_what_it_is():
    for data in (b"", b"\xff\x00", b"[1]", b'{"event": 1}', b'{"event": "x", "at_ms": "y", "text": "z"}'):
        (group,) = grouped([read_event(data, 7)], "E", "N")
        assert (group.event, group.first_ms) == ("unreadable", 7)


def test_the_subject_names_the_first_and_counts_the_others_and_the_json_has_both():
    groups = grouped([event(), event(at_ms=2000), event("queue_held")], "E", "N")
    notification = Notification("QM1", "00", groups)
    assert notification.subject == "trigmon QM1: run_failed ORDERS (2 times), and 1 more"
    assert notification.text.splitlines() == [
        "1970-01-01 00:00:01 UTC to 1970-01-01 00:00:02 UTC, 2 times  run_failed: run_failed 2000",
        "1970-01-01 00:00:01 UTC  queue_held: queue_held 1000",
    ]
    sent = json.loads(notification.json)
    assert sent["groups"][0]["last"]["process_name"] == "P"
    assert (sent["text"], sent["groups"][0]["count"]) == (notification.text, 2)
