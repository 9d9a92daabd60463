"""Authority records as PCF has them: profile, type of object, user or group, and a list of ``MQAUTH_*``.

Authorities that have no meaning here, as connecting and contexts, are passed over, as by MQSC.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from trigmon.mq.calls import Delete, Display, ExplainRights, SetAuthority
from trigmon.mq.names import matches
from trigmon.mq.replies import Values
from trigmon.mq.rights import (
    ADMIN,
    MQI,
    RIGHTS,
    SELF,
    RecordName,
    Right,
    mq_words,
    read_record_name,
    read_rights,
    rights_explained,
    rights_of_group,
)
from trigmon.mq.rights import record_name as record_name_of
from trigmon.pcf.inquiries import DEFAULT_AUTH_INFO, answered, object_there, paged_rows
from trigmon.pcf.numbers import Parameter, PcfReason
from trigmon.pcf.objects import name_text
from trigmon.pcf.request import Answers, Ask, Parameters, Request
from trigmon.pcf.structures import PcfError

OBJECT_TYPES: Final = {1: "queue", 2: "namelist", 3: "process", 5: "qmgr"}
"""By MQOT_* the type of object of a record; schedules and watches have no number in MQ."""
ALL_TYPES: Final = 1001
ENTITY_TYPES: Final = {1: "user", 2: "group"}
"""By MQZAET_*."""

AUTHORITIES: Final = {
    2: Right.BROWSE,
    3: Right.CHG,
    4: Right.CLR,
    6: Right.CRT,
    7: Right.DLT,
    8: Right.DSP,
    9: Right.GET,
    10: Right.INQ,
    11: Right.PUT,
    14: Right.SET,
    17: Right.CTRL,
    -1: RIGHTS,
    -2: ADMIN,
    -3: MQI,
    0: Right(0),
}
"""By MQAUTH_* the rights."""
WITHOUT_MEANING: Final = (1, 5, 12, 13, 15, 16, 18, 19, 20, 21, 22)
_ID_AND_PASSWORD_OS = 3
_OPTIONAL, _NONE = 0, 1
"""MQCHK_*."""
_CUMULATIVE: Final = 256
"""MQAUTHOPT_CUMULATIVE."""


def set_record(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_SET_AUTH_REC: a call for each user and group."""
    records = _records(request)
    add, remove = (_words(request, number) for number in (Parameter.AUTH_ADD_AUTHS, Parameter.AUTH_REMOVE_AUTHS))
    request.nothing_more()
    for number, record in enumerate(records):
        if number:
            yield None
        ask(SetAuthority(name=str(record), add=add, remove=remove))


def delete_record(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_DELETE_AUTH_REC."""
    records = _records(request)
    request.nothing_more()
    for number, record in enumerate(records):
        if number:
            yield None
        ask(Delete(object_type="AUTHREC", name=str(record)))


def inquire_records(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_INQUIRE_AUTH_RECS: a reply a record."""
    request.optional_integer(Parameter.AUTH_OPTIONS, 0)
    profile = request.text(Parameter.AUTH_PROFILE_NAME)
    kind = request.integer(Parameter.OBJECT_TYPE)
    of_kind = "" if kind == ALL_TYPES else _object_type(kind)
    entity = request.optional_text(Parameter.ENTITY_NAME) or ""
    entity_type = ENTITY_TYPES.get(request.optional_integer(Parameter.ENTITY_TYPE, 0), "")
    wanted = request.integers(Parameter.AUTH_PROFILE_ATTRS)
    request.optional_text(Parameter.SERVICE_COMPONENT)

    def found() -> Iterator[Parameters | None]:
        for row in paged_rows(ask, Display(object_type="AUTHREC", name="*")):
            if row is None:
                yield None
                continue
            about = read_record_name(row["name"])
            is_meant = about.object_type == of_kind if of_kind else about.object_type in OBJECT_TYPES.values()
            is_meant = is_meant and (not profile or about.profile == profile or matches(about.profile, profile))
            if is_meant and entity in ("", about.entity.name) and entity_type in ("", about.entity.kind):
                yield _record(about, row)
            else:
                yield None

    yield from answered(request, found(), wanted, 4, profile or "*")


def inquire_entity(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_INQUIRE_ENTITY_AUTH: what a user, or a group, may do with one object.

    Of a user it is what follows from records of its own, of everyone, and of the groups of an account of TLS. The
    groups of the system's user database are known of who asks about itself.
    """
    options = request.optional_integer(Parameter.AUTH_OPTIONS, _CUMULATIVE)
    if options != _CUMULATIVE:
        raise PcfError(PcfReason.PARM_VALUE_ERROR, f"options {options}", Parameter.AUTH_OPTIONS)
    kind = _object_type(request.integer(Parameter.OBJECT_TYPE))
    entity, entity_type = request.text(Parameter.ENTITY_NAME), request.integer(Parameter.ENTITY_TYPE)
    if entity_type not in ENTITY_TYPES:
        raise PcfError(PcfReason.PARM_VALUE_ERROR, f"type of entity {entity_type}", Parameter.ENTITY_TYPE)
    read_name = request.optional_text if kind == "qmgr" else request.text
    name = read_name(Parameter.OBJECT_NAME) or ""
    wanted = request.integers(Parameter.AUTH_PROFILE_ATTRS)
    request.optional_text(Parameter.SERVICE_COMPONENT)

    def found() -> Iterator[Parameters | None]:
        q_mgr_name = str(object_there(ask, "QMGR", "")["name"])
        about = q_mgr_name if kind == "qmgr" else name
        object_there(ask, "queue" if kind == "queue" else kind.upper(), about)
        if ENTITY_TYPES[entity_type] == "user":
            rights = _of_user(ask, kind, about, entity)
        else:
            rows = []
            for row in paged_rows(ask, Display(object_type="AUTHREC", name="*")):
                if row is None:
                    yield None
                else:
                    rows.append(row)
            rights = rights_of_group(rows, kind, SELF if kind == "qmgr" else about, entity)
        yield [
            (Parameter.Q_MGR_NAME, name_text(q_mgr_name)),
            (Parameter.AUTH_OPTIONS, options),
            (Parameter.OBJECT_NAME, name_text(about)),
            (Parameter.OBJECT_TYPE, _KINDS[kind]),
            (Parameter.ENTITY_TYPE, entity_type),
            (Parameter.ENTITY_NAME, entity),
            (Parameter.AUTHORIZATION_LIST, _authorizations(rights)),
        ]

    yield from answered(request, found(), wanted, 3, "")


def _of_user(ask: Ask, kind: str, name: str, user: str) -> Right:
    own = ask(ExplainRights(name=name, object_type=kind))
    assert isinstance(own, Values)
    found = own if own.values["user"] == user else ask(ExplainRights(name=name, object_type=kind, user=user))
    assert isinstance(found, Values)
    return rights_explained(found.values["rights"])


def inquire_authentication(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_INQUIRE_AUTH_INFO: the one way in which users are proved here.

    A local user is known by the kernel, and gives no password (NONE). A client by TLS may give one, which must be right
    then (OPTIONAL).
    """
    name = request.text(Parameter.AUTH_INFO_NAME)
    kind = request.optional_integer(Parameter.AUTH_INFO_TYPE, _ID_AND_PASSWORD_OS)
    wanted = request.integers(Parameter.AUTH_INFO_ATTRS)
    is_meant = matches(DEFAULT_AUTH_INFO, name) and kind in (0, _ID_AND_PASSWORD_OS)
    found: Parameters = [
        (Parameter.AUTH_INFO_NAME, name_text(DEFAULT_AUTH_INFO)),
        (Parameter.AUTH_INFO_TYPE, _ID_AND_PASSWORD_OS),
        (Parameter.CHECK_LOCAL_BINDING, _NONE),
        (Parameter.CHECK_CLIENT_BINDING, _OPTIONAL),
    ]
    yield from answered(request, [found] if is_meant else [], wanted, 2, name)


def inquire_authentication_names(request: Request, ask: Ask) -> Answers:
    """Answers MQCMD_INQUIRE_AUTH_INFO_NAMES: its name, in a list."""
    name = request.text(Parameter.AUTH_INFO_NAME)
    kind = request.optional_integer(Parameter.AUTH_INFO_TYPE, _ID_AND_PASSWORD_OS)
    request.nothing_more()
    is_meant = matches(DEFAULT_AUTH_INFO, name) and kind in (0, _ID_AND_PASSWORD_OS)
    yield [(Parameter.AUTH_INFO_NAMES, (name_text(DEFAULT_AUTH_INFO),) if is_meant else ())]


_KINDS = {name: number for number, name in OBJECT_TYPES.items()}


def _authorizations(rights: Right) -> tuple[int, ...]:
    """Returns the list of MQAUTH_* for rights, MQAUTH_NONE for none."""
    numbers = {right: number for number, right in AUTHORITIES.items() if number > 0}
    return tuple(numbers[Right[word.upper()]] for word in mq_words(rights)) or (0,)


def _record(about: RecordName, row: dict[str, Any]) -> Parameters:
    entities = {name: number for number, name in ENTITY_TYPES.items()}
    return [
        (Parameter.AUTH_PROFILE_NAME, name_text(about.profile)),
        (Parameter.OBJECT_TYPE, _KINDS[about.object_type]),
        (Parameter.ENTITY_TYPE, entities[about.entity.kind]),
        (Parameter.ENTITY_NAME, about.entity.name),
        (Parameter.AUTHORIZATION_LIST, _authorizations(read_rights(str(row["authorities"])))),
    ]


def _records(request: Request) -> list[RecordName]:
    """Returns the records that a command is about. Raises PcfError, and ObjectNameError for a name that none has."""
    profile, kind = request.text(Parameter.AUTH_PROFILE_NAME), _object_type(request.integer(Parameter.OBJECT_TYPE))
    request.optional_text(Parameter.SERVICE_COMPONENT)
    users = request.texts(Parameter.PRINCIPAL_ENTITY_NAMES)
    groups = request.texts(Parameter.GROUP_ENTITY_NAMES)
    named = [("user", name) for name in users] + [("group", name) for name in groups]
    if not named:
        raise PcfError(PcfReason.ENTITY_NAME_MISSING, "no user and no group", Parameter.PRINCIPAL_ENTITY_NAMES)
    # MQ has the queue manager's name where a record has SELF.
    profile = SELF if kind == "qmgr" else profile
    return [record_name_of(kind, profile, *entity) for entity in named]


def _object_type(number: int) -> str:
    if number not in OBJECT_TYPES:
        raise PcfError(PcfReason.PARM_VALUE_ERROR, f"type of object {number}", Parameter.OBJECT_TYPE)
    return OBJECT_TYPES[number]


def _words(request: Request, number: int) -> list[str]:
    """Returns MQ's words of a list of authorities; none of an empty one, so that a record is made."""
    given = request.integers(number)
    if given is None:
        return []
    rights = Right(0)
    for each in given:
        if each not in AUTHORITIES and each not in WITHOUT_MEANING:
            raise PcfError(PcfReason.AUTH_VALUE_ERROR, f"authority {each}", number)
        rights |= AUTHORITIES.get(each, Right(0))
    return mq_words(rights) or ["none"]
