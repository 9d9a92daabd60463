"""Every call by every kind of user over a socket: 2035 where the reference page says that the right lacks, else not."""

from __future__ import annotations

import functools
import grp
import os
import pickle
import re
import socket
import traceback
from pathlib import Path

import msgspec
import pytest

import trigmon
from tests.daemons import define
from tests.tls.authorities import Site
from trigmon.client.address import connect_by_ticket
from trigmon.mq import calls
from trigmon.mq.calls import SetAuthority
from trigmon.mq.enums import OpenOption
from trigmon.mq.replies import Reserved, TicketIssued, Values
from trigmon.mq.rights import OBJECT_TYPES, SELF, read_rights
from trigmon.rules.call_rights import RIGHTS
from trigmon.tls.accounts import Account

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "rights.md"
ROWS = re.findall(
    r"^\| `(\w+)`(?: for (\w+))? \| ([^|]*) \|", PAGE.read_text().split("## Which right")[1], re.MULTILINE
)
NEEDED = {f"{call} {way}".strip(): needs for call, way, needs in ROWS}
WORDS = ("put", "get", "browse", "inquire", "set", "pause", "administer")
OPENS = {"output": "OUTPUT", "input": "INPUT_SHARED", "browse": "BROWSE", "inquire": "INQUIRE", "set": "SET"}
FIELDS = {
    "put": {"q_name": "Q"},
    "put_many": {"q_name": "Q", "bodies": [b"x"]},
    "define": {"object_type": "QLOCAL", "name": "NEW", "attributes": {"trigger_depth": 0}},  # wrong, so nothing is made
    "alter": {"object_type": "QLOCAL", "name": "NONE"},
    "delete": {"object_type": "QLOCAL", "name": "NONE"},
    "clear": {"q_name": "NONE"},
    "move": {"q_name": "NONE", "to_q_name": "Q"},
    "dead_letters": {"q_name": "Q"},
    "retry_dead_letters": {"q_name": "EMPTY"},
    "discard_dead_letters": {"q_name": "EMPTY"},
    "display": {"object_type": "QLOCAL", "name": "Q"},
    "display_handles": {"q_name": "Q"},
    "queue_status": {"q_name": "Q"},
    "reset_queue_statistics": {"q_name": "Q"},
    "end_connection": {"connection": 999_999},
    "explain": {"q_name": "Q"},
    "rehearse": {"q_name": "Q", "attributes": {}},
    "explain_rights": {"name": "Q", "user": "other"},
    "set_authority": {"name": "queue NONE user x"},  # there is none, and nothing is added: nothing is made
    "pause": {"what": "queue", "name": "NONE"},
    "resume": {"what": "queue", "name": "NONE"},
    "cancel_run": {"run_id": "00000000000000aa"},
    "retry_run": {"run_id": "00000000000000aa"},
    "record_run": {"run_id": "00000000000000aa", "record": {"state": "no such state"}},
    "reservations": {"q_name": "Q"},
    "report_copy": {"state": calls.CopyState(name="NONE@QM9", q_name="NONE")},
}
PLAIN = {str: "NONE", int: 999_999, dict: {}, list: [], bool: True}
GROUP = next(group for group in grp.getgrall() if group.gr_gid not in (0, 65534) and not group.gr_mem)


def call_of(tag):
    """A call of this kind with fields by which it changes nothing."""
    kind = next(kind for kind in RIGHTS if kind.__struct_config__.tag == tag)
    given = dict(FIELDS.get(tag, {}))
    for field in msgspec.structs.fields(kind):
        if field.required and field.name not in given:
            given[field.name] = PLAIN[getattr(field.type, "__origin__", field.type)]
    return kind(**given)


def cells():
    """Each row of the page with a call that plays it, ``disconnect`` last."""
    for name in sorted(NEEDED, key=lambda name: name == "disconnect"):
        tag, _, way = name.partition(" ")
        yield name, calls.Open(object_name="Q", options=int(OpenOption[OPENS[way]])) if way else call_of(tag)


def by_address(address):
    return trigmon.connect(address, application="cells", run_id="", reconnect_s=0)


def played(address, connect=by_address):
    """The names of the rows whose call is refused with 2035; each has a connection of its own."""
    refused = set()
    for name, call in cells():
        qm = None
        try:
            qm = connect(address)
            qm.call(call)
        except trigmon.NotAuthorized as error:
            assert error.about
            refused.add(name)
        except trigmon.MQError as error:
            # The call is wrong for another reason, which comes behind the rights.
            assert not isinstance(error, trigmon.ConnectionBroken), name
        finally:
            if qm is not None:
                qm.drop()
    return refused


def played_by_ticket(site, ticket):
    """Plays the rows as a task does that has a ticket and nothing else."""
    where, trusted = [f"tls://localhost:{site.port}/QM1"], (site.directory / "authority.crt").read_text()
    return played("", lambda _: connect_by_ticket(where, ticket, trusted, application="cells", reconnect_s=0))


def tickets(one):
    """The ticket of the reservation that all read, one of a reservation that is over, and the first one altered."""
    with one.connect() as qm:
        qm.call(calls.Put(q_name="EMPTY", data=b"reserved"))
        over = qm.open("EMPTY", "input_shared").reserve("CELLS")
        numbers = (FIELDS["read_reserved"]["reservation"], over.number)
        right, replayed = (qm.ask(calls.IssueTicket(reservation=number), TicketIssued).ticket for number in numbers)
        over.settle()
    return right, replayed, ("A" if right[0] != "A" else "B") + right[1:]


def played_by_tickets(one, site):
    """What the cells of each kind of ticket are, and are to be."""
    right, replayed, altered = tickets(one)
    return {
        "ticket": (played_by_ticket(site, right), {*NEEDED} - {"read_reserved"}),
        "replayed ticket": (played_by_ticket(site, replayed), {*NEEDED}),
        "altered ticket": (played_by_ticket(site, altered), {*NEEDED}),
    }


def as_process(uid, gid, work):
    """Returns what ``work()`` returns in a process of this user and group."""
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.setgroups([])
            os.setgid(gid)
            os.setuid(uid)
            os.write(writer, pickle.dumps(work()))
        except BaseException:
            traceback.print_exc()
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        value = pickle.load(pipe)
    os.waitpid(child, 0)
    return value


def expected(rights, *, everything=False, monitor=False, setter=False):
    """The names of the rows that a user of these rights is refused, by the page."""
    refused = set()
    for name, needs in NEEDED.items():
        words = re.findall(r"`(\w+)`", needs)
        if everything or needs == "every user":
            continue
        if needs == "monitors":
            has = monitor
        elif needs == "administrators":
            has = False
        else:
            assert words, needs
            has = all(read_rights(word) & rights or (word == "SET" and setter) for word in words)
        if not has:
            refused.add(name)
    return refused


@pytest.fixture(scope="module")
def everywhere():
    return read_rights(["put", "get", "browse", "inquire"])


def give(qm, kind, entity, rights):
    """Gives rights on all objects of every type."""
    for of_type in OBJECT_TYPES:
        profile = SELF if of_type == "qmgr" else "**"
        qm.ask(SetAuthority(name=f"{of_type} {profile} {kind} {entity}", add=list(rights)), Values)


def test_every_call_has_a_row_on_the_page_and_one_in_the_table():
    tags = {kind.__struct_config__.tag for kind in calls.AnyCall.__args__}
    assert {name.partition(" ")[0] for name in NEEDED} == tags
    assert {*calls.AnyCall.__args__, calls.LostConnection} == set(RIGHTS)


UIDS = {word: 5100 + at for at, word in enumerate(WORDS)}
ALL, MEMBER, OF_GROUP, SETTER, ADMINISTRATOR, MONITOR, OWNER = range(5200, 5207)


def reserved(one):
    """The number of a reservation, which stays when its holder has gone."""
    with one.connect() as qm:
        call = calls.Reserve(handle=qm.open("Q", "input_shared").handle, consumer="JOB")
        return qm.ask(call, Reserved).reservation


def daemon_with_users(passable, site, tcp):
    settings = {
        "server.socket_mode": "0666",
        "server.setters": str(SETTER),
        "server.administrators": str(ADMINISTRATOR),
        "server.monitors": str(MONITOR),
        "server.tcp": tcp,
        **site.settings,
    }
    one = passable(settings=settings)
    with one.connect() as qm:
        define(qm, "Q")
        define(qm, "EMPTY")
        qm.call(calls.Put(q_name="Q", data=b"reserved"))
    FIELDS["read_reserved"] = {"reservation": as_process(OWNER, OWNER, lambda: reserved(one)), "count": 1}
    FIELDS["issue_ticket"] = {"reservation": FIELDS["read_reserved"]["reservation"]}
    return one


@pytest.fixture
def free_address():
    """A TCP address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        host, port = free.getsockname()
    return f"{host}:{port}"


@pytest.fixture
def site(tmp_path):
    made = Site(tmp_path / "tls")
    made.client("alice")
    made.client("carol")
    made.client("root")
    made.let_in(
        Account("alice", certificates=("CN=alice",)),
        Account("carol", certificates=("CN=carol",), groups=("loaders",)),
        Account("root", certificates=("CN=root",)),
    )
    return made


def wrong(found):
    """What a table of cells says other than the page does, by user."""
    return {who: sorted(refused ^ wanted) for who, (refused, wanted) in found.items() if refused != wanted}


def test_without_records_every_call_by_every_kind_of_user_is_as_ever(passable, site, free_address, everywhere):
    one = daemon_with_users(passable, site, free_address)
    play = functools.partial(played, one.address)
    found = {
        "root": (play(), expected(everywhere, everything=True)),
        "administrator": (as_process(ADMINISTRATOR, ADMINISTRATOR, play), expected(everywhere, everything=True)),
        "member": (as_process(MEMBER, MEMBER, play), expected(everywhere)),
        "setter": (as_process(SETTER, SETTER, play), expected(everywhere, setter=True)),
        "monitor": (as_process(MONITOR, MONITOR, play), expected(everywhere, monitor=True)),
        "TLS user": (played(site.address("alice")), expected(everywhere)),
        "TLS user named root": (played(site.address("root")), expected(everywhere)),
        "plain TCP": (played(f"tcp://{free_address}"), expected(everywhere)),
    } | played_by_tickets(one, site)
    assert wrong(found) == {}
    assert len(found) * len(NEEDED) > 400


def test_with_records_every_call_by_every_kind_of_user_needs_what_the_page_says(
    passable, site, free_address, everywhere
):
    one = daemon_with_users(passable, site, free_address)
    nothing = read_rights("none")
    with one.connect() as qm:
        for word, uid in UIDS.items():
            give(qm, "user", uid, [word])
        give(qm, "user", ALL, ["all"])
        give(qm, "group", GROUP.gr_name, ["put", "pause"])
        give(qm, "user", "carol", ["get"])
        give(qm, "group", "loaders", ["administer"])
    play = functools.partial(played, one.address)
    of_one = {word: (as_process(uid, uid, play), expected(read_rights(word))) for word, uid in UIDS.items()}
    found = of_one | {
        "root": (play(), expected(nothing, everything=True)),
        "administrator": (as_process(ADMINISTRATOR, ADMINISTRATOR, play), expected(nothing, everything=True)),
        "member": (as_process(MEMBER, MEMBER, play), expected(nothing)),
        "all": (as_process(ALL, ALL, play), expected(read_rights("all"))),
        "of the group": (as_process(OF_GROUP, GROUP.gr_gid, play), expected(read_rights("put, pause"))),
        "user with a group of another": (
            as_process(UIDS["get"], GROUP.gr_gid, play),
            expected(read_rights("put,get,pause")),
        ),
        "setter": (as_process(SETTER, SETTER, play), expected(nothing, setter=True)),
        "monitor": (as_process(MONITOR, MONITOR, play), expected(everywhere, monitor=True)),
        "TLS user": (played(site.address("alice")), expected(nothing)),
        "TLS user with a group": (played(site.address("carol")), expected(read_rights("get, administer"))),
        "TLS user named root": (played(site.address("root")), expected(nothing)),
        "plain TCP": (played(f"tcp://{free_address}"), expected(nothing)),
        **played_by_tickets(one, site),
    }
    assert wrong(found) == {}
    assert len(found) * len(NEEDED) > 1000
    with one.connect() as qm:
        give(qm, "group", "*", ["browse"])
    after = {
        "member": (as_process(MEMBER, MEMBER, play), expected(read_rights("browse"))),
        "plain TCP": (played(f"tcp://{free_address}"), expected(read_rights("browse"))),
    }
    assert wrong(after) == {}
