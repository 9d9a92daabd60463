"""Reservations and units of work of others, the ledger of runs, RUNAS and secrets, claims in the monitor's files."""

from __future__ import annotations

import json
import subprocess
from contextlib import suppress

from tests.attacks.stage import INITQ
from tests.attacks.table import MEMBER, MONITOR, TCP, add
from tests.waiting import until
from trigmon.keeper import run_directory
from trigmon.mq import calls
from trigmon.mq.descriptors import TriggerMessage
from trigmon.mq.enums import ApplType
from trigmon.mq.errors import MQError
from trigmon.rules.runs.new_run_record import recorded

COMERS = (MEMBER, TCP, MONITOR)

# -- reservations ---------------------------------------------------------------------------------------------


def _reserve(stage):
    """A reservation of four messages that root's connection holds; its number."""
    stage.qm.put_many("VICTIM.Q", [b"one", b"two", b"three", b"four"])
    if not hasattr(stage, "victim"):
        stage.victim = stage.qm.open("VICTIM.Q", "input_shared")
    return stage.victim.reserve("victim").number


def _was_touched(stage, said, number):
    """Whether anything of it is gone, or the call was performed; it is settled then by the holder."""
    rows = [row for row in stage.qm.reservations("VICTIM.Q") if row["reservation"] == number]
    with suppress(MQError):
        stage.qm.settle(number)
    return said or not rows or rows[0]["left"] != 4


def _end_reserved(place, number, kind, fields):
    with place.connect() as qm:
        qm.call(kind(reservation=number, **fields))
    return True


_ENDS = {
    "settle": (calls.Settle, {}),
    "settle-one": (calls.Settle, {"ordinal": 2, "count": 1}),
    "release": (calls.Release, {}),
    "release-one": (calls.Release, {"ordinal": 1, "count": 1, "counts": False}),
    "attempt": (calls.Attempt, {"ordinal": 0, "count": 1}),
    "reject": (calls.Reject, {"ordinal": 0, "why": "not mine"}),
    "reject-last": (calls.Reject, {"ordinal": 3}),
}
for _who in COMERS:
    for _name, (_kind, _fields) in _ENDS.items():
        add(
            f"{_name}-of-another",
            _who,
            f"{_kind.__name__} of what a live connection of another user has reserved",
            "it is performed, or a message is gone",
            lambda place, number, k=_kind, f=_fields: _end_reserved(place, number, k, f),
            _was_touched,
            prepare=_reserve,
        )


def _reserve_as(place, number):
    with place.connect() as qm, qm.open("VICTIM.Q", "input_shared") as q:
        return q.reserve("victim", token="mine").number == number


for _who in COMERS:
    add(
        "reserve-of-another",
        _who,
        "reserve under the name of a consumer whose connection lives",
        "that one's reservation is handed out",
        _reserve_as,
        lambda stage, said, number: _was_touched(stage, said, number),
        prepare=_reserve,
    )

# -- units of work ----------------------------------------------------------------------------------------------


def _begin_unit(stage):
    stage.qm.put("SPARE.Q", b"of a unit of work", syncpoint=True)
    return stage.qm.unit, stage.qm.client_id


def _has_ended(stage, said, given):
    """Whether the unit of root's connection is over, or its message visible."""
    with stage.qm.open("SPARE.Q", "inquire") as q:
        uncommitted = q.inquire("UNCOM")["uncommitted_msgs"]
    stage.qm.backout()
    return said or not uncommitted


def _end_unit(place, given, kind):
    with place.connect() as qm, suppress(MQError):
        qm.call(kind(unit=given[0]))


def _same_client(place, given):
    from tests.daemons import Raw
    from trigmon.wire import codec

    class Where:
        @staticmethod
        def plain_socket():
            import socket

            link = socket.socket(socket.AF_UNIX)
            link.settimeout(20)
            link.connect(str(place.socket))
            return link

    tcp = ("127.0.0.1", place.port) if place.address.startswith("tcp") else None
    with Raw(Where, hello=False, tcp=tcp) as raw:
        raw.send(codec.encode_hello(codec.Hello(protocol=codec.PROTOCOL_VERSION, client_id=given[1])))
        return isinstance(codec.decode_welcome(raw.body()), codec.Welcome)


def _finds_client(place, given):
    """Whether any listing tells another's client id, by which it would ask for what became of that one's work."""
    asked = [calls.DisplayHandles(), calls.Status(), calls.Reservations(), calls.Runs(), calls.Pauses()]
    with place.connect() as qm:
        return given[1] in repr([qm.call(call) for call in [*asked, calls.DisplayGroup()]])


for _who in COMERS:
    for _kind in (calls.Commit, calls.Backout):
        add(
            f"{_kind.__name__.lower()}-of-another",
            _who,
            f"{_kind.__name__} of the number of another connection's unit of work",
            "that unit has ended",
            lambda place, given, k=_kind: _end_unit(place, given, k),
            _has_ended,
            prepare=_begin_unit,
        )
    add("client-of-another", _who, "a hello with a live client's id", "a welcome", _same_client, prepare=_begin_unit)
    add("finds-client", _who, "look for others' client ids", "one is told", _finds_client, prepare=_begin_unit)


def _take_unit(place, given):
    with place.connect() as qm, qm.open("SPARE.Q", "input_shared") as q:
        return [q.get(no_wait=True).data]


for _who in COMERS:
    add(
        "get-uncommitted",
        _who,
        "get what another has put and not committed",
        "it is got",
        lambda place, given: _nothing_or(place, given),
        _has_ended,
        prepare=_begin_unit,
    )


def _nothing_or(place, given):
    with suppress(MQError):
        return _take_unit(place, given)
    return None


# -- a run of another ---------------------------------------------------------------------------------------------


def _seem_run(place, _):
    with place.connect(run_id=place.runs["SLEEPER"]["run_id"]) as qm, qm.open("SLEEPER", "input_shared") as q:
        return q.get(no_wait=True).data


def _run_moved(stage, said, _):
    stage.qm.put("SLEEPER", b"go")  # in the place of what was got
    (row,) = stage.qm.call(calls.Runs(where={"run_id": stage.runs["SLEEPER"]["run_id"]})).rows
    return row["state"] != "started" or row["first_open_ms"] or row["taken"]


for _who in (MEMBER, TCP):
    add("seem-run", _who, "open and close a queue as the run of another", "that run moved", _seem_run, _run_moved)

# -- the ledger, as RUNAS -------------------------------------------------------------------------------------------


def _record(place, name, state, **more):
    """A run of the process LEDGER.P, which runs as another user, with a program of the attacker's."""
    said = {"q_name": "LEDGER", "process_name": "LEDGER.P", "appl_type": int(ApplType.UNIX)}
    trigger = TriggerMessage(appl_id=f"/usr/bin/touch {place.marks}/{name}", **said)
    run_id = f"{0xA000000000000000 + abs(hash(name)) % (1 << 60):016x}"
    fields = {"state": state, "monitor": place.monitors_name, "now_ms": 1, "initiation_q": INITQ, "occasion": "1"}
    return run_id, recorded(run_id, trigger, **fields, **more).json


def _write_run(place, name, state, **more):
    with place.connect() as qm:
        run_id, record = _record(place, name, state, **more)
        qm.call(calls.RecordRun(run_id=run_id, record=record))


def _write_runs(place, name):
    with place.connect() as qm:
        qm.call(calls.RecordRuns(records=[_record(place, name, "held")[1]]))


def _change_held(place, name):
    with place.connect() as qm:
        run_id, record = _record(place, name, "held")
        qm.call(calls.RecordRun(run_id=run_id, record=record | {"appl_id": "/bin/true"}))
        qm.call(calls.ChangeRun(run_id=run_id, fields={"appl_id": record["appl_id"]}))


_AS = {"process": {"run_as": "nobody"}}
_LEDGER = {
    "due": lambda p, n: _write_run(p, n, "due"),
    "held": lambda p, n: _write_run(p, n, "held"),
    "due-argv": lambda p, n: _write_run(p, n, "due", argv=["/usr/bin/touch", str(p.marks / n)]),
    "runs": _write_runs,
    "changed": _change_held,
    "process": lambda p, n: _write_run(p, n, "due", **_AS),
    "process-root": lambda p, n: _write_run(p, n, "due", process={"run_as": "root"}),
    "process-appl": lambda p, n: _write_run(
        p, n, "due", process={"run_as": "nobody", "appl_id": f"/usr/bin/touch {p.marks}/{n}"}
    ),
    "env": lambda p, n: _write_run(p, n, "held", env_data=f"{p.marks}/{n}"),
}


def _as_another(stage, name):
    """Whether the attacker's program ran as the user of RUNAS, or as any but the monitor's."""
    mark = stage.home / "marks" / name
    return mark.exists() and mark.stat().st_uid != stage.monitors.uid


for _name, _way in _LEDGER.items():
    add(
        f"ledger-{_name}",
        MONITOR,
        f"write a run of a RUNAS process with a program of one's own ({_name}), and end the monitor",
        "the program runs as the user of RUNAS",
        lambda place, _, w=_way, n=f"ledger.{_name}": w(place, n),
        lambda stage, said, _, n=f"ledger.{_name}": _as_another(stage, n),
        restarts=True,
    )

# -- claims -----------------------------------------------------------------------------------------------------


def _victim(stage):
    """A process of another user, which leads its session as services do."""
    more = {"start_new_session": True, "cwd": "/", **stage.other.popen()}
    stage.victims = [*getattr(stage, "victims", []), subprocess.Popen(["/bin/sleep", "600"], **more)]
    return stage.victims[-1].pid


def _claim(place, pid, name):
    """A claim in the run directory of a run of one's own that names another user's process."""
    run_id, record = _record(place, name, "started", pid=pid)
    record |= {"process_name": "LIMITED.P", "q_name": "LIMITED", "process": {"time_limit_s": 1}}
    record |= {"kept_by": "gone", "start_ms": 1}
    directory = place.home / "m" / "runs" / run_id
    directory.mkdir(mode=0o700)
    claim = {
        "keeper": "gone",
        "boot": run_directory.boot_id(),
        "pid": pid,
        "ticks": run_directory.start_ticks(pid),
        "start_ms": 1,
    }
    (directory / "claim").write_text(json.dumps(claim) + "\n")
    with place.connect() as qm:
        qm.call(calls.RecordRun(run_id=run_id, record=record))
    return run_id


def _was_killed(stage, said, pid):
    """Whether the process was ended, once the monitor has tried to."""
    (victim,) = [one for one in stage.victims if one.pid == pid]
    if said is None:  # the ledger refused the run, so no monitor looks for its claim
        was_killed = victim.poll() is not None
        victim.kill()
        victim.wait()
        return was_killed
    until(lambda: victim.poll() is not None or f'"pid": {pid}' in stage.monitor_said())
    killed = victim.poll() is not None
    if not killed:
        until(lambda: victim.poll() is not None or "not signalled" in stage.monitor_said())
        killed = victim.poll() is not None
        victim.kill()
    victim.wait()
    return killed


add(
    "claim-of-anothers-process",
    MONITOR,
    "write a claim that names another user's process as one's run, with a time limit, and end the monitor",
    "the monitor ends that process",
    lambda place, pid: _claim(place, pid, "claim.one"),
    _was_killed,
    prepare=_victim,
    restarts=True,
)

# -- RUNAS and SECRETS of definitions -----------------------------------------------------------------------------

_WISHES = {
    "root": {"run_as": "root"},
    "ROOT": {"run_as": "ROOT"},
    "number-0": {"run_as": "0"},
    "number": {"run_as": "65534"},
    "unlisted": {"run_as": "daemon"},
    "nobody-there": {"run_as": "no.such.user"},
    "two": {"run_as": "nobody,daemon"},
    "secret-above": {"secrets": "../users"},
    "secret-path": {"secrets": "/etc/passwd"},
    "secret-below": {"secrets": "a/b"},
    "secret-hidden": {"secrets": ".db"},
    "secret-missing": {"secrets": "db,other"},
}


def _wish(stage, name, wish):
    """Defines what may be defined: whether there is anything to trigger."""
    script = f"/usr/bin/touch {stage.home}/marks/wish.{name}"
    try:
        stage.process(f"WISH.{name.upper()}", f"{script} {{run}}", **wish)
    except MQError:
        return False
    return True


def _trigger_wish(place, is_there, name):
    if is_there:
        with place.connect() as qm:
            qm.put(f"WISH.{name.upper()}", b"go")


for _name, _fields in _WISHES.items():
    add(
        f"wish-{_name}",
        MEMBER,
        f"trigger a process whose definition asks for {_fields}",
        "a program runs",
        lambda place, given, n=_name: _trigger_wish(place, given, n),
        lambda stage, said, _, n=_name: (stage.home / "marks" / f"wish.{n}").exists(),
        prepare=lambda stage, n=_name, f=_fields: _wish(stage, n, f),
        late=True,
    )
