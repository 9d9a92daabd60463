"""Puts the flights of 2013 from New York, a message each, in groups: what one aircraft does in a day is a group.

    pip install 'trigmon[demo]'                        # the flights: 336 776, with the weather
    trigmon apply config/queues.yaml process_defs
    python process_defs/flights_put.py                 # the whole year
    python process_defs/flights_put.py --until 2013-01-31
    python process_defs/flights_put.py --again         # from the first day, though it was put: it is then there twice

A day is a unit of work, which also records the day on the STATUS queue. So each flight is put once, wherever the
program is killed: started again, it goes on after the last day. `trigmon apply` makes the queues.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import time
from contextlib import suppress

import trigmon
from trigmon.demo import Screen, data


def main() -> None:
    """Puts the days that were not put yet."""
    options = parsed()
    try:
        days = data.year()
        with (
            trigmon.connect(application="flights_put") as qm,
            qm.open(options.queue, "output") as flights,
            qm.open(options.status, "input_exclusive", "browse", "output") as status,
        ):
            last = "" if options.again else noted(status)
            wanted = {name: rows for name, rows in days.items() if last < name <= options.until}
            put_days(qm, flights, status, wanted)
    except FileNotFoundError as error:
        sys.exit(f"flights_put: {error}")
    except trigmon.UnknownObjectName as error:
        sys.exit(f"flights_put: {error}. `trigmon apply config/queues.yaml process_defs` makes the queues.")
    except trigmon.MQError as error:
        sys.exit(f"flights_put: {error}. Started again, it goes on behind the last day that was put.")


def parsed() -> argparse.Namespace:
    """Returns the options of the command line."""
    parser = argparse.ArgumentParser(description="The flights of 2013 from New York, a message each.")
    parser.add_argument("--queue", default="FLIGHTS.IN", help="where the flights go")
    parser.add_argument("--status", default="FLIGHTS.PUT.STATUS", help="which day was the last one put")
    parser.add_argument("--until", type=day, default="2013-12-31", metavar="DAY", help="the last day to put")
    parser.add_argument("--again", action="store_true", help="begin with the first day, though it was put already")
    return parser.parse_args()


def day(text: str) -> str:
    """Returns a day in ISO format. Raises ValueError."""
    return datetime.date.fromisoformat(text).isoformat()


def put_days(
    qm: trigmon.Connection, flights: trigmon.Queue, status: trigmon.Queue, days: dict[str, list[bytes]]
) -> None:
    """Puts days, each in a unit of work with its note, and shows the progress."""
    screen = Screen(sys.stdout)
    total = sum(map(len, days.values()))
    began = time.monotonic()
    done = groups = 0
    for name, rows in days.items():
        messages = list(data.grouped(rows))
        flights.put_each(messages, syncpoint=True, format="MQSTR", persistence="persistent")
        note(status, name)
        qm.commit()
        done += len(messages)
        groups += sum(own.get("msg_flags") == "last_msg_in_group" for _, own in messages)
        rate = done / (time.monotonic() - began)
        screen.progress(f"{name}, {rate:.0f} flights a second", done, total)
    took = time.monotonic() - began
    screen.line(f"{done} flights of {len(days)} days put, {groups} groups, in {took:.1f} s: {done / took:.0f} a second")


def noted(status: trigmon.Queue) -> str:
    """Returns the last day that was put, or ""."""
    try:
        return status.get(browse_first=True).text
    except trigmon.NoMsgAvailable:
        return ""


def note(status: trigmon.Queue, name: str) -> None:
    """Replaces the note, in the unit of work that puts the day."""
    with suppress(trigmon.NoMsgAvailable):
        status.get(syncpoint=True)
    status.put(name, syncpoint=True, persistence="persistent")


if __name__ == "__main__":
    main()
