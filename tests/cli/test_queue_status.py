"""trigmon queue status: what went through the queues, and how old the oldest message is."""

from tests.cli.conftest import Trigmon, objects
from tests.daemons import define

Q = "STATUS.Q"


def test_it_shows_the_traffic_of_queues_and_counts_anew_when_asked(trigmon: Trigmon, qm):
    define(qm, f"{Q}.ONE")
    define(qm, f"{Q}.TWO")
    qm.put_many(f"{Q}.ONE", [b"a", b"b"])
    with qm.open(f"{Q}.ONE", "input_shared") as queue:
        queue.get()
    one, two = objects(trigmon("queue", "status", f"{Q}.*", "--output", "json"))
    assert (one["name"], one["current_q_depth"], one["puts"], one["gets"], one["high_q_depth"]) == (
        f"{Q}.ONE",
        1,
        2,
        1,
        2,
    )
    assert one["oldest_time"].endswith("Z")
    assert (two["puts"], two["oldest_time"], two["last_put_time"]) == (0, None, None)
    (reset,) = objects(trigmon("queue", "status", f"{Q}.ONE", "--reset", "--output", "json"))
    assert reset["puts"] == 2
    (after,) = objects(trigmon("queue", "status", f"{Q}.ONE", "--output", "json"))
    assert (after["puts"], after["high_q_depth"]) == (0, 1)
    assert f"{Q}.ONE" in trigmon("queue", "status", f"{Q}.*").stdout


def test_system_queues_are_shown_when_they_are_meant_and_an_unknown_one_is_an_error(trigmon: Trigmon):
    assert "SYSTEM." not in trigmon("queue", "status").stdout
    assert "SYSTEM.DEFAULT.INITIATION.QUEUE" in trigmon("queue", "status", "--system").stdout
    assert "SYSTEM.DEFAULT.INITIATION.QUEUE" in trigmon("queue", "status", "SYSTEM.*").stdout
    unknown = trigmon("queue", "status", "STATUS.NONE")
    assert (unknown.exit_code, "STATUS.NONE" in unknown.stderr) == (3, True)
