"""One road for every call: read once, decide once, write once.

:meth:`QueueManager.turn` performs a batch of calls from many sessions in one turn of the store. When it returns, all
of it is durable and may be answered. A get that may wait is parked as the call it is, and performed again when a
change touches its queue. Nothing calls back, and nothing here knows sockets, threads or real time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from trigmon.mq.calls import (
    Call,
    Controls,
    Disconnect,
    Explain,
    Get,
    GetMany,
    LostConnection,
    Put,
    PutMany,
    RecordRun,
    Status,
)
from trigmon.mq.errors import MQError, NotAuthorized, StorageMediumFull
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Counted, Explained, Listing, Refused, Reply, Values
from trigmon.qmgr.clock import Clock
from trigmon.qmgr.events import CallFailed, NotAuthorizedCall, SharedQueuesJudged, SharedQueuesUnjudged, Telling
from trigmon.qmgr.expiry_scan import Scan
from trigmon.qmgr.follow_ups import Notes
from trigmon.qmgr.ids import Counter
from trigmon.qmgr.last_verdicts import Looks
from trigmon.qmgr.sessions import Identity, Parked, Session
from trigmon.qmgr.startup import system_objects
from trigmon.qmgr.waiters import ANY, Waiters
from trigmon.rules.messages.get import may_wait, wait_of
from trigmon.rules.model import changes as c
from trigmon.rules.model import handle_changes
from trigmon.rules.model.decision import Decision
from trigmon.rules.model.errands import Awake, Deliver, Forget, Heed, LookThrough, Prune, Tend
from trigmon.rules.model.facts import NOTHING_MOVED, SLICE, ConnectionFacts, Moved, Wants
from trigmon.rules.runs.program_tracking import attended
from trigmon.rules.runs.run_ledger import fired_by
from trigmon.rules.verbs import VERBS
from trigmon.store.port import NotEntered, Store, StoreBroken

DEEPEST_ERRAND = 5
"""Poison put aside for a get, or as a dead letter, or handed out after all, its report, the dead letter of that."""

KEEP_TIME_MS = 1000
FOR_EVER = 2**62
OUTCOMES_KEPT_MS = 7 * 86_400_000
"""So long an outcome can be asked for when its client is gone."""
SLICES_AT_ONCE = 4
"""So many slices of old runs go at a time: the ledger loses a thousand a second, and nobody waits long."""

_ITSELF = Identity(client_id="", application="trigmon", administrator=True)
_PUTS = (Put, PutMany, Deliver)


class Answer(NamedTuple):
    """A reply that may go out now."""

    session: Session
    sequence: int
    reply: Reply


class Retention(NamedTuple):
    """How long the ledger keeps runs that have ended: so many, and so long. None: for ever."""

    keep_count: int | None = None
    keep_ms: int | None = None


KEEPS_ALL = Retention()


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
        """What an operator should know of how it is run; status says it."""
        self._store = store
        self._telling = telling or Telling()
        self._puts_allowed = puts_allowed
        self._retention = retention
        self._waiters = Waiters()
        self._sessions: dict[int, Session] = {}
        self._ids = Counter(name, store.open(name, self.started_ms))
        self._noted: list[Decision] = []
        # Waits that ended when a call entered the group.
        self._late: list[Answer] = []
        self._looks = Looks()
        self._scan = Scan()
        self._notes = Notes(name, self._sessions, self._waiters, self._scan, self._looks)
        self._kept_ms = self.started_ms
        # What others did to shared queues and could not be heeded yet, and why.
        self._unheeded = NOTHING_MOVED
        self._unheeded_for: MQError | None = None
        # What the gets of a turn may still discard, and whether the last of them found that used up.
        self._room = SLICE
        self._goes_on = False
        self._store.keep_time(clock.kept(), must=True)
        self._define_system_objects()

    # -- connections ------------------------------------------------------------------------------------

    def connect(self, identity: Identity) -> Session:
        """A new session. It exists at once; nothing of it needs to be durable."""
        number = self._ids.handle()
        session = Session(number, identity)
        facts = ConnectionFacts(
            number,
            identity.client_id,
            identity.application,
            identity.user,
            identity.pid,
            identity.run_id,
            is_administrator=identity.administrator,
            is_setter=identity.setter,
            max_handles=identity.max_handles,
            max_dynamic_queues=identity.max_dynamic_queues,
        )
        self._store.apply([handle_changes.Connect(facts)], False)
        self._sessions[number] = session
        return session

    def lost(self, sessions: Iterable[Session]) -> list[Answer]:
        """Connections that ended without MQDISC: each is backed out, then closed."""
        return self.turn([(session, 0, LostConnection()) for session in sessions if not session.is_gone])

    def stop(self) -> list[Answer]:
        """The orderly end: waiting gets are answered 2162, units of work in flight are backed out at the next start."""
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

    def turn(self, requests: Sequence[tuple[Session, int, Call]]) -> list[Answer]:
        """Performs the calls in order and makes all of it durable; also answers waits that ended meanwhile.

        Raises StoreBroken: then the outcome is unknown and nothing may be answered any more.
        """
        answers: list[Answer] = []
        self._room = SLICE
        self._store.begin()
        now = self.clock.now()
        self._heed(now, answers)
        for session, sequence, call in requests:
            self._serve(session, sequence, call, now, answers)
            if self._notes.woken:
                self._wake(now, answers)
            if self._notes.rings:
                self._ring(now, answers)
        for session in self._waiters.due(now):
            self._run_out(session, now, answers)
        if now - self._kept_ms >= KEEP_TIME_MS and self._store.keep_time(self.clock.kept()):
            self._kept_ms = now
        self._store.end()
        events, self._notes.events = self._notes.events, []
        for event in events:
            self._telling.tell(event)
        late, self._late = self._late, []
        return answers + late

    def next_deadline_ms(self) -> int | None:
        """When :meth:`turn` must be called again at the latest, by the clock's time."""
        return self._waiters.next_deadline_ms()

    def idle(self) -> list[Answer]:
        """Nothing is going on: the store may tidy up."""
        self._store.idle()
        return []

    @property
    def watches_the_clock(self) -> bool:
        """Whether time brings anything: a queue has to be tended, or expired messages looked for."""
        return bool(self._notes.tended) or self._scan.interval_ms > 0

    def tend(self) -> list[Answer]:
        """Looks at the queues that have BACKSTOP, MAXWAIT or REARM(AUTO), a slice of them a turn."""
        answers: list[Answer] = []
        names = sorted(self._notes.tended)
        for start in range(0, len(names), SLICE):
            session = self.connect(_ITSELF)
            looks: list[Call] = [Tend(q_name=name) for name in names[start : start + SLICE]]
            answers += self.turn([(session, 0, call) for call in (*looks, Disconnect())])
        return answers

    @property
    def is_scanning(self) -> bool:
        """Whether queues are still to be looked through, or rows to be removed: then :meth:`scan` goes on."""
        return self._scan.is_under_way or self._store.has_leftovers

    def scan(self) -> list[Answer]:
        """Discards a slice of expired messages, from the queues to be looked through, and of what is to be removed."""
        if self._store.has_leftovers:
            self._store.begin()
            self._store.remove_leftovers()
            self._store.end()
        return self._scan.go_on(self, self.connect(_ITSELF)) if self._scan.is_under_way else []

    def expire(self) -> list[Answer]:
        """Begins to look for expired messages when EXPRYINT has passed since it last did."""
        if not self._scan.is_due(self.clock.now()):
            return []
        session = self.connect(_ITSELF)
        return self.turn([(session, 0, self._look_through()), (session, 0, Disconnect())])

    def _look_through(self) -> LookThrough:
        """The look at all queues; at the group's too where no other member does that, who ended or lets it rest."""
        now = self.clock.now()
        return LookThrough(shared=self._store.takes_role("EXPIRY", now, now + 2 * self._scan.interval_ms))

    def forget_outcomes(self) -> list[Answer]:
        """Forgets what became of the units of work of clients that have long been gone, a slice of them."""
        self._store.begin()
        self._store.forget_outcomes(self.clock.now() - OUTCOMES_KEPT_MS)
        self._store.end()
        return []

    def prune(self) -> list[Answer]:
        """Forgets runs that ended long ago or are too many, a few slices of them, each in a turn of its own."""
        keep_count, keep_ms = self._retention
        if keep_count is None and keep_ms is None:
            return []
        before = 0 if keep_ms is None else self.clock.now() - keep_ms
        call = Prune(keep_count=FOR_EVER if keep_count is None else keep_count, ended_before_ms=before)
        answers: list[Answer] = []
        session, more = self.connect(_ITSELF), True
        for _ in range(SLICES_AT_ONCE):
            done = self.turn([(session, 1, call)]) if more else []
            more = any(isinstance(answer.reply, Counted) and answer.reply.more for answer in done)
            answers += [answer for answer in done if answer.session is not session]
        return answers + self.turn([(session, 0, Disconnect())])

    def _serve(self, session: Session, sequence: int, call: Call, now: int, answers: list[Answer]) -> None:
        if session.is_gone:
            return
        if self._room <= 0 and isinstance(call, Get | GetMany):
            # Gets before it discarded this turn's slice, and it may meet more.
            self._goes_on = True
            self._park(session, sequence, call, now)
            return
        if isinstance(call, LostConnection):
            self._waiters.release(session)
        reply = self._answer(session, call, now)
        if isinstance(call, Get | GetMany) and may_wait(reply) and (self._goes_on or wait_of(call)):
            self._park(session, sequence, call, now)
            return
        if sequence:
            answers.append(Answer(session, sequence, reply))

    def _answer(self, session: Session, call: Call, now: int) -> Reply:
        """The call performed, or taken back whole and refused."""
        self._store.mark()
        self._noted.clear()
        self._goes_on = False
        before = self._ids.next, self._room
        try:
            reply = self._perform(call, session, now).reply
            while (moved := self._store.changed()) is not NOTHING_MOVED:
                self._judge(moved, now)
        except NotEntered:
            self._store.undo()
            self._ids.go_back(before[0])
            self._room = before[1]
            self._store.enter()
            # What is found there wakes who waits for it, but not who is being asked: he would be answered twice.
            was_asked, session.is_asked = session.is_asked, True
            self._heed(now, self._late)
            session.is_asked = was_asked
            return self._answer(session, call, now)
        except MQError as error:
            return self._refuse(session, call, error)
        except StoreBroken:
            raise
        except Exception as error:  # a bug must not take the house down: this call is taken back, the rest stands
            self._store.undo()
            self._telling.tell(CallFailed(session, call, error))
            return Refused(reason=int(Reason.UNEXPECTED_ERROR), about=f"{type(error).__name__}; see the log")
        for decision in self._noted:
            self._notes.note(decision)
            if decision.judged or decision.events:
                self._looks.note(decision, session.identity, call)
        if isinstance(call, Status) and isinstance(reply, Values):
            more = {"started_ms": self.started_ms, "waiting_gets": self._waiters.count, "warnings": self.warnings}
            reply = replace(reply, values={**reply.values, **more})
        elif isinstance(call, Controls) and isinstance(reply, Values):
            session.heeds_news = True
            reply = replace(reply, values={**reply.values, "number": self._notes.news})
        elif isinstance(call, Explain) and call.why_not and isinstance(reply, Explained):
            values = {**reply.values, "started_ms": self.started_ms}
            reply = replace(reply, values=values, last=self._looks.of(reply.q_name))
        return reply

    def _refuse(self, session: Session, call: Call, error: MQError) -> Refused:
        self._store.undo()
        if isinstance(call, Put | PutMany) and call.unit:
            self._store.apply([c.NoteRefused(session.connection, call.unit)], False)
        if isinstance(error, NotAuthorized):
            self._notes.events.append(NotAuthorizedCall(session, call, error))
        return Refused(reason=int(error.reason), about=error.about)

    def _perform(self, call: Call, session: Session, now: int, depth: int = 0) -> Decision:
        """Read once, decide once, write once; then the errands, on the same road."""
        verb = VERBS[type(call)]
        who = session.identity
        if verb.is_administrative and not who.administrator:
            raise NotAuthorized(f"{type(call).__name__.lower()} needs an administrator")
        if verb.is_monitors and not (who.monitor or who.administrator):
            raise NotAuthorized(f"{type(call).__name__.lower()} needs a monitor (server.monitors)")
        if isinstance(call, _PUTS) and not self._puts_allowed():
            raise StorageMediumFull("free space is under disk_reserve; make room, gets still work")
        while True:
            facts = self._store.facts(verb.wants(call, session.connection), verb.is_wide)
            if isinstance(call, RecordRun):
                facts = replace(facts, fired=self._looks.fired(*fired_by(call.record)))
            selection = verb.look_for(call, facts, now) if verb.look_for is not None else None
            found = self._store.find(selection) if selection is not None else None
            decision = verb.decide(call, facts, found, now, self._ids)
            if facts.serving is not None:
                decision = attended(call, facts, found, decision, now)
            did_something = bool(decision.changes or decision.errands)
            noted = len(self._noted)
            if decision.changes:
                can_be_undone = may_wait(decision.reply) or bool(decision.errands) or depth > 0
                self._store.apply(decision.changes, can_be_undone)
            self._noted.append(decision)
            if decision.errands:
                decision = self._run_errands(decision, call, session, now, depth)
            # Only messages were met that are not given out, and more may lie behind them: the same call looks again,
            # in the next turn where this one has discarded its slice.
            if not (did_something and may_wait(decision.reply)):
                return decision
            self._room -= max(1, sum(len(each.changes) for each in self._noted[noted:]))
            if self._room <= 0:
                self._goes_on = True
                return decision

    def _run_errands(self, decision: Decision, call: Call, session: Session, now: int, depth: int) -> Decision:
        """The decision with the reply that its errands' replies make."""
        if depth >= DEEPEST_ERRAND:
            raise AssertionError(f"an errand of an errand of an errand: {type(call).__name__}")
        replies = [self._perform(errand, session, now, depth + 1).reply for errand in decision.errands]
        if decision.gather is not None:
            return replace(decision, reply=decision.gather(replies))
        return decision

    # -- afterwards -------------------------------------------------------------------------------------

    def _judge(self, moved: Moved, now: int) -> None:
        """Judges what a call has done to shared queues, within the call: whoever made it may be gone already."""
        if moved.quiet:
            moved = Moved(tuple(name for name in moved.queues if name not in moved.quiet), moved.definitions)
            if moved == NOTHING_MOVED:
                return
        session = self.connect(_ITSELF)
        try:
            self._perform(Heed(moved=moved, acted=True), session, now)
            self._perform(Forget(), session, now)
        finally:
            self._sessions.pop(session.connection, None)

    def _heed(self, now: int, answers: list[Answer]) -> None:
        """Judges what other members of the group did to shared queues, and wakes who waits for a message on them."""
        moved, self._unheeded = _both(self._unheeded, self._store.changed()), NOTHING_MOVED
        if moved is NOTHING_MOVED:
            return
        session = self.connect(_ITSELF)
        reply = self._answer(session, Heed(moved=moved), now)
        self._answer(session, Disconnect(), now)
        self._note_heeding(moved, reply)
        self._notes.woken.update(dict.fromkeys(moved.queues, ANY))
        self._wake(now, answers)

    def _note_heeding(self, moved: Moved, reply: Reply) -> None:
        """What was refused was not noted as judged, so the next turn finds it as it was; that is told once.

        A bug would come again with every turn: it is logged as such, and what moves next brings another try.
        """
        why: MQError | None = None
        if isinstance(reply, Refused) and reply.reason != Reason.UNEXPECTED_ERROR:
            why = MQError.of(reply.reason, reply.about)
            self._unheeded = _both(self._unheeded, moved)
        if type(why) is not type(self._unheeded_for):
            self._notes.events.append(SharedQueuesJudged() if why is None else SharedQueuesUnjudged(why))
        self._unheeded_for = why

    def _wake(self, now: int, answers: list[Answer]) -> None:
        """Performs again the gets that wait on what changed."""
        while self._notes.woken:
            q_name, came = self._notes.woken.popitem()
            for session in self._waiters.special(q_name, came):
                self._retry(session, now, answers)
            for session in self._waiters.general(q_name):
                # The next would find nothing either, but where an alias on the way changed that may be otherwise.
                if not self._retry(session, now, answers) and came is not ANY:
                    break

    def _ring(self, now: int, answers: list[Answer]) -> None:
        """Ends the waits of monitors, who have something else to look at."""
        self._notes.rings = False
        for session in self._waiters.all():
            if session.heeds_news and (parked := session.parked) is not None:
                reply = self._answer(session, parked.call, now)
                self._waiters.release(session)
                answers.append(Answer(session, parked.sequence, reply))

    def _retry(self, session: Session, now: int, answers: list[Answer]) -> bool:
        parked = session.parked
        if parked is None or session.is_asked:
            return True
        if self._room <= 0:
            self._park_again(session, parked, now)
            return True
        reply = self._answer(session, parked.call, now)
        if may_wait(reply):
            if self._goes_on:
                self._park_again(session, parked, now)
            return self._goes_on
        self._waiters.release(session)
        answers.append(Answer(session, parked.sequence, reply))
        return True

    def _run_out(self, session: Session, now: int, answers: list[Answer]) -> None:
        """A wait is over: the call is performed a last time, and whatever it answers is the answer.

        One that was in the middle of what had expired goes on, and may have time left to wait.
        """
        parked = session.parked
        if parked is None:
            return
        if self._room <= 0:
            self._park_again(session, parked, now)
            return
        reply = self._answer(session, parked.call, now)
        may_go_on = parked.until_ms is None or parked.until_ms > now
        if may_wait(reply) and (self._goes_on or may_go_on):
            self._park_again(session, parked, now if self._goes_on else parked.until_ms)
            return
        self._waiters.release(session)
        answers.append(Answer(session, parked.sequence, reply))

    def _park(self, session: Session, sequence: int, call: Get | GetMany, now: int) -> None:
        """The call waits for a message, or for the next turn where it goes on then."""
        wait = wait_of(call)
        until = None if wait < 0 else now + wait
        deadline = now if self._goes_on else until
        self._waiters.park(session, Parked(sequence, call, self._q_name(call, session), deadline, until))

    def _park_again(self, session: Session, parked: Parked, deadline_ms: int | None) -> None:
        self._waiters.release(session)
        self._waiters.park(session, replace(parked, deadline_ms=deadline_ms))

    def _q_name(self, call: Get | GetMany, session: Session) -> str:
        handle = self._store.facts(Wants(session.connection, handle=call.handle), False).handle
        return handle.q_name if handle is not None else ""

    def _define_system_objects(self) -> None:
        """Defines what is missing; what an operator changed stays as it is."""
        session = self.connect(_ITSELF)
        self.turn([(session, number, call) for number, call in enumerate(system_objects(), 1)])
        facts = self._store.facts(Wants(session.connection), False)
        self._scan.interval_ms = facts.q_mgr.expiry_interval * 1000
        # Every start looks for expired messages, whatever EXPRYINT says; it goes on when calls are answered already.
        awake = self.turn([(session, 1, Awake()), (session, 0, self._look_through()), (session, 0, Disconnect())])
        self._scan.began(self.started_ms)
        for answer in awake:
            if isinstance(answer.reply, Listing):
                self._notes.tended = {str(row["name"]) for row in answer.reply.rows}


def _both(one: Moved, other: Moved) -> Moved:
    """What moved by either."""
    if one is NOTHING_MOVED or other is NOTHING_MOVED:
        return other if one is NOTHING_MOVED else one
    queues, definitions = {*one.queues, *other.queues}, {*one.definitions, *other.definitions}
    return Moved(tuple(sorted(queues)), tuple(sorted(definitions)))
