"""Tickets of reservations over the TLS listener of a real daemon: what each reads, and why others are refused."""

import shutil
import socket
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
import pytest

import trigmon
from tests.daemons import define, queue_managers
from tests.tls.authorities import Site
from trigmon.client.address import connect_by_ticket
from trigmon.mq.calls import Delete, DisplayConnections, IssueTicket, Ping, ReadReserved, SetAuthority, Status
from trigmon.mq.replies import Listing, TicketIssued, Values, WereReserved
from trigmon.rules.model.ticket import LIFETIME_MS
from trigmon.tls.accounts import Account
from trigmon.tls.contexts import TlsFileError
from trigmon.tls.tickets import TicketKey, ticket_key

MESSAGES = 300


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    made = Site(tmp_path_factory.mktemp("tls"))
    for name in ("alice", "bob", "carol"):
        made.client(name)
    made.let_in(*(Account(name, certificates=(f"CN={name}",)) for name in ("alice", "bob", "carol")))
    return made


@pytest.fixture(scope="module")
def served(tmp_path_factory, site):
    settings = {"server.administrators": "carol", "server.max_connections_per_user": 8}
    with queue_managers(lambda: tmp_path_factory.mktemp("qm")) as make:
        yield make(settings=site.settings | settings)


@pytest.fixture(autouse=True)
def full_queues(request):
    """Each test that uses the shared queue manager finds two queues with messages, and no reservation."""
    if "served" not in request.fixturenames:
        yield
        return
    with request.getfixturevalue("served").connect() as qm:
        for name in ("Q", "OTHER"):
            define(qm, name, def_persistence="persistent")
            qm.put_many(name, [b"%s %d" % (name.encode(), n) for n in range(MESSAGES)])
    yield
    with request.getfixturevalue("served").connect() as qm:
        for row in qm.reservations("*"):
            qm.release(row["reservation"])
        for name in ("Q", "OTHER"):
            qm.call(Delete(object_type="QLOCAL", name=name, purge=True))


@pytest.fixture
def driver(served, site):
    with trigmon.connect(site.address("alice"), reconnect_s=60) as qm:
        yield qm


def reserve(qm, q_name="Q", consumer="JOB"):
    return qm.open(q_name, "input_shared").reserve(consumer)


def ticket_of(qm, made):
    return qm.ask(IssueTicket(reservation=made.number), TicketIssued).ticket


@contextmanager
def task(site, ticket, reconnect_s=0.0, where=()):
    """Connects as a task on another machine does: with a ticket and the authority's text, and nothing else."""
    where = where or [f"tls://localhost:{site.port}/QM1"]
    trusted = (site.directory / "authority.crt").read_text()
    connection = connect_by_ticket(where, ticket, trusted, application="task", reconnect_s=reconnect_s)
    try:
        yield connection
    finally:
        connection.drop()


def rows(connection, number, count=MESSAGES):
    return [message.data for _, message in connection.read_reserved(number, 0, count)]


def refusal(site, ticket):
    """Why a ticket is refused at the door."""
    with pytest.raises(trigmon.NotAuthorized) as refused, task(site, ticket):
        pass
    return refused.value.about


def read_refusal(connection, number):
    with pytest.raises(trigmon.NotAuthorized) as refused:
        rows(connection, number)
    return refused.value.about


def own_key(site):
    """The daemon's own key: with it a test makes tickets that only time or the queue manager could."""
    return ticket_key(site.directory / "ticket.key", "QM1")


def test_a_ticket_reads_its_reservation_any_number_of_times(site, driver):
    made = reserve(driver)
    ticket = ticket_of(driver, made)
    for _ in range(2):
        with task(site, ticket) as connection:
            assert rows(connection, made.number) == [b"Q %d" % n for n in range(MESSAGES)]
            assert (connection.administrator, connection.monitor) == (False, False)


def test_a_ticket_of_another_reservation_or_queue_reads_nothing(site, driver):
    made, other = reserve(driver), reserve(driver, "OTHER")
    with task(site, ticket_of(driver, other)) as connection:
        why = read_refusal(connection, made.number)
        assert f"of RESERVATION({other.number}) on OTHER, not of RESERVATION({made.number})" in why
        assert len(rows(connection, other.number)) == MESSAGES
    # One for the right number and another queue, or of another time, is signed by nobody but the daemon itself.
    key, right = own_key(site), own_key(site).read(ticket_of(driver, made))
    assert "is another one, on Q" in refusal(site, key.signed(msgspec.structs.replace(right, q_name="OTHER")))
    assert "is another one, on Q" in refusal(site, key.signed(msgspec.structs.replace(right, made_ms=1)))
    assert "never was, or ended" in refusal(site, key.signed(msgspec.structs.replace(right, reservation=999_999)))


@pytest.mark.parametrize(("end", "how"), [("settle", "settled"), ("release", "given back")])
def test_a_ticket_ends_with_its_reservation(site, driver, end, how):
    made = reserve(driver)
    ticket = ticket_of(driver, made)
    with task(site, ticket) as connection:
        assert rows(connection, made.number, 1) == [b"Q 0"]
        getattr(made, end)()
        assert how in read_refusal(connection, made.number)
    assert any(why in refusal(site, ticket) for why in (how, "never was, or ended"))


def test_a_ticket_ends_with_its_time(served, site, driver):
    made = reserve(driver)
    key = own_key(site)
    right = key.read(ticket_of(driver, made))
    over = msgspec.structs.replace(right, until_ms=right.until_ms - LIFETIME_MS - 5000)
    assert "its time is over since" in refusal(site, key.signed(over))
    # One that ends while its connection is open reads no more from then on.
    soon = msgspec.structs.replace(right, until_ms=right.until_ms - LIFETIME_MS + 3000)
    with task(site, key.signed(soon)) as connection:
        assert rows(connection, made.number, 1) == [b"Q 0"]
        with pytest.raises(trigmon.NotAuthorized) as refused:
            while True:
                rows(connection, made.number, 1)
    assert "its time is over" in refused.value.about


def test_an_altered_ticket_and_one_of_another_queue_manager_are_refused(served, site, driver):
    ticket = ticket_of(driver, reserve(driver))
    body, _, signature = ticket.partition(".")
    other = "B" if body[10] != "B" else "C"
    altered = [
        f"{body[:10]}{other}{body[11:]}.{signature}",
        f"{body}.{signature[:5]}{'B' if signature[5] != 'B' else 'C'}{signature[6:]}",
        own_key(site).signed(own_key(site).read(ticket)).replace(signature, signature[:-8]),
        TicketKey(b"x" * 32, "QM1").signed(own_key(site).read(ticket)),
        TicketKey(bytes.fromhex((site.directory / "ticket.key").read_text().strip()), "QM2").signed(
            own_key(site).read(ticket)
        ),
    ]
    for one in altered:
        assert "signature is not this queue manager's" in refusal(site, one)
    for nonsense in ("x", ".", "ü.ü", f"{body}.", "." + signature, "a" * 2000 + "." + signature):
        assert "ticket" in refusal(site, nonsense)
    assert len(served.events("a ticket was refused")) > 0


def test_a_ticket_allows_one_call_even_where_an_administrator_asked_for_it(served, site):
    with trigmon.connect(site.address("carol")) as qm:
        assert qm.administrator
        made = reserve(qm)
        with task(site, ticket_of(qm, made)) as connection:
            assert not connection.administrator
            with pytest.raises(trigmon.NotAuthorized) as refused:
                connection.call(Ping())
            assert "read_reserved alone, and not ping" in refused.value.about
            assert len(rows(connection, made.number)) == MESSAGES
    assert "carol" in {denial["user"] for denial in served.events("not authorized")}


def test_a_ticket_is_for_who_may_read_the_reservation(served, site, driver):
    made = reserve(driver)
    with trigmon.connect(site.address("bob")) as qm:
        with task(site, ticket_of(qm, made)) as connection:  # every user may get from the queue
            assert len(rows(connection, made.number)) == MESSAGES
        with served.connect() as root:
            root.ask(SetAuthority(name="queue Q user alice", add=["get"]), Values)
            with pytest.raises(trigmon.NotAuthorized):
                ticket_of(qm, made)
            ticket_of(driver, made)
            root.call(Delete(object_type="AUTHREC", name="queue Q user alice"))
        with pytest.raises(trigmon.UnknownObjectName):
            driver.ask(IssueTicket(reservation=999_999), TicketIssued)


def test_without_a_tls_listener_there_are_no_tickets(daemon):
    one = daemon()
    with one.connect() as qm:
        define(qm, "Q")
        qm.put("Q", b"x")
        made = reserve(qm)
        with pytest.raises(trigmon.FunctionNotSupported) as refused:
            ticket_of(qm, made)
    assert "tls.listen" in refused.value.about


def test_a_reader_by_ticket_does_not_stand_behind_the_reservation(site, driver):
    made = reserve(driver)
    with task(site, ticket_of(driver, made)) as connection:
        rows(connection, made.number)
        (row,) = driver.reservations("Q")
        assert (row["held"], row["readers"]) == (True, 0)
        shown = driver.ask(DisplayConnections(), Listing).rows
        assert {row["ticket"] for row in shown if row["application"] == "task"} == {made.number}
        assert {row["ticket"] for row in shown if row["application"] != "task"} == {0}


def test_a_task_goes_on_by_its_ticket_behind_a_crash_and_a_restart(served, site, driver):
    made = reserve(driver)
    with task(site, ticket_of(driver, made), reconnect_s=60) as connection:
        assert len(rows(connection, made.number, 10)) == 10
        served.kill()
        served.start()
        assert rows(connection, made.number) == [b"Q %d" % n for n in range(MESSAGES)]
        served.stop()
        served.start()
        assert len(rows(connection, made.number)) == MESSAGES


def test_a_task_goes_on_where_another_machine_takes_over_that_has_the_same_key(daemon, tmp_path):
    site = Site(tmp_path / "tls")
    first = daemon(settings=site.settings)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    second = daemon(settings=site.settings | {"tls.listen": f"127.0.0.1:{port}"}, start=False)
    with first.connect() as qm:
        define(qm, "Q", def_persistence="persistent")
        qm.put_many("Q", [b"%d" % n for n in range(MESSAGES)])
        made = reserve(qm)
        ticket = ticket_of(qm, made)
    where = [f"tls://localhost:{one}/QM1" for one in (site.port, port)]
    with task(site, ticket, reconnect_s=60, where=where) as connection:
        assert rows(connection, made.number, 1) == [b"0"]
        first.kill()
        shutil.copytree(first.data, second.data)  # as a disk that both reach, or a database
        second.start()
        assert rows(connection, made.number) == [b"%d" % n for n in range(MESSAGES)]


def test_a_new_key_ends_all_tickets_without_a_restart(served, site, driver):
    made = reserve(driver)
    ticket = ticket_of(driver, made)
    (site.directory / "ticket.key").write_text("ab" * 32)
    served.wait_for_event("the files of TLS were read anew")
    assert "signature is not this queue manager's" in refusal(site, ticket)
    with task(site, ticket_of(driver, made)) as connection:
        assert len(rows(connection, made.number)) == MESSAGES


@pytest.mark.parametrize("content", ["short", "ab" * 10, ""])
def test_a_key_that_is_none_is_refused_with_its_name(tmp_path, content):
    path = tmp_path / "ticket.key"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(TlsFileError, match=r"ticket\.key"):
        ticket_key(path, "QM1")


def test_a_key_that_others_may_read_ends_the_start_and_one_that_is_made_is_its_owner_s_alone(daemon, tmp_path):
    site = Site(tmp_path / "tls")
    path = site.directory / "ticket.key"
    ticket_key(path, "QM1")
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    one = daemon(settings=site.settings, start=False).launch()
    assert one.wait() == 2
    assert "others may read this key" in one.events("the queue manager cannot start")[0]["why"]


def test_connections_by_tickets_have_half_of_their_user_s_share(site, driver):
    made = reserve(driver)
    ticket = ticket_of(driver, made)
    with ExitStack() as held:
        for _ in range(4):
            held.enter_context(task(site, ticket))
        with pytest.raises(trigmon.MaxConnsLimitReached, match="the tasks by tickets of alice may have 4 connections"):
            held.enter_context(task(site, ticket))
        with trigmon.connect(site.address("alice")) as again:
            again.call(Ping())


def test_no_ticket_and_no_key_is_seen_in_logs_status_errors_and_arguments(served, site, driver):
    made = reserve(driver)
    ticket = ticket_of(driver, made)
    seen = [repr(driver.ask(IssueTicket(reservation=made.number), TicketIssued))]
    with task(site, ticket) as connection:
        rows(connection, made.number)
        with pytest.raises(trigmon.NotAuthorized) as refused:
            connection.call(Status())
        seen += [repr(connection), str(refused.value)]
        seen += [refusal(site, ticket[:-3] + "AA="), refusal(site, "x" + ticket)]
        made.settle()
        seen += [read_refusal(connection, made.number), refusal(site, ticket)]
    with served.connect() as qm:
        seen += [str(qm.ask(Status(), Values).values), str(qm.ask(DisplayConnections(), Listing).rows)]
    seen += [served.log.read_text(), served.trigmon("status").stdout, served.trigmon("config", "show").stdout]
    seen.append(Path(f"/proc/{served.process.pid}/cmdline").read_text())
    body, _, signature = ticket.partition(".")
    key = (site.directory / "ticket.key").read_text().strip()
    for text in seen:
        assert not any(secret in text for secret in (body[:40], signature[:20], key[:20]))


def test_an_older_client_s_hello_without_a_ticket_is_as_ever(served, site):
    with trigmon.connect(site.address("alice")) as qm:
        made = reserve(qm)
        assert isinstance(qm.call(ReadReserved(reservation=made.number)), WereReserved)
