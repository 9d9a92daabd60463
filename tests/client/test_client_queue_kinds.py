"""Queues of other kinds in the hands of an application: dynamic and remote ones, against a real queue manager."""

import time

import pytest

import trigmon
from tests.client.conftest import depth
from tests.daemons import define
from trigmon.mq.calls import Define


class TestDynamicQueues:
    def test_a_model_is_opened_as_a_queue_of_its_own_whose_name_others_may_use(self, qm, q_name, shared_daemon):
        qm.call(Define(object_type="QMODEL", name=f"{q_name}.MODEL"))
        with qm.open(f"{q_name}.MODEL", "input_shared", dynamic_q_name=f"{q_name}.*") as replies:
            assert replies.name == f"{q_name}.MODEL"
            assert replies.q_name.startswith(f"{q_name}.")
            assert len(replies.q_name) == len(q_name) + 17
            with shared_daemon.connect() as other:
                other.put(replies.q_name, b"answer")
                with pytest.raises(trigmon.PersistentNotAllowed):
                    other.put(replies.q_name, b"lasting", persistence="persistent")
            assert replies.get(wait_interval_ms=2000).data == b"answer"
        with pytest.raises(trigmon.UnknownObjectName):
            qm.put(replies.q_name, b"too late")

    def test_without_a_name_the_queue_manager_makes_one(self, qm, q_name):
        qm.call(Define(object_type="QMODEL", name=f"{q_name}.MODEL"))
        with qm.open(f"{q_name}.MODEL", "output") as made:
            assert made.q_name.startswith("AMQ.")
        with pytest.raises(trigmon.DynamicQNameError):
            qm.open(f"{q_name}.MODEL", "output", dynamic_q_name="A*B")

    def test_a_permanent_one_stays_until_it_is_deleted_by_its_close(self, qm, q_name):
        permanent = {"definition_type": "permanent_dynamic"}
        qm.call(Define(object_type="QMODEL", name=f"{q_name}.MODEL", attributes=permanent))
        made = qm.open(f"{q_name}.MODEL", "output", "input_shared", dynamic_q_name=f"{q_name}.KEPT")
        made.put(b"one")
        made.close()
        again = qm.open(f"{q_name}.KEPT", "input_shared", "inquire")
        assert again.inquire("definition_type") == permanent
        with pytest.raises(trigmon.QNotEmpty):
            again.close(delete=True)
        assert again.get(syncpoint=True).data == b"one"
        qm.backout()
        again.close(purge=True)
        with pytest.raises(trigmon.UnknownObjectName):
            qm.put(f"{q_name}.KEPT", b"too late")
        empty = qm.open(f"{q_name}.MODEL", "output", dynamic_q_name=f"{q_name}.EMPTY")
        empty.close(delete=True)
        with pytest.raises(trigmon.UnknownObjectName):
            qm.put(f"{q_name}.EMPTY", b"too late")

    def test_a_predefined_queue_is_not_deleted_by_its_close(self, queue):
        with pytest.raises(trigmon.OptionNotValidForType):
            queue.close(delete=True)
        assert depth(queue) == 0

    def test_it_ends_with_a_broken_link(self, qm, q_name, shared_daemon):
        qm.call(Define(object_type="QMODEL", name=f"{q_name}.MODEL"))
        other = shared_daemon.connect()
        made = other.open(f"{q_name}.MODEL", "input_shared", dynamic_q_name=f"{q_name}.LOST")
        mine = qm.open(made.q_name, "output")
        other.drop()
        deadline = time.monotonic() + 10
        with pytest.raises(trigmon.QDeleted):
            while time.monotonic() < deadline:
                mine.put(b"m")
        mine.close()
        with pytest.raises(trigmon.UnknownObjectName):
            qm.put(made.q_name, b"m")


def test_a_remote_queue_is_put_to_by_its_name_and_lies_on_its_transmission_queue(qm, q_name):
    define(qm, f"{q_name}.XMITQ", usage="transmission")
    to = {"remote_q_name": "ORDERS", "remote_q_mgr_name": "QM9", "xmit_q_name": f"{q_name}.XMITQ"}
    qm.call(Define(object_type="QREMOTE", name=f"{q_name}.R", attributes=to))
    receipt = qm.put(f"{q_name}.R", "hello", expiry_tenths=600)
    with qm.open(f"{q_name}.R", "output") as remote:
        assert remote.q_name == f"{q_name}.XMITQ"
        remote.put_many(["one", "two"])
    with qm.open(f"{q_name}.XMITQ", "input_shared") as waiting:
        message = waiting.get()
        assert (message.format, message.correl_id, message.data_length) == ("MQXMIT", receipt.msg_id, 433)
        assert (message.data[:4], message.data[8:56].rstrip(), message.data[428:]) == (b"XQH ", b"ORDERS", b"hello")
        assert [m.data[428:] for m in waiting.drain()] == [b"one", b"two"]
    with pytest.raises(trigmon.OptionNotValidForType):
        qm.open(f"{q_name}.R", "input_shared")
