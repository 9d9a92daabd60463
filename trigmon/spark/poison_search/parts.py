"""Processes a batch over which jobs died in parts; the rule for the next part is in ``crash_search``.

To the sink each part is a batch with an id of its own. Earlier jobs may have written the same messages under other ids.
So the sink is asked first to refuse those ids: it has that batch already, which then is settled, or it never takes it
from now on, also from a job that was given up and still writes. The id of a part over which jobs died contains their
number, so that it is never one of the refused ids.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import NamedTuple

from trigmon.client.connection import Connection
from trigmon.client.reservation import Reservation
from trigmon.mq.calls import Runs
from trigmon.mq.descriptors import NO_ID
from trigmon.mq.errors import MQError
from trigmon.mq.replies import Listing
from trigmon.mq.run import read_run
from trigmon.rules.model.reservation import Ordinals, cut
from trigmon.spark.poison_search.crash_search import WHOLE, Part, all_deaths, next_part
from trigmon.spark.sinks.sink import BatchName

Refuse = Callable[[BatchName], bool]
"""Takes a batch's name. Returns True when the sink never takes it from now on, False when it has it already."""


class Parting:
    """The parts of the batches of a drain over which jobs died. Without ``refuse`` such batches come whole."""

    def __init__(self, connection: Connection, application: str, *, whole_groups: bool, refuse: Refuse | None) -> None:
        self._connection = connection
        self._application = application
        self._whole_groups = whole_groups
        self._refuse = refuse
        self._number = 0
        self._units: list[Ordinals] = []
        self._refused: set[str] = set()
        self._failing: Ordinals | None = None

    def is_due(self, made: Reservation) -> bool:
        """Returns whether so many jobs died over the batch that it is processed in parts."""
        return self._refuse is not None and made.again and made.offers >= WHOLE

    def written(self, made: Reservation) -> Ordinals | None:
        """Returns a part that a job had written when it died, or None: then the sink refuses all ids tried before."""
        assert self._refuse is not None
        if made.number != self._number:
            self._begin(made)
        tried = [(self.name(made), (0, made.count))]
        for first, end, times in made.deaths:
            tried += [(self._part_name(made, (first, end), died), (first, end)) for died in range(times)]
        for name, (first, end) in tried:
            if name.id in self._refused or not cut(made.left_ordinals, first, end):
                continue
            if not self._refuse(name):
                return first, end
            self._refused.add(name.id)
        return None

    def name(self, made: Reservation, part: Ordinals | None = None) -> BatchName:
        """Returns the name of a batch, or of a part, for the sink: the same in every job."""
        if part is None:
            return BatchName(self._application, made.number, _batch_id(made))
        return self._part_name(made, part, sum(times for *of, times in made.deaths if tuple(of) == part))

    def _part_name(self, made: Reservation, part: Ordinals, died: int) -> BatchName:
        """Returns a part's name after so many jobs died over the same part."""
        plain = f"{_batch_id(made)}-{part[0]}-{part[1]}"
        return BatchName(self._application, made.number, f"{plain}-{died}" if died else plain, part)

    def is_there(self, made: Reservation, part: Ordinals) -> bool:
        """Returns whether the sink has this part; if not, it never takes it from now on."""
        assert self._refuse is not None
        return not self._refuse(self.name(made, part))

    def next(self, made: Reservation) -> Part:
        """Returns the next part. The rest of a part that has failed comes before all others."""
        if self._failing is not None and (left := cut(made.left_ordinals, *self._failing)):
            return Part(*left[0])
        self._failing = None
        units = [part for unit in self._units for part in cut(made.left_ordinals, *unit)]
        return next_part(units, all_deaths(made.deaths, made.offers, made.count))

    def failed(self, part: Ordinals) -> None:
        """Takes note of a part that has failed: its bad message is searched for by halving, as in any batch."""
        self._failing = part

    def _begin(self, made: Reservation) -> None:
        self._number, self._failing = made.number, None
        self._refused = set()
        self._units = units_of(self._connection, made.number, made.left_ordinals, self._whole_groups)


def _batch_id(made: Reservation) -> str:
    return made.token or f"reservation-{made.number}"


def units_of(connection: Connection, number: int, left: list[Ordinals], whole_groups: bool) -> list[Ordinals]:
    """Returns the units that cannot be divided: each message or, where groups come whole, each group, as ordinals."""
    if not whole_groups:
        return [(at, at + 1) for first, end in left for at in range(first, end)]
    units: list[Ordinals] = []
    last = NO_ID
    for at, message in connection.read_reserved(number):
        if message.group_id != NO_ID and message.group_id == last:
            units[-1] = units[-1][0], at + 1
        else:
            units.append((at, at + 1))
        last = message.group_id
    return units


class Unit(NamedTuple):
    """What cannot be divided, as it lies in a reservation: where, which, and how often it was backed out at most."""

    ordinals: Ordinals
    key: Hashable
    backouts: int


def keyed_units(connection: Connection, number: int, left: list[Ordinals], whole_groups: bool) -> list[Unit]:
    """Returns the units of :func:`units_of` with their keys: the message id, or the group's where groups come whole."""
    units: list[Unit] = []
    for first, end in left:
        for at, message in connection.read_reserved(number, first, end - first):
            is_of_group = whole_groups and message.group_id != NO_ID
            key = message.group_id if is_of_group else message.msg_id
            if is_of_group and units and units[-1].key == key:
                last = units.pop()
                units.append(Unit((last.ordinals[0], at + 1), key, max(last.backouts, message.backout_count)))
            else:
                units.append(Unit((at, at + 1), key, message.backout_count))
    return units


def why_bad(connection: Connection, part: Part, q_name: str, process_name: str, before: str) -> str:
    """Returns why a message over which jobs died is bad, with the last job's end from the ledger, else ``before``."""
    how = before
    if process_name:
        with suppress(MQError):  # the ledger may be closed to this user
            where = {"q_name": q_name, "process_name": process_name}
            runs = map(read_run, connection.ask(Runs(where=where, limit=8), Listing).rows)
            own = os.environ.get("TRIGMON_RUN")
            ended = (run for run in runs if run.run_id != own and run.is_ended)
            how = next((f"run {run.run_id}, {run.why}" for run in ended), before)
    return f"{part.deaths} jobs died while they worked on it alone; the last one was {how}"
