"""What the queue manager's process remembers of each queue: its last verdicts, and what went through it.

The last verdict by kind of occurrence is for ``explain --why-not``: a put pays a look-up and a comparison, and
sentences are made when ``explain`` asks. The counters begin at zero with the process, as in MQ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import msgspec
from msgspec.structs import replace

from trigmon.mq.calls import Call
from trigmon.mq.explanation import Looked
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Reply, WasPut, WerePut
from trigmon.qmgr.sessions import Identity
from trigmon.rules.model.decision import Decision, Judged
from trigmon.rules.model.events import TriggerMessageDropped
from trigmon.rules.model.internal_calls import DeadLetter
from trigmon.rules.model.manager_state import QueueActivity
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.situation import Happened
from trigmon.rules.model.verdict import Verdict
from trigmon.rules.triggers.table import judge
from trigmon.rules.triggers.wording import explanations

SHORT, LONG = 3, 6
"""A queue's moving averages (QTIME) are of about the last 2 ** 3 and 2 ** 6 messages."""
MOST_Q_TIME_US = 999_999_999


class _Look(msgspec.Struct):
    """The newest of a row of equal verdicts, the moment of the first and how many they are.

    ``held`` says which conditions held; None: trigger control was off, and the rest was not looked at.

    ``number`` counts all that was ever judged: the clock may not tell two calls of one turn apart.
    """

    judged: Judged
    held: list[bool] | None
    who: Identity
    call: type[Call]
    reply: Reply
    since_ms: int
    number: int
    times: int = 1
    fate: str = ""


class Looks:
    """The last verdicts, by queue and occurrence."""

    def __init__(self) -> None:
        self._looks: dict[str, dict[Happened, _Look]] = {}
        self._number = 0

    def note(self, decision: Decision, who: Identity, call: Call) -> None:
        """Keeps what a performed decision judged. ``call`` was made; the decision's may be an internal one."""
        for judged in decision.judged:
            situation = judged.situation
            self._number += 1
            of_queue = self._looks.setdefault(situation.queue.definition.name, {})
            last = of_queue.get(situation.happened)
            # The occasion follows from what holds; what was counted may differ.
            verdict = judged.verdict
            held = None if verdict is None else [finding.holds for finding in verdict.findings]
            if last is not None and last.held == held:
                last.judged, last.who, last.call, last.reply = judged, who, type(call), decision.reply
                last.number, last.fate = self._number, ""
                last.times += judged.times
            else:
                look = _Look(judged, held, who, type(call), decision.reply, situation.now, self._number, judged.times)
                of_queue[situation.happened] = look
        for internal_call in decision.internal_calls:
            if isinstance(internal_call, DeadLetter) and isinstance(internal_call.reason, Reason):
                why = f"{internal_call.initiation_q} did not take it ({internal_call.reason.mq_name})"
                self._note_fate(internal_call.q_name, f"{why} and it went to the dead-letter queue")
        for event in decision.events:
            if isinstance(event, TriggerMessageDropped):
                self._note_fate(event.q_name, f"it was dropped: {event.why}")

    def _note_fate(self, q_name: str, fate: str) -> None:
        """Records the fate of the trigger message that the newest verdict of a queue wrote."""
        looks = self._looks.get(q_name, {}).values()
        if looks:
            max(looks, key=lambda look: look.number).fate = fate

    def forget(self, q_name: str) -> None:
        """Forgets a deleted queue: a queue defined later by its name begins anew."""
        self._looks.pop(q_name, None)

    def fired(self, q_name: str, occasion: str) -> tuple[str, ...]:
        """Returns what held when a queue last fired on this occasion, a line for each condition; empty if unknown."""
        looks = [look for look in self._looks.get(q_name, {}).values() if _verdict(look.judged).occasion == occasion]
        if not looks or not occasion:
            return ()
        judged = max(looks, key=lambda look: look.number).judged
        explained = explanations(judged.situation, _verdict(judged))
        return tuple(
            f"{each.number} {each.fact}: {each.seen}" for each in explained if each.holds == "yes" and each.seen
        )

    def of(self, q_name: str) -> list[Looked]:
        """Returns what is known of a queue, newest first."""
        looks = self._looks.get(q_name, {}).values()
        return [_looked(look) for look in sorted(looks, key=lambda look: -look.number)]


def _verdict(judged: Judged) -> Verdict:
    return judge(judged.situation) if judged.verdict is None else judged.verdict


def _msg_id(reply: Reply) -> bytes:
    """Returns the message id of a put, or of the last of several."""
    if isinstance(reply, WerePut):
        return reply.msg_ids[-1]
    return reply.msg_id if isinstance(reply, WasPut) else b""


def _looked(look: _Look) -> Looked:
    situation, verdict = look.judged.situation, _verdict(look.judged)
    is_put = situation.happened is Happened.PUT
    conditions = explanations(situation, verdict)
    fails = verdict.fails if is_put else [c.number for c in conditions if c.holds == "NO"]
    return Looked(
        happened=situation.happened.name.lower(),
        at_ms=situation.now,
        since_ms=look.since_ms,
        times=look.times,
        call=str(look.call.__struct_config__.tag or look.call.__name__.lower()),
        application=look.who.application,
        pid=look.who.pid,
        user=look.who.user,
        run_id=look.who.run_id,
        fires=verdict.fires,
        occasion=verdict.occasion,
        fails=[] if verdict.fires else fails,
        conditions=conditions,
        msg_id=_msg_id(look.reply) if is_put else b"",
        priority=situation.put_priority if is_put else -1,
        fate=look.fate,
    )


class Activity:
    """The counters of all queues. ``deepened``: the queues that this turn has put to."""

    def __init__(self, started_ms: int) -> None:
        self._started_ms = started_ms
        self._of: dict[str, QueueActivity] = {}
        self._oldest: dict[str, tuple[object, int]] = {}
        self._removed_ms: dict[str, int] = {}
        self._returns = 0
        self.deepened: set[str] = set()
        self.on_reset: Callable[[str, int, int], None] = lambda q_name, depth, now: None

    def put(self, q_name: str, now: int, count: int = 1) -> None:
        """Counts messages that were put, committed or not."""
        activity = self._of.get(q_name) or self._begun(q_name)
        activity.puts += count
        activity.last_put_ms = now
        self.deepened.add(q_name)

    def got(self, q_name: str, put_ms: int, now: int) -> None:
        """Counts a message that was got, committed or not, and how long it had been on the queue."""
        self._got(q_name, ((put_ms, 1),), 1, now)

    def got_many(self, q_name: str, times_ms: Sequence[int], now: int) -> None:
        """Counts as :meth:`got` messages that were put at these times; those of one time count one behind the other."""
        self._got(q_name, Counter(times_ms).items(), len(times_ms), now)

    def _got(self, q_name: str, times_ms: Iterable[tuple[int, int]], gets: int, now: int) -> None:
        activity = self._of.get(q_name) or self._begun(q_name)
        activity.gets += gets
        activity.last_get_ms = now
        short, long = activity.q_time_short_us, activity.q_time_long_us
        for put_ms, count in times_ms:
            q_time_us = (now - put_ms) * 1000
            if not 0 <= q_time_us <= MOST_Q_TIME_US:  # PutTime may be any that a program set
                q_time_us = min(max(0, q_time_us), MOST_Q_TIME_US)
            if short < 0:
                short = long = q_time_us
            elif count == 1:
                short += (q_time_us - short) >> SHORT
                long += (q_time_us - long) >> LONG
            else:
                short, long = _moved(short, q_time_us, SHORT, count), _moved(long, q_time_us, LONG, count)
        activity.q_time_short_us, activity.q_time_long_us = short, long

    def removed(self, q_name: str, now: int) -> None:
        """Notes that a message has left a queue for good: got, moved, cleared or discarded."""
        self._removed_ms[q_name] = now

    def left_ms(self, q_name: str) -> int:
        """Returns when a message last was got from a queue or left it otherwise; 0: not since the process started."""
        activity = self._of.get(q_name)
        return max(self._removed_ms.get(q_name, 0), activity.last_get_ms if activity is not None else 0)

    def note_depths(self, local_queue: Callable[[str], QueueFacts | None]) -> None:
        """Notes how deep the queues are, at the end of a turn, that it has put to."""
        while self.deepened:
            q_name = self.deepened.pop()
            if (queue := local_queue(q_name)) is not None:
                self._note_depth(q_name, queue.depth)

    def _note_depth(self, q_name: str, depth: int) -> None:
        activity = self._of.get(q_name) or self._begun(q_name)
        activity.high_q_depth = max(activity.high_q_depth, depth)

    def of(self, q_name: str, depth: int) -> QueueActivity:
        """Returns the counters of a queue that is so deep now."""
        self._note_depth(q_name, depth)
        return self._of[q_name]

    def reset(self, q_name: str, depth: int, now: int) -> None:
        """Counts anew from now on; when the last put and the last get were, and the queue times, are kept."""
        self._of[q_name] = replace(self.of(q_name, depth), since_ms=now, high_q_depth=depth, puts=0, gets=0)
        self.on_reset(q_name, depth, now)

    def returned(self) -> None:
        """Notes that reserved messages have come back to a queue."""
        self._returns += 1

    def known_oldest(self, queue: QueueFacts) -> int | None:
        """Returns when the oldest message was put, if the queue's messages are those of when it was kept."""
        state, put_ms = self._oldest.get(queue.definition.name, (None, 0))
        return put_ms if state is not None and state == self._state(queue) else None

    def keep_oldest(self, queue: QueueFacts, put_ms: int) -> None:
        """Keeps when the oldest message of a queue was put; not of a shared one, which others change."""
        if queue.shared is None:
            self._oldest[queue.definition.name] = self._state(queue), put_ms

    def _state(self, queue: QueueFacts) -> object:
        """Returns a value that differs when a message came, left, came back, or was committed.

        A message that comes or is got is counted; one that leaves or comes back otherwise changes a depth. The same
        depths again need one of each: one that came back from a unit of work or from a reservation.
        """
        activity = self._of.get(queue.definition.name) or self._begun(queue.definition.name)
        uncommitted = (queue.uncommitted_puts, queue.uncommitted_gets, self._returns)
        return queue.depths, uncommitted, activity.puts, activity.gets, activity.since_ms

    def forget(self, q_name: str) -> None:
        """Forgets a queue that is deleted."""
        self._of.pop(q_name, None)
        self._oldest.pop(q_name, None)
        self._removed_ms.pop(q_name, None)
        self.deepened.discard(q_name)

    def _begun(self, q_name: str) -> QueueActivity:
        begun = self._of[q_name] = QueueActivity(since_ms=self._started_ms)
        return begun


def _moved(average: int, value: int, log2: int, count: int) -> int:
    """Returns a moving average of about 2 ** ``log2`` values, after ``count`` more that all are ``value``."""
    return value - int((value - average) * (1 - 0.5**log2) ** count)
