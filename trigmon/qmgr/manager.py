"""The queue manager: performs every call in the same steps: read once, decide once, write once.

:meth:`QueueManager.turn` performs a batch of calls from many sessions in one turn of the store. When it returns, all
of it is durable and may be answered. A get that may wait is parked, and performed again when a change touches its
queue. Nothing here knows sockets, threads or real time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from trigmon.mq.attributes import Definition
from trigmon.mq.calls import Call, LostConnection
from trigmon.mq.errors import MQError, NotAuthorized, StorageMediumFull
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Refused, Reply
from trigmon.qmgr.client_backup import Backups
from trigmon.qmgr.clock import Clock
from trigmon.qmgr.counters import RECENT, Counters
from trigmon.qmgr.event_messages import EventMessages
from trigmon.qmgr.expiry_scan import Scan
from trigmon.qmgr.follow_ups import Notes
from trigmon.qmgr.housekeeping import KEEPS_ALL, Housekeeping, Retention
from trigmon.qmgr.ids import Counter
from trigmon.qmgr.manager_events import CallFailed, NotAuthorizedCall, SessionEnded, Telling, act_of
from trigmon.qmgr.moved_queues import MovedQueues
from trigmon.qmgr.oldest_messages import OldestMessages
from trigmon.qmgr.queue_history import Activity, Looks
from trigmon.qmgr.sessions import ITSELF, Identity, Parked, Session, SessionReports
from trigmon.qmgr.waiters import ANY, Waiters
from trigmon.rules.call_rights import ACTS, check_call
from trigmon.rules.model import changes as c
from trigmon.rules.model.authority import User, UserFacts
from trigmon.rules.model.decision import Decision
from trigmon.rules.model.manager_state import Disk, ManagerState
from trigmon.rules.model.stored_messages import SLICE
from trigmon.rules.model.ticket import Ticket, unsigned
from trigmon.rules.runs.program_tracking import attended
from trigmon.rules.verbs import VERBS
from trigmon.store.port import NotEntered, Store, StoreBroken

DEEPEST_INTERNAL_CALL = 5
"""The depth of internal calls: a get puts poison aside, as a dead letter, with a report, whose dead letter follows."""

KEEP_TIME_MS = 1000


class Answer(NamedTuple):
    """A reply that may be sent now."""

    session: Session
    sequence: int
    reply: Reply


class QueueManager:
    """A queue manager on one store."""

    def __init__(
        self,
        name: str,
        store: Store,
        clock: Clock,
        telling: Telling | None = None,
        puts_allowed: Callable[[], bool] = lambda: True,
        retention: Retention = KEEPS_ALL,
    ) -> None:
        self.name = name
        self.clock = clock
        self.started_ms = clock.now()
        self.warnings: list[str] = []
        """Warnings about how it is run, for operators; status shows them."""
        self._store = store
        self._telling = telling or Telling()
        self.are_puts_allowed = puts_allowed
        self.disk: Callable[[], Disk | None] = lambda: None
        self.known_user: Callable[[str, Sequence[str]], User] = lambda user, groups: UserFacts(user, tuple(groups))
        self.sign_ticket: Callable[[Ticket], str] = unsigned
        self._waiters = Waiters()
        self._sessions: dict[int, Session] = {}
        self._ids = Counter(name, store.open(name, self.started_ms))
        self._noted: list[Decision] = []
        self._named: Definition | None = None  # what the call that is performed names, as it was before
        # Waits that ended when a call entered the group.
        self._late: list[Answer] = []
        self._looks = Looks()
        scan = Scan()
        self._activity = Activity(self.started_ms)
        self._oldest = OldestMessages(store, self._activity)
        self.counters = Counters()
        self._notes = Notes(name, self._sessions, self._waiters, scan, self._looks, self._activity, self.counters)
        self._moved = MovedQueues(self, store, self._notes, self._noted)
        self.event_messages = EventMessages(self, store, self._notes, self._activity)
        self._is_in_group = store.is_in_group
        self.backups = Backups(store, clock, self._sessions)
        self.housekeeping = Housekeeping(self, store, self._notes, scan, retention)
        self._kept_ms = self.started_ms
        # What the gets of a turn may still discard, and whether the last of them found that used up.
        self._room = SLICE
        self._goes_on = False
        self._store.keep_time(clock.kept(), must=True)
        self.housekeeping.define_system_objects()

    # -- connections ------------------------------------------------------------------------------------

    def connect(self, identity: Identity) -> Session:
        """Connects a client and returns its session. Raises NotAuthorized (2035) for a ticket that does not hold."""
        session = Session(self._ids.handle(), identity)
        session.begin(self._store, self.clock.now())
        self._sessions[session.connection] = session
        return session

    def lost(self, sessions: Iterable[Session]) -> list[Answer]:
        """Backs out and closes connections that ended without MQDISC."""
        return self.turn([(session, 0, LostConnection()) for session in sessions if not session.is_gone])

    def stop(self) -> list[Answer]:
        """Ends the queue manager in order and returns the last answers.

        Waiting gets are answered 2162; units of work in flight are backed out at the next start.
        """
        stopping = Refused(reason=int(Reason.Q_MGR_STOPPING), about=self.name)
        answers = [
            Answer(session, session.parked.sequence, stopping) for session in self._waiters.all() if session.parked
        ]
        for session in self._sessions.values():
            session.is_gone = True
            self._waiters.release(session)
        self._sessions.clear()
        self._store.keep_time(self.clock.kept(), must=True)
        self._store.close()
        return answers

    # -- turns ------------------------------------------------------------------------------------------

    def turn(
        self, requests: Sequence[tuple[Session, int, Call]], upkeep: Callable[[], None] = lambda: None
    ) -> list[Answer]:
        """Performs the calls in order and makes all of it durable; also answers waits that ended meanwhile.

        ``upkeep`` is work on the store without a call, done first.

        Raises StoreBroken: then the outcome is unknown and nothing may be answered any more.
        """
        answers: list[Answer] = []
        began_s = self.counters.timer()
        self._room = SLICE
        self._store.begin()
        upkeep()
        now = self.clock.now()
        if self._is_in_group:
            self._moved.judge_others(now, answers)
        for session, sequence, call in requests:
            self._serve(session, sequence, call, now, answers)
            if self._notes.woken:
                self.wake(now, answers)
            if self._notes.rings:
                self._ring(now, answers)
        for session in self._waiters.due(now):
            self._run_out(session, now, answers)
        if now - self._kept_ms >= KEEP_TIME_MS and self._store.keep_time(self.clock.kept()):
            self._kept_ms = now
        self._activity.note_depths(self._store.local_queue)
        committing_s = self.counters.timer()
        self._store.end()
        events, self._notes.events = self._notes.events, []
        self.counters.recent.append((len(requests), began_s, committing_s, self.counters.timer(), events))
        if len(self.counters.recent) >= RECENT:
            self.counters.fold()
        for event in events:
            if type(event) not in self._telling.ignored:
                self._telling.tell(event)
        answers += self._late
        self._late = []
        return answers

    def next_deadline_ms(self) -> int | None:
        """Returns when :meth:`turn` must be called again at the latest, by the clock's time."""
        return self._waiters.next_deadline_ms()

    def _serve(self, session: Session, sequence: int, call: Call, now: int, answers: list[Answer]) -> None:
        if session.is_gone:
            return
        verb = VERBS[type(call)]
        if verb.can_wait and self._room <= 0:
            # Gets before it discarded this turn's slice, and it may meet more.
            self._goes_on = True
            self._park(session, sequence, call, now)
            return
        if verb.ends_wait:
            self._waiters.release(session)
        reply = self.answer(session, call, now)
        if verb.can_wait and _may_wait(reply) and (self._goes_on or call.wait_ms):
            self._park(session, sequence, call, now)
        elif sequence:
            answers.append(Answer(session, sequence, reply))

    def answer(self, session: Session, call: Call, now: int) -> Reply:
        """Performs a call, or undoes all of it and refuses it; returns the reply."""
        self._store.mark()
        self._noted.clear()
        self._goes_on = False
        before = self._ids.place, self._room
        try:
            reply = self.perform(call, session, now).reply
            if self._is_in_group:
                self._moved.judge(session, call, now)
            if self.event_messages.are_on:
                self.event_messages.report(tuple(self._noted), now)
            verb = VERBS[type(call)]
            if verb.complete is not None:
                reply = verb.complete(call, reply, self._state(session, now))
        except NotEntered:
            self._store.undo()
            self._ids.go_back(before[0])
            self._room = before[1]
            self._store.enter()
            # What is found there wakes waiting gets, but not the session of this call: it would be answered twice.
            was_asked, session.is_asked = session.is_asked, True
            self._moved.judge_others(now, self._late)
            session.is_asked = was_asked
            return self.answer(session, call, now)
        except MQError as error:
            return self._refuse(session, call, error, now)
        except StoreBroken:
            raise
        except Exception as error:  # a bug must not end the daemon: this call is undone, the rest stands
            self._store.undo()
            self._telling.tell(CallFailed(session, call, error))
            return Refused(reason=int(Reason.UNEXPECTED_ERROR), about=f"{type(error).__name__}; see the log")
        if type(call) in ACTS and session.identity is not ITSELF:
            self._notes.events.append(act_of(session, call, reply, self._named, self._noted))
        for decision in self._noted:
            self._notes.note(decision, now)
            if decision.judged or decision.events:
                self._looks.note(decision, session.identity, call)
        if verb.hears_news:
            session.ends_on_news = True
        return reply

    def _state(self, session: Session, now: int) -> ManagerState:
        waiting, news, allowed = self._waiters.count, self._notes.news, self.are_puts_allowed()
        started, looks, end = self.started_ms, self._looks.of, partial(self._end_session, session)
        known, sign = self.known_user, self.sign_ticket
        oldest, reports = partial(self._oldest.put_ms, session.connection, now), SessionReports(session, self._sessions)
        more = (self.backups.of(session), self._activity, self.disk(), reports, end, oldest, known, sign)
        return ManagerState(now, started, waiting, allowed, self.warnings, news, looks, *more, self.counters.figures)

    def _end_session(self, by: Session, connection: int) -> None:
        if (ended := self._sessions.get(connection)) is not None:
            self._notes.events.append(SessionEnded(ended, by))

    def _refuse(self, session: Session, call: Call, error: MQError, now: int) -> Refused:
        self._store.undo()
        if session.identity is not ITSELF:
            self.counters.refused(int(error.reason))
        verb = VERBS[type(call)]
        if verb.put_unit is not None:
            if unit := verb.put_unit(call):
                self._store.apply([c.NoteRefused(session.connection, unit)], False)
            if error.reason is Reason.Q_FULL and self.event_messages.are_on:
                facts = self._store.facts(verb.wants(call, session.connection), False)
                self.event_messages.report_full(facts.queue, now)
        if isinstance(error, NotAuthorized):
            self._notes.events.append(NotAuthorizedCall(session, call, error))
        return Refused(reason=int(error.reason), about=error.about)

    def perform(self, call: Call, session: Session, now: int, depth: int = 0) -> Decision:
        """Reads once, decides once, writes once; then performs the internal calls in the same way."""
        verb = VERBS[type(call)]
        if verb.needs_space and not self.are_puts_allowed():
            raise StorageMediumFull("free space is under disk_reserve; make room, gets still work")
        while True:
            wants = verb.wants(call, session.connection)
            facts = self._store.facts(wants, verb.is_wide)
            if not depth:
                if not facts.connection.is_administrator:
                    check_call(call, facts, now)
                if verb.is_wide:
                    self._named = getattr(facts, "named", None)
            if verb.fired_by is not None:
                facts = replace(facts, fired=self._looks.fired(*verb.fired_by(wants)))
            selection = verb.look_for(call, facts, now) if verb.look_for is not None else None
            found = self._store.find(selection) if selection is not None else None
            decision = verb.decide(call, facts, found, now, self._ids)
            if facts.serving is not None:
                decision = attended(call, facts, found, decision, now)
            did_something = bool(decision.changes or decision.internal_calls)
            noted = len(self._noted)
            if decision.changes:
                more_follow = depth > 0 or bool(decision.internal_calls) or self.event_messages.are_on
                self._store.apply(decision.changes, more_follow or _may_wait(decision.reply))
            self._noted.append(decision)
            if decision.internal_calls:
                decision = self._run_internal_calls(decision, call, session, now, depth)
            # Only messages were met that no get returns, and more may follow them: the same call looks again, in the
            # next turn if this one has discarded its slice.
            if not (did_something and _may_wait(decision.reply)):
                return decision
            self._room -= max(1, sum(len(each.changes) for each in self._noted[noted:]))
            if self._room <= 0:
                self._goes_on = True
                return decision

    def _run_internal_calls(self, decision: Decision, call: Call, session: Session, now: int, depth: int) -> Decision:
        """Performs the internal calls and returns the decision with the reply that their replies make."""
        if depth >= DEEPEST_INTERNAL_CALL:
            raise AssertionError(f"internal calls nested deeper than {DEEPEST_INTERNAL_CALL}: {type(call).__name__}")
        replies = [self.perform(each, session, now, depth + 1).reply for each in decision.internal_calls]
        if decision.gather is not None:
            return replace(decision, reply=decision.gather(replies))
        return decision

    def forget_session(self, session: Session) -> None:
        """Forgets a session of the queue manager's own, whose connection another change has dropped."""
        self._sessions.pop(session.connection, None)

    # -- afterwards -------------------------------------------------------------------------------------

    def wake(self, now: int, answers: list[Answer]) -> None:
        """Performs again the gets that wait on what changed."""
        while self._notes.woken:
            q_name, came = self._notes.woken.popitem()
            if q_name not in self._waiters.queues:
                continue
            for session in self._waiters.special(q_name, came):
                self._retry(session, now, answers)
            for session in self._waiters.general(q_name):
                # The next would find nothing either, unless an alias on the way has changed.
                if not self._retry(session, now, answers) and came is not ANY:
                    break

    def _ring(self, now: int, answers: list[Answer]) -> None:
        """Ends the waits of monitors: there is news for them."""
        self._notes.rings = False
        for session in self._waiters.all():
            if session.ends_on_news and (parked := session.parked) is not None:
                reply = self.answer(session, parked.call, now)
                self._waiters.release(session)
                answers.append(Answer(session, parked.sequence, reply))

    def _retry(self, session: Session, now: int, answers: list[Answer]) -> bool:
        parked = session.parked
        if parked is None or session.is_asked:
            return True
        if self._room <= 0:
            self._park_again(session, parked, now)
            return True
        reply = self.answer(session, parked.call, now)
        if _may_wait(reply):
            if self._goes_on:
                self._park_again(session, parked, now)
            return self._goes_on
        self._waiters.release(session)
        answers.append(Answer(session, parked.sequence, reply))
        return True

    def _run_out(self, session: Session, now: int, answers: list[Answer]) -> None:
        """Ends a wait: performs the call a last time and answers its reply.

        A get that was discarding expired messages goes on, and may have time left to wait.
        """
        parked = session.parked
        if parked is None:
            return
        if self._room <= 0:
            self._park_again(session, parked, now)
            return
        reply = self.answer(session, parked.call, now)
        may_go_on = parked.until_ms is None or parked.until_ms > now
        if _may_wait(reply) and (self._goes_on or may_go_on):
            self._park_again(session, parked, now if self._goes_on else parked.until_ms)
            return
        self._waiters.release(session)
        answers.append(Answer(session, parked.sequence, reply))

    def _park(self, session: Session, sequence: int, call: Call, now: int) -> None:
        """Lets the call wait for a message, or for the next turn if it goes on then."""
        until = None if call.wait_ms < 0 else now + call.wait_ms
        deadline = now if self._goes_on else until
        self._waiters.park(session, Parked(sequence, call, self._q_name(call, session), deadline, until))

    def _park_again(self, session: Session, parked: Parked, deadline_ms: int | None) -> None:
        self._waiters.release(session)
        self._waiters.park(session, replace(parked, deadline_ms=deadline_ms))

    def _q_name(self, call: Call, session: Session) -> str:
        handle = self._store.facts(VERBS[type(call)].wants(call, session.connection), False).handle
        return handle.q_name if handle is not None else ""


def _may_wait(reply: Reply) -> bool:
    return type(reply) is Refused and reply.may_wait
