"""Calls: every one that needs a right, as the list of verbs has them; settings, contexts, identities."""

from __future__ import annotations

import enum
import os

import msgspec

from tests.attacks.stage import INITQ
from tests.attacks.table import MEMBER, MONITOR, TCP, add
from tests.daemons import Raw
from trigmon.mq import calls
from trigmon.mq.attributes import ATTRIBUTES
from trigmon.mq.calls import CopyState
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import ObjectType, OpenOption, PutOption, word
from trigmon.rules.call_rights import RIGHTS

ADMINISTRATORS_CALLS = (
    *("define", "alter", "delete", "clear", "refresh", "move", "dead_letters", "retry_dead_letters"),
    *("discard_dead_letters", "set_authority", "pause", "resume", "run_schedule", "cancel_run", "retry_run"),
    *("end_connection", "reset_queue_statistics", "begin_backup", "read_backup", "end_backup", "report_watches"),
    "report_copy",
)
MONITORS_CALLS = ("record_run", "record_runs", "start_runs", "change_run", "controls")
"""The calls that need more than every user has without authority records."""

COMERS = (MEMBER, TCP, MONITOR)

# What makes a call do something; of a call that is not here its fields' plain values are tried.
_FIELDS = {
    "define": {"object_type": "QLOCAL", "name": "ATTACK.MADE"},
    "alter": {"object_type": "QLOCAL", "name": "PUBLIC.Q", "attributes": {"description": "taken"}},
    "delete": {"object_type": "QLOCAL", "name": "SPARE.Q"},
    "clear": {"q_name": "PUBLIC.Q"},
    "move": {"q_name": "PUBLIC.Q", "to_q_name": "SPARE.Q"},
    "pause": {"what": "everything"},
    "resume": {"what": "everything"},
    "record_run": {"record": {"state": "held", "q_name": "HELLO", "process_name": "HELLO.P"}},
    "record_runs": {"records": [{"run_id": "00000000000000aa", "state": "held", "q_name": "HELLO"}]},
    "change_run": {"fields": {"state": "held", "why": "taken"}},
    "start_runs": {"initiation_q": INITQ},
    "report_copy": {"state": CopyState(name="ATTACK@QM9", q_name="ATTACK")},
}
_PLAIN = {str: "ATTACK", int: 1, dict: {}, list: [], bool: True}


def _call(kind, place):
    """A call of this kind that would do something."""
    tag = str(kind.__struct_config__.tag)
    given = dict(_FIELDS.get(tag, {}))
    names = {field.name for field in msgspec.structs.fields(kind)}
    if "run_id" in names:
        given["run_id"] = place.runs["HELLO" if tag == "retry_run" else "SLEEPER"]["run_id"]
    if tag == "record_run":
        given["run_id"] = "00000000000000ab"
    if "monitor" in names:
        given["monitor"] = place.monitors_name
    for field in msgspec.structs.fields(kind):
        if field.required and field.name not in given:
            given[field.name] = _PLAIN[getattr(field.type, "__origin__", field.type)]
    return kind(**given)


def _attempt_call(place, tag):
    kind = next(kind for kind in RIGHTS if kind.__struct_config__.tag == tag)
    with place.connect() as qm:
        qm.call(_call(kind, place))
    return True


for _kind in RIGHTS:
    _tag = str(_kind.__struct_config__.tag)
    for _who in COMERS:
        if _tag in ADMINISTRATORS_CALLS or (_tag in MONITORS_CALLS and _who != MONITOR):
            add(
                f"call-{_tag}",
                _who,
                f"the call {_kind.__name__}, which needs a right",
                "it is performed, or anything has changed",
                lambda place, _, t=_tag: _attempt_call(place, t),
                lambda stage, said, before: said or stage.state() != before,
                prepare=lambda stage: stage.state(),
            )


def _define(place, given):
    with place.connect() as qm:
        qm.call(calls.Define(object_type=given[0], name=given[1], attributes=given[2], replace=True))
    return True


for _who in COMERS:
    for _object, _name, _attributes in (
        ("PROCESS", "HELLO.P", {"appl_id": "/bin/sh -c 'id > /tmp/taken'"}),
        ("PROCESS", "ATTACK.P", {"appl_id": "/bin/true", "run_as": "nobody"}),
        ("QALIAS", "ATTACK.ALIAS", {"base_q_name": INITQ}),
        ("QREMOTE", "ATTACK.REMOTE", {"remote_q_name": INITQ, "remote_q_mgr_name": "QM1"}),
        ("QMODEL", "SYSTEM.DEFAULT.MODEL.QUEUE", {"trigger_control": "on"}),
    ):
        add(
            f"define-{_name}",
            _who,
            f"define {_object}({_name})",
            "it is as the attacker wants",
            lambda place, _, g=(_object, _name, _attributes): _define(place, g),
            lambda stage, said, before: said or stage.state() != before,
            prepare=lambda stage: stage.state(),
        )


# -- MQSET ----------------------------------------------------------------------------------------------------


def _other_value(name, row):
    """A value that this attribute does not have."""
    value = row[name]
    attribute = ATTRIBUTES[ObjectType.QLOCAL][name]
    if isinstance(attribute.default, enum.IntEnum):
        others = [word(member) for member in type(attribute.default)]
        return next(other for other in others if other not in (value, "none"))
    return "taken" if attribute.is_text else value + 1


def _set(place, given):
    target, values = given
    with place.connect() as qm, qm.open(target, "set") as q:
        qm.call(calls.Set(handle=q.handle, attributes=values))
    return True


def _prepare_set(stage, target, name):
    stage.base = stage.row(target)
    return target, {name: _other_value(name, stage.base)}


def _was_set(stage, target, name):
    """Whether it differs; it is put back."""
    before, now = stage.base[name], stage.row(target)[name]
    if before != now:
        change = {name: before}
        stage.qm.call(calls.Alter(object_type=stage.base["object_type"], name=target, attributes=change))
    return before != now


for _who in COMERS:
    for _target, _type in (("HELLO", "QLOCAL"), ("PUBLIC.Q", "QLOCAL"), (INITQ, "QLOCAL"), ("TO.PUBLIC", "QALIAS")):
        for _name, _attribute in ATTRIBUTES[ObjectType[_type]].items():
            if _attribute.settable:
                add(
                    f"set-{_target}-{_name}",
                    _who,
                    f"MQSET of {_name} of {_type}({_target})",
                    "the attribute has another value",
                    _set,
                    lambda stage, said, _, t=_target, n=_name: _was_set(stage, t, n),
                    prepare=lambda stage, t=_target, n=_name: _prepare_set(stage, t, n),
                )


# -- context --------------------------------------------------------------------------------------------------

_CLAIMED = MessageDescriptor(user_identifier="root", put_appl_name="QM1", put_appl_type=7, appl_identity_data="CLAIMED")


def _open_for(place, options):
    with place.connect() as qm:
        qm.call(calls.Open(object_name="SPARE.Q", options=int(OpenOption.OUTPUT | options)))
    return True


def _put_claimed(place, options):
    with place.connect() as qm:
        qm.call(calls.Put(q_name="SPARE.Q", descriptor=_CLAIMED, data=b"claimed", options=int(options)))


def _put_many_claimed(place, options):
    with place.connect() as qm:
        qm.call(calls.PutMany(q_name="SPARE.Q", descriptor=_CLAIMED, bodies=[b"claimed"], options=int(options)))


def _put_through_handle(place, options):
    with place.connect() as qm, qm.open("SPARE.Q", "output") as q:
        qm.call(calls.Put(handle=q.handle, descriptor=_CLAIMED, data=b"claimed", options=int(options)))


def _has_claimed(stage, said, given):
    """Whether a message says what the attacker claimed; the queue is emptied."""
    found = []
    with stage.qm.open("SPARE.Q", "input_shared") as q:
        while stage.row("SPARE.Q")["current_q_depth"]:
            message = q.get()
            found.append((message.user_identifier, message.appl_identity_data))
    return [one for one in found if one[0] == "root" or one[1] == "CLAIMED"]


for _who in COMERS:
    for _option in ("SET_IDENTITY_CONTEXT", "SET_ALL_CONTEXT"):
        add(
            f"open-{_option}",
            _who,
            f"open a queue with {_option}",
            "it is open",
            lambda place, _, o=_option: _open_for(place, OpenOption[o]),
        )
        for _way in (_put_claimed, _put_many_claimed, _put_through_handle):
            add(
                f"{_way.__name__.strip('_')}-{_option}",
                _who,
                f"put with {_option}, as root",
                "the message seems root's",
                lambda place, _, w=_way, o=_option: w(place, PutOption[o]),
                _has_claimed,
            )
    for _option in ("NONE", "DEFAULT_CONTEXT", "NO_CONTEXT"):
        add(
            f"claim-{_option}",
            _who,
            f"put with {_option} and a descriptor that says root",
            "the message seems root's",
            lambda place, _, o=_option: _put_claimed(place, PutOption[o]),
            _has_claimed,
        )


# -- who is there ---------------------------------------------------------------------------------------------


def _welcomed(place, hello):
    with place.connect(application="root") as qm:
        return qm.administrator or (qm.monitor and place.address.startswith("tcp"))


def _hello(place, hello):
    from trigmon.wire import codec

    with Raw(None, hello=False, tcp=("127.0.0.1", place.port)) as raw:
        said = {"protocol": codec.PROTOCOL_VERSION, "client_id": os.urandom(16).hex()} | hello
        said = {key: value(place) if callable(value) else value for key, value in said.items()}
        raw.send(codec.encode_hello(codec.Hello(**said)))
        welcome = codec.decode_welcome(raw.body())
        if not isinstance(welcome, codec.Welcome):
            return False
        raw.calls([calls.Define(object_type="QLOCAL", name="ATTACK.HELLO")])
        reply = raw.reply()[1]
        return welcome.administrator or welcome.monitor or "Refused" not in type(reply).__name__


for _name, _said in {
    "root": {"application": "root", "client_id": "root"},
    "pid-of-init": {"pid": 1},
    "pid-of-daemon": {"pid": lambda place: place.pids["daemon"], "application": "trigmon"},
    "pid-of-monitor": {"pid": lambda place: place.pids["monitor"], "application": "trigmon monitor"},
    "run-of-another": {"run_id": lambda place: place.runs["SLEEPER"]["run_id"]},
    "run-outside": {"run_id": "../../etc/passwd"},
    "no-client": {"client_id": ""},
    "server-uid": {"application": lambda place: str(place.server_uid)},
}.items():
    add(f"hello-{_name}", TCP, f"a hello that claims: {_name}", "it has a right", lambda p, _, s=_said: _hello(p, s))
for _who in (MEMBER, TCP):
    add("welcome", _who, "connect under root's name", "the welcome says administrator", _welcomed)
