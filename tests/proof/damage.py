"""Proof: damaged stores. Whatever is changed in the files of a queue manager, nothing is wrong or gone without a word.

A store is made whole, in several states; a copy of it is damaged; and what a start and every get and browse after it
give is compared with what was acknowledged.
"""

from __future__ import annotations

import contextlib
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import apsw

from tests.worlds import Collected
from trigmon.mq.calls import Call, Define, Display, Get, Open, Put, Reserve
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import GetOption, OpenOption
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Refused, Reply
from trigmon.qmgr.clock import VirtualClock
from trigmon.qmgr.manager import QueueManager
from trigmon.qmgr.sessions import Identity, Session
from trigmon.store.port import AnothersStore, StoreBroken, StoreLost, UnsupportedVersion
from trigmon.store.sqlite.connection import PAGE_SIZE
from trigmon.store.sqlite.store import SqliteStore

QUEUES = [f"Q{number}" for number in range(4)]
RESERVED = "R"
MESSAGES = 60
DATABASE, LOG, LAST = "qm.db", "qm.db-wal", "last_turn"
ANSWERS = (Reason.OBJECT_DAMAGED, Reason.GET_INHIBITED)
"""What a get of a queue that is closed because of damage is answered."""

Messages = dict[str, list[tuple[object, ...]]]


class Made(NamedTuple):
    """A store to be damaged: its directory, and what was acknowledged, by queue in get order."""

    directory: Path
    messages: Messages


class Outcome(NamedTuple):
    """``kind``: right, told, refused, or silent, which is a violation; ``why`` is what was said."""

    kind: str
    why: str


class Talker:
    """A queue manager and one administrator who calls it."""

    def __init__(self, directory: Path, clock: VirtualClock) -> None:
        self.said: list[str] = []
        self.telling = Collected()
        self.store = SqliteStore(directory, tell=self.said.append)
        try:
            self.manager = QueueManager("QM1", self.store, clock, self.telling)
        except BaseException:
            self.store.abandon()
            raise
        self.session: Session = self.manager.connect(Identity(client_id="c", administrator=True))
        self._sequence = 0

    def do(self, call: Call) -> Reply:
        self._sequence += 1
        answers = self.manager.turn([(self.session, self._sequence, call)])
        while self.manager.housekeeping.is_scanning:
            self.manager.housekeeping.scan()
        (reply,) = (answer.reply for answer in answers if answer.sequence == self._sequence)
        return reply

    def did(self, call: Call) -> Reply:
        reply = self.do(call)
        assert not isinstance(reply, Refused), reply
        return reply


def make(directory: Path, *, is_stopped: bool, seed: int = 0) -> Made:
    """A store with messages, groups, a unit in flight and a reservation, killed with its log there, or stopped."""
    chance = random.Random(seed)
    clock = VirtualClock()
    home = directory / "made"
    home.mkdir()
    talker = Talker(home, clock)
    for name in (*QUEUES, RESERVED):
        attributes = {"def_persistence": "persistent", "max_q_depth": 5000}
        talker.did(Define(object_type="QLOCAL", name=name, attributes=attributes))
    for number in range(MESSAGES):
        name = chance.choice(QUEUES)
        said = MessageDescriptor(priority=chance.randrange(10), correl_id=chance.randbytes(24))
        if chance.random() < 0.2:
            said = MessageDescriptor(group_id=bytes([number % 3 + 1]) * 24, msg_seq_number=number + 1, msg_flags=8)
        data = f"{number}".encode() * chance.choice((1, 10, 800))
        talker.did(Put(q_name=name, descriptor=said, data=data))
        if number == MESSAGES // 2:
            talker.manager.housekeeping.idle()
    for number in range(4):
        talker.did(Put(q_name=RESERVED, data=b"reserved %d" % number))
    talker.did(Reserve(handle=talker.did(Open(object_name=RESERVED, options=IN)).handle, consumer="JOB"))
    talker.did(Put(q_name=QUEUES[0], data=b"in flight", options=SYNC, unit=1))
    got = talker.did(Get(handle=talker.did(Open(object_name=QUEUES[1], options=IN)).handle, options=SYNC, unit=1))
    assert got.data
    if is_stopped:
        talker.manager.stop()
    kept = directory / "kept"
    shutil.copytree(home, kept)
    if not is_stopped:
        talker.manager.stop()
    whole, kind = looked_at(copy_of(kept, directory / "whole"))
    assert kind is None, kind
    assert sum(map(len, whole.values())) == MESSAGES, whole
    return Made(kept, whole)


IN = int(OpenOption.INPUT_SHARED)
SYNC = int(GetOption.SYNCPOINT)


def copy_of(kept: Path, to: Path) -> Path:
    """A directory with the same files."""
    shutil.rmtree(to, ignore_errors=True)
    return Path(shutil.copytree(kept, to))


def looked_at(directory: Path) -> tuple[Messages, str | None]:
    """All that a queue manager on this directory gives, browsed and then got; and what it said of damage, if it did.

    Raises what refuses the start.
    """
    talker = Talker(directory, VirtualClock())
    try:
        given: Messages = {}
        browsed: Messages = {}
        closed: list[str] = []
        for name in QUEUES:
            browsed[name] = _all_of(talker, name, int(OpenOption.BROWSE), closed)
            given[name] = _all_of(talker, name, IN, closed)
        said = [*talker.said, *closed, *(f"set aside: {each}" for each in talker.telling.damaged)]
        bugs = [repr(bug) for bug in talker.telling.bugs]
        assert not bugs, f"bugs: {bugs}"
        if not said:
            assert browsed == given, "browsing gave something else than getting"
            for name in (*QUEUES, RESERVED):
                rows = talker.did(Display(object_type="QLOCAL", name=name)).rows
                depths = [row["current_q_depth"] for row in rows]
                assert depths == [4 if name == RESERVED else 0], f"{name} has the depth {depths}"
    finally:
        talker.store.abandon()
    return given, "; ".join(said) or None


def _all_of(talker: Talker, name: str, option: int, closed: list[str]) -> list[tuple[object, ...]]:
    opened = talker.do(Open(object_name=name, options=option))
    given: list[tuple[object, ...]] = []
    if isinstance(opened, Refused):
        closed.append(f"{name}: {opened}")
        return given
    options = int(GetOption.BROWSE_NEXT) if option != IN else 0
    while True:
        reply = talker.do(Get(handle=opened.handle, options=options))
        if isinstance(reply, Refused):
            if reply.reason in ANSWERS:
                closed.append(f"{name}: {reply}")
            else:
                assert reply.reason == Reason.NO_MSG_AVAILABLE, f"{name}: {reply}"
            return given
        said = reply.descriptor
        place = said.group_id, said.msg_seq_number, said.msg_flags
        given.append(
            (reply.data, said.msg_id, said.correl_id, said.priority, said.persistence, said.backout_count, place)
        )


def judged(made: Made, directory: Path, *, is_killed: bool) -> Outcome:
    """What becomes of a damaged copy: it is started, at most three times, as a service manager would."""
    told: list[str] = []
    for _ in range(3):
        try:
            given, said = looked_at(directory)
        except (StoreLost, AnothersStore, UnsupportedVersion) as error:
            return Outcome("refused", str(error))
        except StoreBroken as error:
            told.append(f"ended: {error}")
        except Exception as error:  # a false answer, or a bug
            return Outcome("silent", f"{error!r}")
        else:
            return _compared(made, given, [*told, said] if said else told, is_killed=is_killed)
    return Outcome("silent", f"it does not come up: {told}")


def _without_backouts(messages: Messages) -> Messages:
    return {name: [(*row[:5], *row[6:]) for row in rows] for name, rows in messages.items()}


def _compared(made: Made, given: Messages, told: list[str], *, is_killed: bool) -> Outcome:
    if not told and given != made.messages and is_killed:
        # What a get under syncpoint marks is not synced: without it the backout count is as before, as in a power cut.
        given, there = _without_backouts(given), _without_backouts(made.messages)
        made = made._replace(messages=there)
    wrong = [name for name in QUEUES if not set(given[name]) <= set(made.messages[name])]
    if wrong:
        return Outcome("silent", f"{wrong} gave what was never there; said: {told}")
    if told or given == made.messages:
        return Outcome("told" if told else "right", "; ".join(told))
    missing = sum(len(made.messages[name]) - len(given[name]) for name in QUEUES)
    return Outcome("silent", f"{missing} missing or out of order, and nothing said")


# -- damage -----------------------------------------------------------------------------------------------------------

Damage = Callable[[Path, random.Random], str]


def flip(path: Path, at: int, bit: int) -> None:
    """Changes a bit."""
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1 << bit]))


def a_bit_of_the_database(directory: Path, chance: random.Random) -> str:
    path = directory / DATABASE
    return _flipped(path, chance.randrange(path.stat().st_size), chance.randrange(8))


def a_bit_at_a_rows_begin(directory: Path, chance: random.Random) -> str:
    """In the head of a page, where the cells are said, or in the first bytes of a cell."""
    path = directory / DATABASE
    data = path.read_bytes()
    page = chance.randrange(len(data) // PAGE_SIZE)
    start = page * PAGE_SIZE + (100 if page == 0 else 0)
    cells = int.from_bytes(data[start + 3 : start + 5], "big")
    at = start + chance.randrange(12)
    if data[start] in (2, 5, 10, 13) and cells and chance.random() < 0.8:
        where = start + (12 if data[start] in (2, 5) else 8) + 2 * chance.randrange(min(cells, 500))
        cell = int.from_bytes(data[where : where + 2], "big")
        at = page * PAGE_SIZE + min(PAGE_SIZE - 1, cell + chance.randrange(40))
    return _flipped(path, at, chance.randrange(8))


def _flipped(path: Path, at: int, bit: int) -> str:
    """Changes a bit of the database; returns where that is."""
    flip(path, at, bit)
    return f"{DATABASE} page {at // PAGE_SIZE + 1} byte {at % PAGE_SIZE} bit {bit}"


def a_page_is_gone(directory: Path, chance: random.Random) -> str:
    path = directory / DATABASE
    page = chance.randrange(1, path.stat().st_size // PAGE_SIZE)
    with path.open("r+b") as file:
        file.seek(page * PAGE_SIZE)
        file.write(chance.choice((bytes(PAGE_SIZE), chance.randbytes(PAGE_SIZE))))
    return f"{DATABASE} page {page + 1} overwritten"


def the_database_is_cut(directory: Path, chance: random.Random) -> str:
    path = directory / DATABASE
    size = chance.choice(
        (0, chance.randrange(path.stat().st_size), PAGE_SIZE * chance.randrange(path.stat().st_size // PAGE_SIZE))
    )
    with path.open("r+b") as file:
        file.truncate(size)
    return f"{DATABASE} cut to {size}"


def a_column(directory: Path, chance: random.Random) -> str:
    """A value of a row, as if a bit of it had changed; its indexes say the same, as if they had been made anew."""
    db = apsw.Connection(str(directory / DATABASE))
    try:
        while True:
            with contextlib.suppress(apsw.ConstraintError):
                return _change_some(db, chance)
    finally:
        db.close()


def _change_some(db: apsw.Connection, chance: random.Random) -> str:
    tables = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    table = chance.choice([*(name for name in tables if db.execute(f"SELECT 1 FROM {name}").fetchall()), "message"])
    columns = list(db.execute(f"PRAGMA table_info({table})"))
    keys = [name for _, name, _, _, _, key in columns if key]
    column = chance.choice([name for _, name, *_ in columns])
    *key, value = chance.choice(list(db.execute(f"SELECT {', '.join(keys)}, {column} FROM {table}")))
    new = _other(value, chance)
    db.execute(f"UPDATE {table} SET {column} = ? WHERE {' AND '.join(f'{name} IS ?' for name in keys)}", (new, *key))
    return f"{table}.{column} of {key}: {value!r:.40} to {new!r:.40}"


def _other(value: object, chance: random.Random) -> object:
    if value is None:
        return 0
    if isinstance(value, int):
        return value ^ 1 << chance.randrange(8)
    data = bytearray(value.encode() if isinstance(value, str) else value)  # type: ignore[arg-type]
    if not data:
        return b"\1"
    at = chance.randrange(len(data))
    data[at] ^= 1 << chance.randrange(6)
    return data.decode(errors="replace") if isinstance(value, str) else bytes(data)


def the_log_is_cut(directory: Path, chance: random.Random) -> str:
    path = directory / LOG
    frames = (path.stat().st_size - 32) // 4120
    frame = chance.randrange(frames)
    size = 32 + 4120 * frame + chance.choice((0, 0, chance.randrange(4120)))
    with path.open("r+b") as file:
        file.truncate(size)
    return f"{LOG} cut to {size}, in frame {frame}"


def a_bit_of_the_log(directory: Path, chance: random.Random) -> str:
    path = directory / LOG
    at, bit = chance.randrange(path.stat().st_size), chance.randrange(8)
    flip(path, at, bit)
    return f"{LOG} byte {at} bit {bit}, in frame {(at - 32) // 4120}"


def files_are_gone(directory: Path, chance: random.Random) -> str:
    names = [name for name in (DATABASE, LOG, LAST, "lock") if chance.random() < 0.5] or [DATABASE]
    for name in names:
        (directory / name).unlink(missing_ok=True)
    return f"gone: {', '.join(names)}"


def a_bit_of_the_last_turn(directory: Path, chance: random.Random) -> str:
    path = directory / LAST
    at, bit = chance.randrange(path.stat().st_size), chance.randrange(8)
    flip(path, at, bit)
    return f"{LAST} byte {at} bit {bit}"


STOPPED: dict[str, Damage] = {
    "bit of the database": a_bit_of_the_database,
    "bit of a row's head": a_bit_at_a_rows_begin,
    "page": a_page_is_gone,
    "cut database": the_database_is_cut,
    "column": a_column,
    "bit of last_turn": a_bit_of_the_last_turn,
}
KILLED: dict[str, Damage] = {
    "cut log": the_log_is_cut,
    "bit of the log": a_bit_of_the_log,
    "files gone": files_are_gone,
}


def damage(directory: Path, seeds: range) -> tuple[Counter[tuple[str, str]], list[str]]:
    """Damages a store for each seed; how often each outcome came of each kind of damage, and the violations."""
    stores = {
        is_stopped: make(_fresh(directory / str(is_stopped)), is_stopped=is_stopped) for is_stopped in (True, False)
    }
    table: Counter[tuple[str, str]] = Counter()
    violations: list[str] = []
    kinds = [(True, *item) for item in STOPPED.items()] + [(False, *item) for item in KILLED.items()]
    for seed in seeds:
        chance = random.Random(seed)
        is_stopped, name, do = kinds[seed % len(kinds)]
        made = stores[is_stopped]
        hurt = copy_of(made.directory, directory / "hurt")
        what = do(hurt, chance)
        outcome = judged(made, hurt, is_killed=not is_stopped)
        table[name, outcome.kind] += 1
        if outcome.kind == "silent":
            violations.append(f"seed {seed}: {what}: {outcome.why}")
    return table, violations


def _fresh(directory: Path) -> Path:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    return directory
