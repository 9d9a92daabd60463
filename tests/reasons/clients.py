"""Stories of the client library, on a queue manager that runs: what it refuses before anything is sent."""

from __future__ import annotations

import threading

import trigmon
from tests.daemons import Daemon, define
from tests.reasons.stories import Stories
from trigmon.mq.descriptors import unpack_tm, unpack_tmc2
from trigmon.mq.errors import MQError
from trigmon.mq.reasons import Reason

STORIES = Stories()
Q = "SYSTEM.DEFAULT.LOCAL.QUEUE"


@STORIES.of(Reason.HCONN_ERROR)
def a_connection_is_used_that_has_ended(running: Daemon) -> None:
    qm = running.connect()
    qm.disconnect()
    qm.commit()


@STORIES.of(Reason.CALL_IN_PROGRESS)
def a_connection_is_used_by_two_threads(running: Daemon) -> None:
    raised: list[MQError] = []

    def use() -> None:
        try:
            qm.commit()
        except MQError as error:
            raised.append(error)

    with running.connect() as qm:
        other = threading.Thread(target=use)
        other.start()
        other.join()
    (error,) = raised
    raise error


@STORIES.of(Reason.Q_MGR_NAME_ERROR)
def a_queue_manager_has_a_name_that_none_can_have(running: Daemon) -> None:
    trigmon.connect("no name!")


@STORIES.of(Reason.FUNCTION_NOT_SUPPORTED)
def a_word_is_said_that_comes_with_a_later_release(running: Daemon) -> None:
    with running.connect() as qm:
        qm.open(Q, "output", "bind_on_open")


def _put(running: Daemon, **fields: object) -> None:
    with running.connect() as qm:
        qm.put(Q, b"m", **fields)


@STORIES.of(Reason.FORMAT_ERROR)
def a_format_is_no_text(running: Daemon) -> None:
    _put(running, format=5)


@STORIES.of(Reason.MSG_ID_ERROR)
def a_message_id_is_too_long(running: Daemon) -> None:
    _put(running, msg_id=b"x" * 25)


@STORIES.of(Reason.CORREL_ID_ERROR)
def a_correlation_id_is_too_long(running: Daemon) -> None:
    _put(running, correl_id=b"x" * 25)


@STORIES.of(Reason.GROUP_ID_ERROR)
def a_group_id_is_too_long(running: Daemon) -> None:
    _put(running, group_id=b"x" * 25)


@STORIES.of(Reason.TM_ERROR)
def what_lies_on_an_initiation_queue_is_no_trigger_message(running: Daemon) -> None:
    with running.connect() as qm:
        define(qm, "INIT")
        qm.put("INIT", b"not one", format="MQTRIG")
        with qm.open("INIT", "input_shared") as queue:
            unpack_tm(queue.get().data)


@STORIES.of(Reason.TMC_ERROR)
def a_program_is_given_words_that_are_no_trigger_message(running: Daemon) -> None:
    unpack_tmc2("TM  ")


@STORIES.of(Reason.SSL_INITIALIZATION_ERROR)
def an_address_names_an_authority_that_is_not_there(running: Daemon) -> None:
    trigmon.connect(f"tls://localhost:1414/QM1?authority={running.data / 'missing.pem'}")
