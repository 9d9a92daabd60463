"""The command server of a real daemon: commands over its socket, kills, and what of it stands in the log."""

import contextlib
import os
import pwd

import pytest

from tests.command_server.commands import command, escape, integer, integers, read_reply, text
from tests.daemons import Daemon, define
from tests.strangers import as_nobody
from tests.waiting import until
from trigmon.mq.calls import Define, Display, Put
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import PutOption
from trigmon.mq.errors import MQError

COMMAND_QUEUE = "SYSTEM.ADMIN.COMMAND.QUEUE"


@pytest.fixture
def daemon(tmp_path):
    daemon = Daemon(tmp_path).start()
    yield daemon
    if daemon.process.poll() is None:
        daemon.kill()


def put(link, data, **fields):
    of = {"msg_type": 1, "format": "MQADMIN", "reply_to_q": "R", "persistence": 1} | fields
    return link.put(COMMAND_QUEUE, data, **of)


def test_a_command_over_the_socket_is_answered_at_once(daemon):
    with daemon.connect() as link:
        link.call(Define(object_type="QLOCAL", name="R"))
        put(link, command(11, text(2016, "NEW"), integer(20, 1)))
        put(link, command(13, text(2016, "NEW"), integers(1002, 15)))
        with link.open("R", "input_shared") as replies:
            first = read_reply(replies.get(wait_interval_ms=20_000).data)
            second = read_reply(replies.get(wait_interval_ms=20_000).data)
    assert (first.command, first.comp_code) == (11, 0)
    assert second.values == {2016: "NEW", 20: 1, 15: 5000}


def test_a_command_that_cannot_be_answered_stands_in_the_log(daemon):
    with daemon.connect() as link:
        put(link, b"anything", msg_type=8, reply_to_q="")
    dropped = daemon.wait_for_event("a command was dropped")
    assert (dropped["event_name"], dropped["why"]) == ("command_dropped", "message type 8 is no request")


def test_a_command_that_is_refused_stands_in_the_log_with_its_object_its_user_and_the_reason(daemon):
    user = pwd.getpwuid(os.geteuid()).pw_name
    sent = [
        command(12, text(2016, "NOT.THERE"), integer(20, 1)),
        escape("ALTER QLOCAL(NOT.HERE) MAXDEPTH(1)"),
        escape("DEFINE NONSENSE"),
        b"no PCF",
        command(25, text(3501, "*")),  # there are no channels, which is an answer
        command(13, text(2016, "R"), integers(1002, 15)),
    ]
    with daemon.connect() as link:
        link.call(Define(object_type="QLOCAL", name="R"))
        for data in sent:
            put(link, data)
        with link.open(COMMAND_QUEUE, "output", "set_all_context") as queue:
            descriptor = MessageDescriptor(msg_type=1, format="MQADMIN", reply_to_q="R", user_identifier="root")
            options = PutOption.SET_ALL_CONTEXT.value
            link.call(Put(handle=queue.handle, descriptor=descriptor, data=command(40), options=options))
        with link.open("R", "input_shared") as replies:
            for _ in range(len(sent) + 1):
                replies.get(wait_interval_ms=20_000)
    lines = until(lambda: lines if len(lines := daemon.events("a command was refused")) == 5 else None)
    assert {line["event_name"] for line in lines} == {"command_refused"}
    assert [(line["command"], line["object_name"], line["user"], line["reason"]) for line in lines] == [
        ("DELETE_Q", "NOT.THERE", user, 2085),
        ("ALTER QLOCAL", "NOT.HERE", user, 2085),
        ("ESCAPE", "", user, 3097),
        ("", "", user, 3016),
        ("PING_Q_MGR", "", "", 2035),
    ]
    assert "NOT.THERE" in lines[0]["why"]
    assert "NOT.HERE" in lines[1]["why"]
    assert {line["level"] for line in lines} == {"info"}


def test_a_daemon_that_is_killed_again_and_again_performs_each_command_and_answers_it_once(daemon):
    with daemon.connect() as link:
        link.call(Define(object_type="QLOCAL", name="R"))
    sent = []
    for turn in range(3):
        with contextlib.suppress(MQError, OSError), daemon.connect() as link:
            for at in range(12):
                name = f"KILLED.{turn}.{at}"
                put(link, command(11, text(2016, name), integer(20, 1)))
                sent.append(name)
        daemon.kill()
        daemon.start()
    with daemon.connect() as link, link.open("R", "input_shared") as replies:
        link.put(COMMAND_QUEUE, command(40), msg_type=1, format="MQADMIN", reply_to_q="R")
        answers = [read_reply(replies.get(wait_interval_ms=20_000).data) for _ in range(len(sent) + 1)]
        assert [each.comp_code for each in answers] == [0] * (len(sent) + 1)
        assert {row["name"] for row in link.call(Display(object_type="queue", name="KILLED.*")).rows} == set(sent)


def test_a_command_of_another_user_of_the_machine_has_the_rights_of_that_user(passable):
    one = passable(settings={"server.socket_mode": "0666"})
    with one.connect() as link:
        define(link, "R")

    def work():
        with one.connect() as link:
            put(link, command(11, text(2016, "MINE"), integer(20, 1)))
            put(link, command(13, text(2016, "R"), integers(1002, 15)))
            with link.open("R", "input_shared") as replies:
                return [replies.get(wait_interval_ms=20_000).data for _ in range(2)]

    refused, shown = map(read_reply, as_nobody(work))
    assert (refused.comp_code, refused.reason) == (2, 2035)
    assert shown.values[2016] == "R"
    (denial,) = one.events("not authorized")
    assert (denial["user"], denial["call"], denial["application"]) == ("nobody", "Define", "trigmon command server")
    assert one.events("a command was refused") == [], "the denial of its call says it"


@pytest.mark.parametrize("alter", [command(1, integer(13, 20_000_000)), escape("ALTER QMGR MAXMSGL(20000000)")])
def test_a_longer_message_is_let_in_once_a_command_has_allowed_it(daemon, alter):
    with daemon.connect() as link:
        link.call(Define(object_type="QLOCAL", name="R"))
        link.call(Define(object_type="QLOCAL", name="LONG", attributes={"max_msg_length": 20_000_000}))
        put(link, alter)
        with link.open("R", "input_shared") as replies:
            assert read_reply(replies.get(wait_interval_ms=20_000).data).comp_code == 0
    with daemon.connect() as link, link.open("LONG", "input_shared", "output") as long:
        long.put(b"y" * 10_000_000)
        assert len(long.get().data) == 10_000_000
