"""Trigger messages of one's own, and what a queue's trigger data can do to a program."""

from __future__ import annotations

import sys
from contextlib import suppress

from tests.attacks.stage import DLQ, INITQ
from tests.attacks.table import MEMBER, MONITOR, TCP, add
from tests.daemons import define
from trigmon.mq import calls
from trigmon.mq.descriptors import (
    FORMAT_DEAD_LETTER,
    FORMAT_TRIGGER,
    DeadLetterHeader,
    MessageDescriptor,
    TriggerMessage,
    pack_dlh,
    pack_tm,
)
from trigmon.mq.enums import ApplType, MsgFlag, MsgType, ReportOption
from trigmon.mq.errors import MQError

COMERS = (MEMBER, TCP, MONITOR)
_QMGR = {"put_appl_type": int(ApplType.QMGR), "put_appl_name": "QM1", "user_identifier": "root"}


def _trigger(place, name, **fields):
    """A trigger message whose program would leave the mark ``name``."""
    own = {"appl_id": f"/usr/bin/touch {place.marks}/{name}", "appl_type": int(ApplType.UNIX), "trigger_data": name}
    return pack_tm(TriggerMessage(**({"q_name": "HELLO", "process_name": "HELLO.P"} | own | fields)))


def _descriptor(**fields):
    return MessageDescriptor(**({"format": FORMAT_TRIGGER} | fields))


def _put1(place, data, q_name=INITQ, options=0, **fields):
    with place.connect(application="QM1") as qm:
        qm.call(calls.Put(q_name=q_name, descriptor=_descriptor(**fields), data=data, options=options))


def _grouped(place, data, flags, **fields):
    with place.connect() as qm:
        qm.call(calls.Put(q_name=INITQ, descriptor=_descriptor(msg_flags=int(flags), **fields), data=data))


def _segments(place, data):
    group = b"G" * 24
    half = len(data) // 2
    first, last = MsgFlag.SEGMENT, MsgFlag.SEGMENT | MsgFlag.LAST_SEGMENT
    _grouped(place, data[:half], first, group_id=group)
    _grouped(place, data[half:], last, group_id=group, offset=half)


def _many(place, data):
    with place.connect() as qm:
        qm.call(calls.PutMany(q_name=INITQ, descriptor=_descriptor(**_QMGR), bodies=[data, data]))


def _report(place, data, options):
    """A report that carries the message: the queue manager puts it onto the initiation queue."""
    with place.connect() as qm:
        fields = {"reply_to_q": INITQ, "report": int(options)}
        qm.call(calls.Put(q_name="SPARE.Q", descriptor=_descriptor(**fields), data=data))
        if options & ReportOption.COD:
            with qm.open("SPARE.Q", "input_shared") as q:
                q.get()


def _discarded(place, data):
    with place.connect() as qm:
        options = ReportOption.EXCEPTION_WITH_FULL_DATA | ReportOption.DISCARD_MSG
        fields = {"reply_to_q": INITQ, "report": int(options)}
        qm.call(calls.Put(q_name="FULL.Q", descriptor=_descriptor(**fields), data=data))


def _passed(place, data, source):
    """The whole context of a message that was got is passed on: of a report, or of what the queue manager wrote."""
    with place.connect() as qm:
        if source == "report":
            fields = {"reply_to_q": "SPARE.Q", "report": int(ReportOption.COA)}
            qm.call(calls.Put(q_name="PUBLIC.Q", descriptor=MessageDescriptor(**fields), data=b"x"))
        else:
            qm.put("BAIT", b"bait")
        with qm.open("SPARE.Q" if source == "report" else "BAIT.INITQ", "input_shared", "save_all_context") as q:
            q.get(wait_interval_ms=5000)
            with qm.open(INITQ, "output", "pass_all_context") as out:
                out.put(data, pass_all_context=True, context=q, format=FORMAT_TRIGGER)


def _dynamic(place, data):
    """A queue made from the model under the initiation queue's name."""
    with place.connect() as qm, qm.open("SYSTEM.DEFAULT.MODEL.QUEUE", "output", dynamic_q_name=INITQ) as q:
        q.put(data, format=FORMAT_TRIGGER)


def _dead(place, data, **fields):
    """A dead letter that an administrator's retry sends onto the initiation queue."""
    header = {"reason": 2053, "dest_q_name": INITQ, "dest_q_mgr_name": "QM1", "format": FORMAT_TRIGGER} | fields
    with place.connect(application="QM1") as qm:
        descriptor = MessageDescriptor(format=FORMAT_DEAD_LETTER, **_QMGR)
        qm.call(calls.Put(q_name=DLQ, descriptor=descriptor, data=pack_dlh(DeadLetterHeader(**header)) + data))


WAYS = {
    "put1": lambda p, d: _put1(p, d),
    "claimed-qmgr": lambda p, d: _put1(p, d, **_QMGR),
    "no-context": lambda p, d: _put1(p, d, options=0x4000, **_QMGR),
    "set-all-context": lambda p, d: _put1(p, d, options=0x800, **_QMGR),
    "set-identity": lambda p, d: _put1(p, d, options=0x400, **_QMGR),
    "alias": lambda p, d: _put1(p, d, "TO.INITQ", **_QMGR),
    "remote": lambda p, d: _put1(p, d, "TO.REMOTE", **_QMGR),
    "report-type": lambda p, d: _put1(p, d, msg_type=int(MsgType.REPORT), **_QMGR),
    "request": lambda p, d: _put1(p, d, msg_type=int(MsgType.REQUEST), reply_to_q=INITQ, **_QMGR),
    "group": lambda p, d: _grouped(p, d, MsgFlag.LAST_MSG_IN_GROUP, group_id=b"H" * 24, **_QMGR),
    "segments": _segments,
    "put-many": _many,
    "coa": lambda p, d: _report(p, d, ReportOption.COA_WITH_FULL_DATA),
    "coa-part": lambda p, d: _report(p, d, ReportOption.COA_WITH_DATA),
    "cod": lambda p, d: _report(p, d, ReportOption.COD_WITH_FULL_DATA),
    "exception": _discarded,
    "pass-report": lambda p, d: _passed(p, d, "report"),
    "pass-trigger": lambda p, d: _passed(p, d, "trigger"),
    "dynamic": _dynamic,
    "dead-letter": lambda p, d: _dead(p, d),
    "dead-letter-qmgr": lambda p, d: _dead(p, d, put_appl_type=int(ApplType.QMGR), put_appl_name="QM1"),
}


def prepare(stage):
    """Makes the queues that some of the ways need, and the wrappers; which of those were refused."""
    define(stage.qm, "FULL.Q", max_q_depth=0)
    define(stage.qm, "BAIT.INITQ")
    stage.process("BAIT", "/bin/true")
    change = {"initiation_q_name": "BAIT.INITQ"}
    stage.qm.call(calls.Alter(object_type="QLOCAL", name="BAIT", attributes=change))
    stage.bait = stage.qm.open("BAIT.INITQ", "input_shared")  # condition 8: somebody reads there
    stage.wrapped = set()
    for number, (form, _) in enumerate(WRAPPERS):
        with suppress(MQError):
            stage.process(f"WRAP{number}", form)
            stage.wrapped.add(f"WRAP{number}")


for _who in COMERS:
    for _name, _way in WAYS.items():
        _mark = f"{_who}.{_name}"
        add(
            f"forge-{_name}",
            _who,
            f"a trigger message of one's own: {_name}",
            "the program that it names runs",
            lambda place, _, w=_way, m=_mark: w(place, _trigger(place, m)),
            lambda stage, said, _, m=_mark: stage.mark(m),
            late=True,
        )

# What a writer may not choose: the process's queue, and by that what it is told.
_MISNAMED = {
    "queue-of-another": {"q_name": "PUBLIC.Q"},
    "no-such-queue": {"q_name": "NOT.THERE"},
    "path-as-queue": {"q_name": "../../../etc/passwd"},
    "lower-case": {"q_name": "lower"},
    "dots": {"q_name": ".."},
    "blank-queue": {"q_name": ""},
    "option-as-queue": {"q_name": "-x"},
    "alias-as-queue": {"q_name": "TO.PUBLIC"},
}
for _who in COMERS:
    for _name, _fields in _MISNAMED.items():
        _mark = f"{_who}.{_name}"
        add(
            f"misname-{_name}",
            _who,
            f"a trigger message for another's process and {_fields['q_name'] or 'no queue'}",
            "the process runs, with the attacker's data",
            lambda place, _, f=_fields, m=_mark: _put1(place, _trigger(place, m, process_name="OTHER.P", **f)),
            lambda stage, said, _, m=_mark: stage.mark(f"OTHER.{m}"),
            late=True,
        )
    for _name, _process in (("no-process", ""), ("undefined", "NOT.DEFINED"), ("queue-name", "HELLO")):
        _mark = f"{_who}.{_name}"
        add(
            f"misname-{_name}",
            _who,
            f"a trigger message for {_process or 'no process'}, with a program of one's own",
            "the program runs",
            lambda place, _, p=_process, m=_mark: _put1(place, _trigger(place, m, process_name=p), **_QMGR),
            lambda stage, said, _, m=_mark: stage.mark(m),
            late=True,
        )


# -- trigger data ---------------------------------------------------------------------------------------------

DATA = {
    "semicolon": "; touch {mark}",
    "dollar": "$(touch {mark})",
    "backtick": "`touch {mark}`",
    "quote": "' ; touch {mark} '",
    "double": '" ; touch {mark} "',
    "pipe": "| touch {mark}",
    "and": "&& touch {mark} &",
    "newline": "x\ntouch {mark}",
    "nul": "x\0touch {mark}",
    "escape": "x\x1b]0;taken\x07",
    "option": "-rf {mark}",
    "long-option": "--conf=spark.x={mark}",
    "placeholder": "{{tmc}}{{queue}}{{run}}",
    "format": "%s%n {mark}",
    "ifs": "x${{IFS}}touch${{IFS}}{mark}",
    "redirect": "> {mark}",
}


def _harmed(stage, mark, text):
    """Whether the text was run, split, filled again, or became an option."""
    seen = (stage.home / "notes" / "seen").read_text().split("|")
    parts = {part for part in text.split() if mark in part or part.startswith("-")} if " " in text else set()
    is_option = text.startswith("-") and text in seen
    return stage.mark(mark) or parts & set(seen) or is_option or any(word.startswith("TMC") for word in seen)


for _who in (MEMBER, TCP):
    for _name, _text in DATA.items():

        def _attempt(place, _, n=_name, t=_text, w=_who):
            data = t.format(mark=f"{place.marks}/{w}.{n}")
            _put1(place, _trigger(place, f"{w}.{n}", trigger_data=data))

        def _succeeded(stage, said, _, n=_name, t=_text, w=_who):
            return _harmed(stage, f"{w}.{n}", t.format(mark=f"{stage.home}/marks/{w}.{n}"))

        tries = f"trigger data with {_name}, for a program that takes it as a word"
        add(f"data-{_name}", _who, tries, "it is anything but that one word", _attempt, _succeeded, late=True)

_SHELL = "x; touch {mark}"
_SCRIPT = "{prog}"
WRAPPERS = [
    ("timeout 5 sh -c 'echo {trigdata}'", _SHELL),
    ("nice sh -c '{trigdata}'", _SHELL),
    ('setsid -w bash -c "{trigdata}"', _SHELL),
    ("env -S {trigdata}", "touch {mark}"),
    ("env sh -c {trigdata}", _SHELL),
    ("xargs sh -c {trigdata}", _SHELL),
    ("nohup sh -c {trigdata}", _SHELL),
    ("stdbuf -oL sh -c {trigdata}", _SHELL),
    ("ionice -c 3 sh -c {trigdata}", _SHELL),
    ("chrt -o 0 sh -c {trigdata}", _SHELL),
    ("taskset 1 sh -c {trigdata}", _SHELL),
    ("flock /tmp -c {trigdata}", "touch {mark}"),
    ("timeout 5 nice env sh -c {trigdata}", _SHELL),
    ("/usr/bin/timeout 5 /bin/sh -ec {trigdata}", "touch {mark}"),
    ("env X=1 sh -c 'eval {trigdata}'", "touch {mark}"),
    (f"{sys.executable if sys.executable.startswith('/usr') else '/usr/bin/python3'} -c {{trigdata}}", "@python"),
    ("perl -e {trigdata}", "system('touch {mark}')"),
    ("perl -we {trigdata}", "system('touch {mark}')"),
    ("awk {trigdata}", 'BEGIN{{system("touch {mark}")}}'),
    ("find /bin/true -exec {trigdata} ;", _SCRIPT),
    ("find /bin/true -exec sh -c {trigdata} ;", _SHELL),
    ("nice {trigdata}", _SCRIPT),
    ("timeout 5 {trigdata}", _SCRIPT),
    ("setsid -w {trigdata}", _SCRIPT),
    ("env {trigdata} prog", "PATH={open}:/bin:/usr/bin"),
    ("sh -c 'echo {trigdata}'", _SHELL),
    ("{trigdata}", _SCRIPT),
    ("bash {trigdata}", _SCRIPT),
    ("setpriv --no-new-privs sh -c {trigdata}", _SHELL),
    ("script -c {trigdata} /dev/null", "touch {mark}"),
    ("timeout --sig KILL 5 {trigdata}", _SCRIPT),
    ("nice --adj 5 {trigdata}", _SCRIPT),
    ("env --split 'sh -c' {trigdata}", "touch {mark}"),
    ("bash -cO extglob {trigdata}", "touch {mark}"),
    ("bash -oc errexit {trigdata}", "touch {mark}"),
    ("prlimit --nofile=100 {trigdata}", _SCRIPT),
    ("choom -n 1 -- {trigdata}", _SCRIPT),
    ("setarch x86_64 {trigdata}", _SCRIPT),
    ("/usr/bin/python3 -m timeit -n1 -r1 {trigdata}", "@python"),
    ("split --filter={trigdata} /etc/passwd", "touch {mark}"),
    ("sort -S 1k --compress-prog={trigdata} /etc/services /etc/services", _SCRIPT),
]


def _payload(place, text, mark):
    """The trigger data that would leave the mark, and a program of the attacker's that would."""
    directory = place.open / mark.partition(".")[0]
    program = directory / "prog"
    with suppress(FileExistsError):  # for the next forms it is there
        directory.mkdir()
        program.write_text(f'#!/bin/sh\ntouch "{place.marks}/{directory.name}.$TRIGMON_QNAME"\n')
        program.chmod(0o755)
    if text == "@python":
        return f"open('{place.marks}/{mark}','w')"
    return text.format(mark=f"{place.marks}/{mark}", prog=program, open=directory)


def _attempt_wrapped(place, given, number, text, who):
    queue = f"WRAP{number}"
    if not given:
        return
    data = _payload(place, text, f"{who}.{queue}")
    assert len(data) <= 64, data
    with suppress(MQError):
        _put1(place, _trigger(place, "x", q_name=queue, process_name=f"{queue}.P", trigger_data=data))
    with place.connect() as qm:
        with suppress(MQError), qm.open(queue, "set") as q:
            qm.call(calls.Set(handle=q.handle, attributes={"trigger_data": data}))
        qm.put(queue, b"go")


for _who in (MEMBER, TCP):
    for _number, (_form, _text) in enumerate(WRAPPERS):
        _queue = f"WRAP{_number}"
        add(
            f"wrapper-{_number}",
            _who,
            f"trigger data for a definition with {_form}",
            "it is run as the monitor's user",
            lambda place, given, n=_number, t=_text, w=_who: _attempt_wrapped(place, given, n, t, w),
            lambda stage, said, _, q=_queue, w=_who: stage.mark(f"{w}.{q}"),
            prepare=lambda stage, q=_queue: q in stage.wrapped,
            late=True,
        )
