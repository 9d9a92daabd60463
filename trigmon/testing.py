"""A queue manager in memory on a virtual clock, for tests of your own: no daemon, no socket, no waiting.

The rules, the manager and the client are the real ones; only the store is memory and only the test moves the clock.
Nothing is started: a monitor listens on SYSTEM.DEFAULT.INITIATION.QUEUE and keeps what it would have started for
:meth:`InMemory.triggers`. The fixture is imported where it is wanted, in a ``conftest.py``::

    from trigmon.testing import mq  # noqa: F401 - a fixture

A worked example: an orders queue starts its program with the first order, once, and again when it left some behind::

    import trigmon


    def total(connect):
        "The program under test: it takes ten orders and adds up their prices."
        with connect() as qm, qm.open("ORDERS", "input_shared") as orders:
            prices = []
            try:
                while len(prices) < 10:
                    prices.append(int(orders.get(syncpoint=True).data))
            except trigmon.NoMsgAvailable:
                pass
            qm.commit()
        return sum(prices)


    def test_the_first_order_starts_the_program_once(mq):
        mq.mqsc('''
            DEFINE PROCESS(TOTAL) APPLICID('python total.py')
            DEFINE QLOCAL(ORDERS) TRIGGER TRIGTYPE(FIRST) PROCESS(TOTAL) +
                INITQ(SYSTEM.DEFAULT.INITIATION.QUEUE) DEFPSIST(YES)
            ALTER QMGR TRIGINT(60000)
        ''')
        for price in range(12):
            mq.put("ORDERS", str(price))
        assert [trigger.process_name for trigger in mq.triggers()] == ["TOTAL"]

        assert mq.explain("ORDERS").fails == ["3"]  # others wait, and TRIGINT has not passed
        mq.advance(60_000)
        assert mq.explain("ORDERS").fires

        assert total(mq.connect) == sum(range(10))
        assert [trigger.q_name for trigger in mq.triggers()] == ["ORDERS"]  # two are left behind
        assert total(mq.connect) == 10 + 11
        assert mq.triggers() == []

        mq.put("ORDERS", "5")
        mq.crash()
        assert [message.text for message in mq.messages("ORDERS")] == ["5"]
        assert len(mq.triggers()) == 2  # the put, and the monitor that came back

A program that calls :func:`trigmon.connect` itself is given this one by ``monkeypatch.setattr(trigmon, "connect",
mq.connect)``. Without pytest, ``with InMemory() as mq:`` is the same.

A Spark job reads its queue from other processes. For it there are the fixtures ``mq_for_jobs``, the same on a socket
that every process of the test finds, and ``spark``, a small local session::

    from trigmon.testing import mq_for_jobs, spark  # noqa: F401 - fixtures

What does not lead to a number is set aside, and the others are in the table::

    import json

    from trigmon.spark import drain


    def load(spark, table):
        "The job under test."
        return drain(spark, table=table, queue="ORDERS", options={"format": "json"}, schema="price bigint")


    def test_a_bad_order_is_set_aside(mq_for_jobs, spark, tmp_path):
        mq_for_jobs.mqsc('''
            DEFINE QLOCAL(ORDERS.BACKOUT)
            DEFINE QLOCAL(ORDERS) BOTHRESH(3) BOQNAME(ORDERS.BACKOUT)
        ''')
        for price in (3, "much", 4):
            mq_for_jobs.put("ORDERS", json.dumps({"price": price}))
        assert load(spark, tmp_path / "orders").rows == 2
        assert sorted(row.price for row in spark.read.parquet(str(tmp_path / "orders")).collect()) == [3, 4]
        (aside,) = mq_for_jobs.messages("ORDERS.BACKOUT")
        assert aside.body == b'{"price": "much"}'
        assert "is no JSON object of the schema" in aside.rejection.why
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any, Unpack

from trigmon.client.connection import Connection
from trigmon.client.message import Message, Receipt
from trigmon.client.option_names import Data, GetWords, Match, PutWords
from trigmon.definitions.apply_plan import plan
from trigmon.definitions.definition_files import read_files
from trigmon.definitions.object_models import long_name
from trigmon.mq.attributes import EVERY_TYPE
from trigmon.mq.calls import Alter, Call, Define, Display, Get, Open
from trigmon.mq.descriptors import TriggerMessage
from trigmon.mq.enums import ObjectType, OpenOption
from trigmon.mq.errors import MQError
from trigmon.mq.paging import all_rows
from trigmon.mq.replies import Explained, Opened, Reply
from trigmon.mqsc.script import run
from trigmon.qmgr.sessions import Session
from trigmon.simulate.in_process import InProcess
from trigmon.simulate.local_client import InProcessLink
from trigmon.simulate.socket_server import SocketServer
from trigmon.simulate.stage import Available

INITIATION_Q = "SYSTEM.DEFAULT.INITIATION.QUEUE"


class InMemory:
    """A queue manager of a test's own. ``monitor`` is the initiation queue that is listened to; blank: none is."""

    def __init__(self, name: str = "QM1", *, monitor: str = INITIATION_Q) -> None:
        self.name = name
        self._lock = RLock()  # of the stage: a client on the socket is served by a thread of its own
        self._server: SocketServer | None = None
        self._stage = InProcess((name,), "memory")
        self._links: list[InProcessLink] = []
        self._monitors: dict[str, tuple[Session, int]] = {}
        self._heard: list[Available] = []
        self._own: Connection | None = None
        if monitor:
            self.monitor(monitor)

    def __enter__(self) -> InMemory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends it; nothing of it is left."""
        self._cut_off()
        if self._server:
            self._server.close()
        with self._lock:
            self._stage.close()

    def serve(self) -> str:
        """Serves other processes on a Unix socket; returns its address, for ``trigmon.connect`` and TRIGMON_QMGR."""
        if self._server is None:
            self._server = SocketServer(lambda hello: self._link(hello.application))
        return self._server.address

    # -- connections and messages ---------------------------------------------------------------------------

    def connect(
        self,
        address: str | None = None,
        *,
        application: str | None = None,
        run_id: str | None = None,
        timeout_s: float = 10.0,
    ) -> Connection:
        """Returns a client's connection, as :func:`trigmon.connect` makes it; the address is not looked at."""
        link = self._link(application or "test")
        return Connection(link, link.client_id)

    def _link(self, application: str) -> InProcessLink:
        link = InProcessLink(self.name, self._stage, application, self._listen, self._lock)
        self._links.append(link)
        return link

    def put(self, q_name: str, data: Data, **options: Unpack[PutWords]) -> Receipt:
        """Puts one message, under the test's own connection; with ``syncpoint`` :meth:`commit` is to follow."""
        return self._connection().put(q_name, data, **options)

    def get(
        self,
        q_name: str,
        *,
        wait_interval_ms: int | None = None,
        match: Match | None = None,
        **options: Unpack[GetWords],
    ) -> Message:
        """Opens the queue, gets a message and closes it: a last reader's close, so what is left may trigger.

        Waiting moves the clock. Raises NoMsgAvailable.
        """
        with self._connection().open(q_name, "input_shared") as queue:
            return queue.get(wait_interval_ms=wait_interval_ms, match=match, **options)

    def messages(self, q_name: str) -> list[Message]:
        """Returns what lies on a queue, browsed in the order of getting: neither taken nor an occasion of anything."""
        with self._connection().open(q_name, "browse") as queue:
            return list(queue.browse())

    def commit(self) -> None:
        """Commits the test's own unit of work."""
        self._connection().commit()

    def backout(self) -> None:
        """Backs the test's own unit of work out."""
        self._connection().backout()

    # -- objects --------------------------------------------------------------------------------------------

    def define(self, name: str, kind: str = "QLOCAL", **attributes: Any) -> None:
        """Defines an object; attributes as in a definition file. Raises MQError."""
        self._command(Define(object_type=kind, name=name, attributes=_by_long_name(kind, attributes)))

    def alter(self, name: str, kind: str = "QLOCAL", **attributes: Any) -> None:
        """Alters the named attributes. Raises MQError."""
        self._command(Alter(object_type=kind, name=name, attributes=_by_long_name(kind, attributes)))

    def mqsc(self, text: str) -> str:
        """Runs MQSC and returns its replies. Raises ValueError with them when a command failed."""
        lines: list[str] = []
        if run(text.splitlines(), self._command, lines.append, self.name):
            raise ValueError("\n".join(lines))
        return "\n".join(lines)

    def apply(self, *paths: str | Path) -> None:
        """Makes the objects equal to definition files, as ``trigmon apply``. Raises DefinitionError, MQError."""
        existing = [row for kind in EVERY_TYPE for row in all_rows(self._command, Display(object_type=kind))]
        for step in plan(read_files(Path(path) for path in paths), existing):
            self._command(step.call)

    # -- triggering -----------------------------------------------------------------------------------------

    def triggers(self) -> list[TriggerMessage]:
        """Returns the trigger messages that became available since the last question: what would have been started."""
        with self._lock:
            self._listen()
            heard, self._heard = self._heard, []
        return [available.message for available in heard]

    def explain(self, q_name: str, priority: int = -1, *, why_not: bool = False) -> Explained:
        """Returns the verdict of a put now; with ``why_not`` that of the last one too. ``print`` shows it as text."""
        return self._connection().explain(q_name, priority, why_not=why_not)

    def monitor(self, initiation_q: str) -> None:
        """Adds a monitor, which reads this initiation queue from now on and after every restart."""
        with self._lock:
            session = self._stage.connect("monitor", administrator=True)
            opened = self._stage.ask(session, Open(object_name=initiation_q, options=OpenOption.INPUT_SHARED.value))
            assert isinstance(opened, Opened)
            self._monitors[initiation_q] = (session, opened.handle)
            self._listen()

    # -- time and ends --------------------------------------------------------------------------------------

    def advance(self, milliseconds: int) -> None:
        """Lets time pass; what is due meanwhile happens at its own instant."""
        with self._lock:
            self._stage.advance(milliseconds)
            self._listen()

    def restart(self) -> None:
        """Ends the queue manager in order and starts it again. Connections are lost, persistent messages stay."""
        with self._lock:
            self._cut_off()
            self._stage.restart(self.name)
            self._come_back()

    def crash(self) -> None:
        """Kills the queue manager and starts it again. Connections are lost, persistent messages stay."""
        with self._lock:
            self._cut_off()
            self._stage.crash(self.name)
            self._come_back()

    def _cut_off(self) -> None:
        """Cuts every connection; each learns of it at its next call, as from a closed socket."""
        for link in self._links:
            link.broken = link.broken or f"the connection to {self.name} has ended"
        self._links.clear()
        self._own = None

    def _come_back(self) -> None:
        for initiation_q in list(self._monitors):
            self.monitor(initiation_q)

    def _connection(self) -> Connection:
        if self._own is None or not self._own.alive:
            self._own = self.connect()
        return self._own

    def _command(self, call: Call) -> Reply:
        with self._lock:
            reply = self._stage.command(self.name, call)
            self._listen()
        return reply

    def _listen(self) -> None:
        """Notes what became available, and lets the monitors take theirs, as they would at once."""
        while news := self._stage.became_available():
            self._heard += news
            for initiation_q in {available.initiation_q for available in news} & self._monitors.keys():
                session, handle = self._monitors[initiation_q]
                try:
                    while True:
                        self._stage.ask(session, Get(handle=handle))
                except MQError:
                    continue  # it is empty, or closed for gets


def _by_long_name(kind: str, attributes: dict[str, Any]) -> dict[str, Any]:
    """Returns attributes by their long names; a definition file's other names are read too."""
    return {long_name(ObjectType[kind], name) or name: value for name, value in attributes.items()}


def _fixtures() -> dict[str, Any]:
    """Returns the fixtures by name."""
    import pytest

    @pytest.fixture
    def mq() -> Iterator[InMemory]:
        """Yields a queue manager in memory on a virtual clock, with a monitor on the default initiation queue."""
        with InMemory() as qmgr:
            yield qmgr

    @pytest.fixture
    def mq_for_jobs(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemory]:
        """Yields the same on a socket; it is the queue manager that is meant where nobody names one."""
        with InMemory() as qmgr:
            monkeypatch.setenv("TRIGMON_QMGR", qmgr.serve())
            yield qmgr

    @pytest.fixture(scope="session")
    def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
        """Yields a local Spark session for all tests, on the Java that a launcher would find."""
        from trigmon.launch.spark.cold.java import find_java
        from trigmon.spark.local_session import local_session

        directory = tmp_path_factory.mktemp("spark")
        with local_session(str(find_java(directory / "java").home), str(directory), {}) as session:
            yield session

    return {"mq": mq, "mq_for_jobs": mq_for_jobs, "spark": spark}


_FIXTURES = ("mq", "mq_for_jobs", "spark")


def __getattr__(name: str) -> Any:
    """Returns a fixture, made when it is imported: who uses :class:`InMemory` alone needs no pytest."""
    if name not in _FIXTURES:
        raise AttributeError(f"module 'trigmon.testing' has no attribute {name!r}")
    globals().update(_fixtures())
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *_FIXTURES})
