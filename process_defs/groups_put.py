"""Puts groups, each in several units of work, and goes on after a kill where the last commit was.

    python groups_put.py --groups 3 --messages 5 --unit 2     # orders three groups, and puts them
    python groups_put.py                                      # goes on with what was ordered and is not put yet

An order is a message on the orders queue. It is got in the unit of work that puts its group's last message. The STATUS
queue has the place in an unfinished group. So each message of each group is put exactly once, wherever the program is
killed. `trigmon apply config/groups.yaml process_defs` defines the queues.
"""

from __future__ import annotations

import argparse
import json

import groups_status
from groups_status import Place, Status

import trigmon


def main() -> None:
    """Orders groups if --groups asks for some, and puts the ordered groups."""
    options = parsed()
    with (
        trigmon.connect(application="groups_put") as qm,
        qm.open(options.orders, "input_exclusive", "browse", "output") as orders,
        qm.open(options.queue, "output") as groups,
        qm.open(options.status, *groups_status.OPEN_FOR) as status_queue,
    ):
        order(qm, orders, options.groups, options.messages)
        status = groups_status.KEEP[options.keep](status_queue)
        left = status.read()
        while (wanted := first(orders)) is not None:
            put_group(qm, groups, orders, status, wanted, left, options.unit)
            left = None


def parsed() -> argparse.Namespace:
    """Returns the options of the command line."""
    parser = argparse.ArgumentParser(description="Groups of messages, each put in several units of work.")
    parser.add_argument("--queue", default="GROUPS.IN", help="where the groups go")
    parser.add_argument("--orders", default="GROUPS.ORDERS", help="which groups are still to be put")
    parser.add_argument("--status", default="GROUPS.PUT.STATUS", help="how far the unfinished group is")
    parser.add_argument("--keep", choices=groups_status.KEEP, default="message", help="how the status is kept")
    parser.add_argument("--groups", type=int, default=0, help="how many groups to order first")
    parser.add_argument("--messages", type=int, default=5, help="messages a group that is ordered")
    parser.add_argument("--unit", type=int, default=3, help="messages a unit of work")
    return parser.parse_args()


def order(qm: trigmon.Connection, orders: trigmon.Queue, count: int, messages: int) -> None:
    """Orders so many groups, all or none."""
    orders.put_many([json.dumps({"group": n, "messages": messages}) for n in range(1, count + 1)], syncpoint=True)
    qm.commit()


def first(orders: trigmon.Queue) -> dict[str, int] | None:
    """Returns the next order, browsed: it is got when its group is done."""
    try:
        found: dict[str, int] = json.loads(orders.get(browse_first=True).text)
    except trigmon.NoMsgAvailable:
        return None
    return found


def put_group(
    qm: trigmon.Connection,
    groups: trigmon.Queue,
    orders: trigmon.Queue,
    status: Status,
    wanted: dict[str, int],
    left: Place | None,
    unit: int,
) -> None:
    """Puts a group, or the rest of it after ``left``."""
    last = wanted["messages"]
    for number in range(left.msg_seq_number + 1 if left else 1, last + 1):
        flag = "msg_in_group" if number < last else "last_msg_in_group"
        text = f"group {wanted['group']}, message {number}"
        if left is None:
            put = groups.put(text, msg_flags=flag, logical_order=True, syncpoint=True)
        else:
            # The first one after a restart names its place, and from there logical order counts on.
            put = groups.put(text, msg_flags=flag, group_id=left.group_id, msg_seq_number=number, syncpoint=True)
            left = None
        if number == last:
            status.clear()
            orders.get(syncpoint=True)
            qm.commit()
        elif number % unit == 0:
            status.note(Place(put.group_id, put.msg_seq_number))
            qm.commit()


if __name__ == "__main__":
    main()
