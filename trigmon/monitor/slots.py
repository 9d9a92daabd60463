"""Which runs are running, which are held and why, and which may start next. No clock, no process, no lock of its own.

Runs are counted by slot (a process) for its cap, and by cause (a process for a queue) for the pause that failures in a
row earn. Held runs keep their order, but one that pauses or waits for others is no reason to hold those behind it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from trigmon.launch.port import Order
from trigmon.monitor.plan import Cause, Failing, cause_of, paused, slot_of
from trigmon.mq.descriptors import TriggerMessage


class Slots:
    """The counts of one monitor. ``now_s`` is any clock that only goes forward.

    ``is_stopped`` tells whether an operator has paused what would be started.
    """

    def __init__(
        self, default_instances: int, is_stopped: Callable[[TriggerMessage], bool] = lambda _trigger: False
    ) -> None:
        self.default_instances = default_instances
        self._is_stopped = is_stopped
        self._running: Counter[str] = Counter()
        self._by_cause: Counter[Cause] = Counter()
        self._failing: dict[Cause, Failing] = {}
        self._held: dict[str, Order] = {}
        self._known: set[str] = set()

    def knows(self, run_id: str) -> bool:
        """Whether a run is running or held here."""
        return run_id in self._known

    def running(self, slot: str) -> int:
        """How many runs of a slot are running."""
        return self._running[slot]

    def before(self, slot: str) -> int:
        """How many runs of a slot are running or held."""
        return self._running[slot] + sum(slot_of(order.trigger) == slot for order in self._held.values())

    def paused(self, trigger: TriggerMessage, now_s: float) -> str:
        """Why a run of this cause must wait for the failures before it; "" when it need not."""
        return paused(self.failing(trigger), self._by_cause[cause_of(trigger)], now_s)

    def failing(self, trigger: TriggerMessage) -> Failing:
        """How the last runs of this cause ended."""
        return self._failing.get(cause_of(trigger), Failing())

    def begin(self, run_id: str, trigger: TriggerMessage) -> None:
        """A run starts, or was found running."""
        self._known.add(run_id)
        self._running[slot_of(trigger)] += 1
        self._by_cause[cause_of(trigger)] += 1

    def end(self, run_id: str, trigger: TriggerMessage) -> None:
        """A run is over, or never became a process."""
        self._known.discard(run_id)
        self._less(trigger)

    def judged(self, trigger: TriggerMessage, succeeded: bool | None, now_s: float) -> None:
        """How a run ended; None when nobody saw it, which changes nothing."""
        cause = cause_of(trigger)
        if succeeded:
            self._failing.pop(cause, None)
        elif succeeded is False:
            self._failing[cause] = Failing(self.failing(trigger).times + 1, now_s)

    def hold(self, order: Order) -> None:
        """A run that waits, behind those that wait already."""
        self._known.add(order.run_id)
        self._held[order.run_id] = order

    def next(self, now_s: float, passed_over: set[str]) -> Order | None:
        """The oldest held run that may start, now counted as running; those of ``passed_over`` slots may not."""
        for order in self._held.values():
            slot = slot_of(order.trigger)
            cap = order.process.instances or self.default_instances
            if slot in passed_over or self._running[slot] >= cap or self._is_stopped(order.trigger):
                continue
            if not self.paused(order.trigger, now_s):
                del self._held[order.run_id]
                self.begin(order.run_id, order.trigger)
                return order
        return None

    def put_back(self, order: Order) -> None:
        """A run that :meth:`next` gave and that cannot start now is held again, before all others."""
        self._less(order.trigger)
        self._held = {order.run_id: order} | self._held

    def held(self) -> list[str]:
        """The ids of all held runs, oldest first."""
        return list(self._held)

    def drop(self, run_id: str) -> None:
        """A held run is not to be started any more."""
        if self._held.pop(run_id, None) is not None:
            self._known.discard(run_id)

    def held_of(self, trigger: TriggerMessage) -> Iterator[Order]:
        """The held runs of this cause, oldest first."""
        return (order for order in self._held.values() if cause_of(order.trigger) == cause_of(trigger))

    def next_pause_s(self, now_s: float) -> float | None:
        """Seconds until the first pause of a held run is over; None when none pauses."""
        ends = [failing.until_s for order in self._held.values() if (failing := self.failing(order.trigger)).times]
        return min((max(0.0, end - now_s) for end in ends if end > now_s), default=None)

    def _less(self, trigger: TriggerMessage) -> None:
        self._running[slot_of(trigger)] -= 1
        self._by_cause[cause_of(trigger)] -= 1
