"""Processes groups, each in several units of work, and goes on after a kill where the last commit was.

The process GROUPS.GET starts it when a message is on the queue; by hand it is `python groups_get.py`. It begins with a
group before all of it has arrived, and ends when no message came for the time of --wait. The STATUS queue then keeps
the place in an unfinished group, and the next message starts the program again. The groups behind it wait for its end.

Here, processing a message means putting it on another queue, in the unit of work that gets it. So each message is
processed exactly once, in the order of its group, wherever the program is killed.
"""

from __future__ import annotations

import argparse

import groups_status
from groups_status import Place, Status

import trigmon

IN_GROUP = "G"  # the GroupStatus of a message that is not the group's last


def main() -> None:
    """Processes the group that a run before this one left, and then groups as they come."""
    options = parsed()
    with (
        trigmon.connect(application="groups_get") as qm,
        qm.open(options.queue, "input_shared", "inquire") as groups,
        qm.open(options.status, *groups_status.OPEN_FOR) as status_queue,
        qm.open(options.results, "output") as results,
    ):
        getting = Getting(qm, groups, groups_status.KEEP[options.keep](status_queue), results, options)
        goes_on = getting.rest_of_group()
        while goes_on:
            goes_on = getting.next_group()


def parsed() -> argparse.Namespace:
    """Returns the options of the command line."""
    parser = argparse.ArgumentParser(description="Processes groups of messages, each in several units of work.")
    parser.add_argument("--queue", default="GROUPS.IN", help="where the groups come from")
    parser.add_argument("--status", default="GROUPS.GET.STATUS", help="how far the unfinished group is")
    parser.add_argument("--results", default="GROUPS.DONE", help="where a processed message goes")
    parser.add_argument("--keep", choices=groups_status.KEEP, default="message", help="how the status is kept")
    parser.add_argument("--unit", type=int, default=4, help="messages a unit of work, at most")
    parser.add_argument("--wait", type=float, default=5, help="seconds without a message, after which it ends")
    return parser.parse_args()


class Getting:
    """Processes the groups of a queue, one after the other. Each method returns whether to go on."""

    def __init__(
        self,
        qm: trigmon.Connection,
        groups: trigmon.Queue,
        status: Status,
        results: trigmon.Queue,
        options: argparse.Namespace,
    ) -> None:
        self._qm, self._groups, self._status, self._results = qm, groups, status, results
        self._unit: int = options.unit
        self._wait_ms = int(options.wait * 1000)
        backout = groups.inquire("backout_threshold", "backout_requeue_q_name")
        self._most_backouts, self._aside = backout["backout_threshold"], backout["backout_requeue_q_name"]

    def rest_of_group(self) -> bool:
        """Processes the rest of an unfinished group, if there is one."""
        left = self._status.read()
        if left is None:
            return True
        # This handle is in no group yet, so the get names the next message; logical order goes on from it.
        try:
            message = self._groups.get(
                match={"group_id": left.group_id, "msg_seq_number": left.msg_seq_number + 1},
                complete_msg=True,
                syncpoint=True,
                wait_interval_ms=self._wait_ms,
            )
        except trigmon.NoMsgAvailable:
            self._qm.backout()  # the get of the status is undone: it is still true
            return False
        return self._group(message)

    def next_group(self) -> bool:
        """Processes the next group, or a message in none."""
        try:
            message = self._in_order()
        except trigmon.NoMsgAvailable:
            return False
        return self._group(message)

    def _group(self, message: trigmon.Message) -> bool:
        """Processes a group, or a message in none, from this message on, which is got and not committed yet."""
        count, goes_on = 1, True
        self._process(message)
        while True:
            while goes_on and message.group_status == IN_GROUP and count < self._unit:
                try:
                    message = self._in_order()
                except trigmon.NoMsgAvailable:
                    goes_on = False
                else:
                    self._process(message)
                    count += 1
            if count:
                self._settle(message)
            if not goes_on or message.group_status != IN_GROUP:
                return goes_on
            count = 0

    def _in_order(self) -> trigmon.Message:
        """Returns the next message in logical order; segments are reassembled. Raises NoMsgAvailable."""
        return self._groups.get(logical_order=True, complete_msg=True, syncpoint=True, wait_interval_ms=self._wait_ms)

    def _settle(self, message: trigmon.Message) -> None:
        """Commits the unit of work whose last message is this one, with the status."""
        if message.group_status == IN_GROUP:
            self._status.note(Place(message.group_id, message.msg_seq_number))
        else:
            self._status.clear()
        self._qm.commit()

    def _process(self, message: trigmon.Message) -> None:
        """Processes a message; one with too many backouts goes to the backout queue, and the group goes on."""
        if self._aside and message.backout_count >= self._most_backouts:
            self._qm.put(self._aside, message.data, syncpoint=True)
        else:
            self._results.put(message.data, correl_id=message.msg_id, syncpoint=True)


if __name__ == "__main__":
    main()
