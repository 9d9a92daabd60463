"""What time brings to a queue reaches, in the real daemon, who waits for it."""

from tests.daemons import Raw, define
from trigmon.mq.calls import Alter, Get, Open, Ping
from trigmon.mq.enums import GetOption, OpenOption, ReportOption

INITQ = "SYSTEM.DEFAULT.INITIATION.QUEUE"


def test_the_longest_wait_wakes_a_monitor_that_waits(daemon):
    one = daemon()
    with one.connect() as app, one.connect() as monitor, monitor.open(INITQ, "input_shared") as triggers:
        define(app, "P", "PROCESS", appl_id="/bin/true")
        depth = {"trigger_control": "on", "trigger_type": "depth", "trigger_depth": 100}
        define(app, "Q", max_wait_s=1, process_name="P", initiation_q_name=INITQ, **depth)
        app.put("Q", b"one of a hundred")
        trigger = triggers.get(wait_interval_ms=10_000)
        assert (trigger.data[8:9], trigger.appl_origin_data.strip()) == (b"Q", "M")


def test_a_call_behind_a_get_that_timed_work_answers_waits_for_nobody_elses(daemon):
    """An expired message's report ends the wait, and no other call comes."""
    one = daemon()
    with one.connect() as app, Raw(one) as client:
        define(app, "Q")
        define(app, "REPLIES")
        app.call(Alter(object_type="QMGR", name="", attributes={"expiry_interval": 1}))
        client.calls([Open(object_name="REPLIES", options=int(OpenOption.INPUT_SHARED))])
        _, opened = client.reply()
        get = Get(handle=opened.handle, options=int(GetOption.WAIT), wait_interval_ms=60_000)
        client.calls([get, Ping()], first=2)
        app.put("Q", b"m", expiry=1, report=int(ReportOption.EXPIRATION), reply_to_q="REPLIES")
        assert [client.reply()[0] for _ in range(2)] == [2, 3]
