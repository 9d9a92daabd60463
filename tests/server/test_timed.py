"""What time brings to a queue reaches, in the real daemon, who waits for it."""

from tests.daemons import define

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
