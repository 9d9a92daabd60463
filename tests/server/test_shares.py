"""Nobody keeps anybody out: places, open objects, dynamic queues and memory are shared out by user."""

import contextlib
import os
import resource
import signal
import socket
import time

import pytest

import trigmon
from tests.daemons import define
from tests.strangers import as_user, meanwhile_as_user
from trigmon.mq.calls import Close, Open, PutMany, Release, Reservations, Reserve, Status
from trigmon.mq.enums import CloseOption, OpenOption
from trigmon.mq.replies import Listing, Opened, Refused, Values
from trigmon.rules.model.ticket import Ticket
from trigmon.server.connection_limits import RESERVED, UNGREETED, Clients, Shares
from trigmon.server.peer_identity import Peer
from trigmon.wire.codec import PROTOCOL_VERSION, Hello, encode_hello

ALICE, BOB = 5001, 5002
OUT = int(OpenOption.OUTPUT)


@pytest.fixture
def free_address():
    """A TCP address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()


def flood(one, address, count, ready):
    """Connects so often, says hello each time, and keeps what it gets; ready when each was answered."""
    soft = min(count + 100, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, soft))
    links = []
    for number in range(count):
        link = socket.socket(socket.AF_INET if address else socket.AF_UNIX)
        while True:
            try:
                link.connect(address or str(one.socket))
                break
            except BlockingIOError:
                time.sleep(0.01)
        with contextlib.suppress(OSError):
            link.sendall(encode_hello(Hello(protocol=PROTOCOL_VERSION, client_id=f"{os.getpid()}-{number}")))
        links.append(link)
    for link in links:
        with contextlib.suppress(OSError):
            assert link.recv(1)
    os.write(ready, b"x")
    signal.pause()


def connected_beside_a_flood(one, address, count, times):
    """How many places ALICE has who floods; BOB connects, puts and leaves so often meanwhile and behind that."""
    heard, ready = os.pipe()
    with meanwhile_as_user(ALICE, lambda: flood(one, address, count, ready)):

        def work():
            for _ in range(times):
                with one.connect() as qm:
                    qm.put("Q", b"x")

        as_user(BOB, work)
        os.read(heard, 1)
        as_user(BOB, work)
        with one.connect() as qm:
            taken = qm.ask(Status(), Values).values["connections"] - 1
    os.close(heard)
    os.close(ready)
    return taken


FLOODS = [(40, 120), (200, 1000), pytest.param(1000, 3000, marks=pytest.mark.slow)]
"""How many places there are, and how many connections one user asks for."""


@pytest.mark.parametrize("over_tcp", [True, False])
@pytest.mark.parametrize(("places", "count"), FLOODS)
def test_a_user_that_takes_all_the_places_keeps_no_other_user_out(passable, free_address, places, count, over_tcp):
    where = f"{free_address[0]}:{free_address[1]}"
    # No place becomes free meanwhile because a hello is overdue.
    more = {"server.max_connections": places, "server.tcp": where, "server.hello_timeout_s": 600}
    one = passable(settings={"server.socket_mode": "0666"} | more)
    with one.connect() as qm:
        define(qm, "Q", max_q_depth=999_999)
    taken = connected_beside_a_flood(one, free_address if over_tcp else None, count, 50)
    share = places // 4 if over_tcp else places // 2
    assert share <= taken <= share + 1  # BOB's last connection may not be gone yet


def half_frames(one, count, ready):
    """Begins a call of 4 MiB on each of so many connections, ends none, and comes again when they are cut."""
    while True:
        links = [one.plain_socket() for _ in range(count)]
        for number, link in enumerate(links):
            link.sendall(encode_hello(Hello(protocol=PROTOCOL_VERSION, client_id=f"{os.getpid()}-{number}")))
            assert b"welcome" in link.recv(4096)
            link.sendall((4 << 20).to_bytes(4, "big") + b"x")
        os.write(ready, b"x")
        for link in links:
            with contextlib.suppress(OSError):
                link.recv(4096)
            link.close()


def test_a_client_that_begins_long_calls_and_does_not_end_them_keeps_no_other_users_waiting(passable):
    more = {"server.socket_mode": "0666", "server.frame_timeout_s": 60, "server.max_connections": 100}
    one = passable(settings=more)
    with one.connect() as qm:
        define(qm, "Q")
    heard, ready = os.pipe()

    def work():
        with one.connect() as qm:
            for _ in range(3):
                qm.put("Q", bytes(4 << 20))

    began = time.monotonic()
    with meanwhile_as_user(ALICE, lambda: half_frames(one, 40, ready)):
        os.read(heard, 1)
        as_user(BOB, work)
    os.close(heard)
    os.close(ready)
    assert time.monotonic() - began < 60


def test_a_user_at_the_limit_gets_the_reason_and_the_setting(passable):
    one = passable(settings={"server.socket_mode": "0666", "server.max_connections_per_user": 2})

    def work():
        with one.connect(), one.connect():
            try:
                one.connect()
            except trigmon.MaxConnsLimitReached as error:
                message = error.about
        one.connect().disconnect()
        return message

    assert f"{ALICE} may have 2 connections" in as_user(ALICE, work)
    assert "server.max_connections_per_user" in as_user(BOB, work)
    with contextlib.ExitStack() as many:
        assert all(many.enter_context(one.connect()).administrator for _ in range(9))


def test_one_users_objects_are_bounded_over_all_connections(passable):
    one = passable(settings={"server.socket_mode": "0666", "server.max_handles_per_user": 3})
    with one.connect() as qm:
        define(qm, "Q")

    def work():
        with one.connect() as first, one.connect() as second:
            handles = [first.ask(Open(object_name="Q", options=OUT), Opened).handle for _ in range(3)]
            with pytest.raises(trigmon.HandleNotAvailable, match="max_handles_per_user"):
                second.call(Open(object_name="Q", options=OUT))
            first.call(Close(handle=handles[0]))
            second.call(Open(object_name="Q", options=OUT))

    as_user(ALICE, work)
    as_user(BOB, work)


def make_dynamic(one, count, close_options=None):
    """How many of so many dynamic queues are made, each from M, before one is refused."""
    made = 0
    with one.connect() as qm, contextlib.suppress(trigmon.ResourceProblem):
        for _ in range(count):
            handle = qm.ask(Open(object_name="M", options=OUT), Opened).handle
            made += 1
            if close_options:
                qm.call(Close(handle=handle, options=close_options))
    return made


def test_one_users_permanent_dynamic_queues_are_bounded_also_behind_a_restart(passable):
    one = passable(settings={"server.socket_mode": "0666", "server.max_dynamic_queues_per_user": 3})
    with one.connect() as qm:
        define(qm, "M", "QMODEL", definition_type="permanent_dynamic")
    assert as_user(ALICE, lambda: make_dynamic(one, 5, int(CloseOption.DELETE))) == 5
    assert as_user(ALICE, lambda: (make_dynamic(one, 9), make_dynamic(one, 9))) == (3, 0)
    assert as_user(BOB, lambda: make_dynamic(one, 2)) == 2
    one.stop()
    one.start()
    assert as_user(ALICE, lambda: make_dynamic(one, 9)) == 0
    assert as_user(BOB, lambda: make_dynamic(one, 9)) == 1
    assert make_dynamic(one, 9) == 9  # root


def test_one_users_temporary_dynamic_queues_are_bounded_while_they_are_there(passable):
    one = passable(settings={"server.socket_mode": "0666", "server.max_dynamic_queues_per_user": 3})
    with one.connect() as qm:
        define(qm, "M", "QMODEL", definition_type="temporary_dynamic")

    def work():
        with one.connect() as qm:
            qm.ask(Open(object_name="M", options=OUT), Opened)
            return make_dynamic(one, 9)

    assert as_user(ALICE, lambda: (work(), make_dynamic(one, 9))) == (2, 3)
    assert as_user(BOB, lambda: make_dynamic(one, 9)) == 3


def test_one_users_reservations_are_bounded_over_all_queues_and_listed_a_page_at_a_time(passable):
    one = passable(settings={"server.socket_mode": "0666", "server.max_reservations_per_user": 3})
    with one.connect() as qm:
        for name in ("Q", "Q2"):
            define(qm, name)
            qm.call(PutMany(q_name=name, bodies=[b"x"] * 150))

    def made(q_name, count):
        """How many reservations are made of so many, by as many consumers, before one is refused."""
        with one.connect() as qm:
            handle = qm.open(q_name, "input_shared").handle
            for number in range(count):
                try:
                    qm.call(Reserve(handle=handle, consumer=f"JOB{number}", max_messages=1))
                except trigmon.ResourceProblem as error:
                    assert "server.max_reservations_per_user" in error.about
                    return number
        return count

    assert as_user(ALICE, lambda: (made("Q", 2), made("Q2", 9), made("Q", 9))) == (2, 1, 2)
    assert as_user(BOB, lambda: made("Q2", 9)) == 3
    assert made("Q", 140) == made("Q2", 140) == 140  # root
    with one.connect() as qm:
        listing = qm.ask(Reservations(), Listing)
        assert (len(listing.rows), listing.more) == (256, True)
        rows = qm.reservations()
        assert len({row["reservation"] for row in rows}) == len(rows) == 286
        assert [row["q_name"] for row in rows] == sorted(row["q_name"] for row in rows)
        number = next(row["reservation"] for row in rows if row["user"] == str(ALICE))
        qm.call(Release(reservation=number))
    assert as_user(ALICE, lambda: made("Q", 9)) == 2


def test_a_warning_at_the_start_and_the_status_say_what_tcp_means(daemon, free_address):
    where = f"{free_address[0]}:{free_address[1]}"
    one = daemon(settings={"server.tcp": where})
    (event,) = one.events("TCP is open to every local user")
    assert event["level"] == "warning"
    with one.connect() as qm:
        (reported,) = qm.ask(Status(), Values).values["warnings"]
    assert reported == event["why"]
    assert where in reported
    assert "any local user can put, get and browse" in reported
    shown = one.trigmon("status")
    assert f"warning: {where}" in shown.stderr


def test_without_tcp_there_is_nothing_to_warn_of(shared_daemon):
    assert not shared_daemon.events("TCP is open to every local user")
    with shared_daemon.connect() as qm:
        assert qm.ask(Status(), Values).values["warnings"] == []


def test_shares_are_half_a_quarter_or_as_set_and_monitors_have_some_more():
    member, tcp, root = Peer(uid=5001), Peer(), Peer(uid=0, administrator=True, monitor=True)
    monitor = Peer(uid=998, monitor=True)
    by_ticket, of_tcp = (Peer(user=user, ticket=Ticket(1, "Q", 0, user, 1)) for user in ("alice", ""))

    def places(of, peer, room):
        return [of.places(peer, share, room) for share in peer.shares]

    found = [places(Shares(), peer, 1000)[0] for peer in (member, tcp, monitor, root)]
    assert found == [500, 250, 500 + RESERVED, 1000 + RESERVED]
    assert [places(Shares(), peer, 1000) for peer in (by_ticket, of_tcp)] == [[250, 500], [125, 250]]
    assert [places(Shares(), peer, 1) for peer in (member, tcp, by_ticket)] == [[1], [1], [1, 1]]
    reported = Shares(connections=7, over_tcp=3)
    assert [places(reported, peer, 1000) for peer in (member, tcp, by_ticket)] == [[7], [3], [3, 7]]
    assert places(reported, member, 5) == [5]


class Silent:
    """A connection that has said nothing yet."""

    def __init__(self, peer):
        self.peer = peer
        self.disconnected, self.session = False, None


def greeted(clients, peer):
    """How many connections of this peer get a place, before one is refused; and the refusal."""
    for count in range(9999):
        connection = Silent(peer)
        clients.expect(connection)
        clients.began(connection)
        claimed = clients.claim(connection, Hello(protocol=PROTOCOL_VERSION, client_id=f"{peer.shares}-{count}"))
        if isinstance(claimed, Refused):
            return count, claimed.about
    raise AssertionError("none was refused")


EVE = Peer(uid=1000, user="eve"), Peer(user="eve"), Peer(user="eve", ticket=Ticket(1, "Q", 0, "eve", 1))
"""One user by the socket, by TLS and by a ticket."""
NOBODY = Peer(), Peer(), Peer(ticket=Ticket(1, "Q", 0, "", 1))
"""Who came by plain TCP, and by the ticket that such a client asked for."""


@pytest.mark.parametrize(("who", "share", "by_tickets"), [(EVE, 500, 250), (NOBODY, 250, 125)])
def test_a_user_has_one_share_by_every_way_and_tickets_are_half_of_it(who, share, by_tickets):
    by_socket, by_tls, by_ticket = who
    clients = Clients(None, 1000, "1")
    count, why = greeted(clients, by_ticket)
    assert count == by_tickets
    assert f"may have {by_tickets} connections of 1000" in why
    count, why = greeted(clients, by_tls)
    assert count == share - by_tickets
    assert f"may have {share} connections of 1000" in why
    assert greeted(clients, by_socket)[0] == 0
    assert greeted(clients, Peer(uid=BOB, user="bob"))[0] == 500

    clients = Clients(None, 1000, "1")
    assert [greeted(clients, peer)[0] for peer in (by_socket, by_tls, by_ticket)] == [share, 0, 0]


def test_silent_connections_of_one_user_fill_no_more_than_a_share_and_the_step():
    clients = Clients(None, 100, "1")
    inside = []
    while clients.may_enter(Peer(uid=ALICE)):
        inside.append(Silent(Peer(uid=ALICE, user=str(ALICE))))
        clients.expect(inside[-1])
        clients.began(inside[-1])
    assert len(inside) == 50 + UNGREETED
    assert clients.may_enter(Peer(uid=BOB))
    for connection in inside:
        clients.gone(connection)
        clients.gone(connection)
    assert clients.may_enter(Peer(uid=ALICE))
