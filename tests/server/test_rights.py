"""What a right is needed for beside coming in: MQSET, and ending what another has reserved."""

import socket

import pytest

import trigmon
from tests.daemons import define
from tests.strangers import as_user
from trigmon.mq.calls import Close, Open, Put, PutMany, ReadReserved, Reject, Reserve, Set, Settle
from trigmon.mq.enums import CloseOption, OpenOption
from trigmon.mq.replies import Opened, Reserved, Settled, WereReserved

ALICE, BOB = 5001, 5002
INITIATION = "SYSTEM.DEFAULT.INITIATION.QUEUE"
OUT, SET = int(OpenOption.OUTPUT), int(OpenOption.SET)


@pytest.fixture
def free_address():
    """A TCP address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        host, port = free.getsockname()
    return f"{host}:{port}"


def set_trigger_data(one, q_name, address=None):
    """Sets TRIGDATA as a program does; returns the text of a refusal, else ""."""
    with trigmon.connect(address or one.address) as qm:
        try:
            handle = qm.ask(Open(object_name=q_name, options=SET), Opened).handle
            qm.call(Set(handle=handle, attributes={"trigger_data": "x"}))
        except trigmon.NotAuthorized as error:
            return error.about
    return ""


def test_mqset_is_for_administrators_and_for_those_the_settings_name(passable):
    one = passable(settings={"server.socket_mode": "0666", "server.setters": str(ALICE)})
    with one.connect() as qm:
        define(qm, "Q")
    assert set_trigger_data(one, "Q") == ""
    assert set_trigger_data(one, INITIATION) == ""
    assert as_user(ALICE, lambda: set_trigger_data(one, "Q")) == ""
    assert "SYSTEM" in as_user(ALICE, lambda: set_trigger_data(one, INITIATION))
    refused = as_user(BOB, lambda: set_trigger_data(one, "Q"))
    assert "the right set on queue Q" in refused
    assert "server.setters" in refused
    assert as_user(BOB, lambda: set_trigger_data(one, INITIATION))
    calls = [denial["call"] for denial in one.events("not authorized")]
    assert calls == ["Open"] * 3  # refused where MQ refuses: by the MQOPEN


def test_nobody_is_given_mqset_by_default_and_nobody_over_tcp(passable, free_address):
    one = passable(settings={"server.socket_mode": "0666", "server.tcp": free_address})
    with one.connect() as qm:
        define(qm, "Q")
    assert as_user(BOB, lambda: set_trigger_data(one, "Q"))
    assert "plain TCP" in set_trigger_data(one, "Q", f"tcp://{free_address}")  # root, who cannot prove it there


def test_an_alias_of_a_system_queue_opens_no_way_to_set_that(passable):
    one = passable(settings={"server.socket_mode": "0666", "server.setters": str(ALICE)})
    with one.connect() as qm:
        define(qm, "INITIATION.ALIAS", "QALIAS", base_q_name=INITIATION)

    def work():
        with one.connect() as qm:
            both = SET | int(OpenOption.BROWSE)
            handle = qm.ask(Open(object_name="INITIATION.ALIAS", options=both), Opened).handle
            qm.call(Set(handle=handle, attributes={"inhibit_get": "inhibited"}))

    as_user(ALICE, work)  # the alias itself
    with one.connect() as qm, qm.open(INITIATION, "inquire") as q:
        assert q.inquire("inhibit_get")["inhibit_get"] == "allowed"


def test_a_setter_that_this_machine_does_not_have_is_refused_at_the_start(daemon):
    one = daemon(start=False, settings={"server.setters": "nosuch.user"})
    assert one.launch().wait() == 2
    why = one.events("the queue manager cannot start")[0]["why"]
    assert why == "server.setters: there is no user 'nosuch.user' on this machine"


def ended(one, call):
    """The reason a call of another connection is refused for; 0 where it is not."""
    with one.connect() as qm:
        try:
            qm.ask(call, Settled)
        except trigmon.MQError as error:
            return int(error.reason)
    return 0


def reserved(qm):
    """The number of a reservation of all that is on Q."""
    call = Reserve(handle=qm.open("Q", "input_shared").handle, consumer="JOB", max_messages=9, max_bytes=9999)
    return qm.ask(call, Reserved).reservation


def test_what_one_user_reserved_another_neither_settles_nor_rejects(passable):
    one = passable(settings={"server.socket_mode": "0666"})
    with one.connect() as qm:
        define(qm, "Q")
        qm.call(PutMany(q_name="Q", bodies=[b"%d" % number for number in range(4)]))

    def job():
        with one.connect() as qm:
            number = reserved(qm)
            with one.connect() as another:  # as a stream's driver that came again, or a task
                assert len(another.ask(ReadReserved(reservation=number, count=4), WereReserved).messages) == 4
            return number, ended(one, Settle(reservation=number, count=1))

    number, reported = as_user(ALICE, job)
    assert reported == 0
    others = [Settle(reservation=number), Reject(reservation=number, ordinal=1), Settle(reservation=number, count=1)]
    assert [as_user(BOB, lambda call=call: ended(one, call)) for call in others] == [2035, 2035, 2035]
    with one.connect() as qm:
        assert [row["left"] for row in qm.reservations("Q")] == [3]
    assert ended(one, Settle(reservation=number, ordinal=1, count=1)) == 0  # root
    (denial, *_) = one.events("not authorized")
    assert (denial["call"], denial["uid"]) == ("Settle", BOB)


def test_while_the_holder_lives_another_user_settles_nothing_of_it(passable):
    one = passable(settings={"server.socket_mode": "0666"})
    with one.connect() as qm:
        define(qm, "Q")
        qm.call(Put(q_name="Q", data=b"0"))
        number = reserved(qm)
        assert as_user(BOB, lambda: ended(one, Settle(reservation=number))) == 2035
        assert qm.settle(number)


def test_a_consumer_name_belongs_to_each_user_separately_so_nobody_blocks_it_for_another(passable):
    one = passable(settings={"server.socket_mode": "0666"})
    with one.connect() as qm:
        define(qm, "Q")
        qm.call(PutMany(q_name="Q", bodies=[b"0", b"1", b"2"]))

    def one_message():
        with one.connect() as qm:
            call = Reserve(handle=qm.open("Q", "input_shared").handle, consumer="JOB", max_messages=1)
            return qm.ask(call, Reserved).reservation

    numbers = [as_user(user, one_message) for user in (BOB, ALICE)] + [one_message()]
    assert len({*numbers}) == 3
    assert [as_user(user, one_message) for user in (BOB, ALICE)] + [one_message()] == numbers

    def own():
        with one.connect() as qm:
            return [row["reservation"] for row in qm.reservations("Q") if row["own"]]

    assert [as_user(user, own) for user in (BOB, ALICE)] + [own()] == [[number] for number in numbers]
    one.stop()
    one.start()
    assert [as_user(user, one_message) for user in (BOB, ALICE)] + [one_message()] == numbers
    assert as_user(ALICE, lambda: ended(one, Settle(reservation=numbers[1]))) == 0
    assert as_user(BOB, one_message) == numbers[0]


def test_what_another_user_left_is_not_taken_by_its_consumers_name_nor_kept_from_being_waited_for(passable):
    one = passable(settings={"server.socket_mode": "0666"})
    with one.connect() as qm:
        define(qm, "Q")
        qm.call(Put(q_name="Q", data=b"0"))

    def reserved_or_why():
        with one.connect() as qm:
            try:
                return reserved(qm)
            except trigmon.NoMsgAvailable as error:
                return error.about

    def depth():
        with one.connect() as qm, qm.open("Q", "inquire") as q:
            return q.inquire("current_q_depth")["current_q_depth"]

    number = as_user(ALICE, reserved_or_why)
    assert as_user(BOB, reserved_or_why) == "JOB"  # nothing is left for a batch of BOB's own

    def look():
        with one.connect() as qm:
            qm.call(ReadReserved(reservation=number))
            return depth()

    assert as_user(BOB, look) == 1  # it waits, as far as triggering goes
    assert as_user(ALICE, look) == 0
    assert as_user(ALICE, reserved_or_why) == number


def test_a_dynamic_queue_is_deleted_by_a_close_of_the_user_who_made_it_or_of_an_administrator(passable):
    one = passable(settings={"server.socket_mode": "0666"})
    with one.connect() as qm:
        define(qm, "M", "QMODEL", definition_type="permanent_dynamic")

    def make():
        with one.connect() as qm:
            return [qm.ask(Open(object_name="M", options=OUT), Opened).q_name for _ in range(3)]

    def delete(name):
        with one.connect() as qm:
            handle = qm.ask(Open(object_name=name, options=OUT), Opened).handle
            try:
                qm.call(Close(handle=handle, options=int(CloseOption.DELETE)))
            except trigmon.NotAuthorized as error:
                return error.about
        return ""

    first, second, third = as_user(ALICE, make)
    assert f"{first} was made by {ALICE}" in as_user(BOB, lambda: delete(first))
    assert as_user(ALICE, lambda: delete(second)) == ""
    assert delete(third) == ""
