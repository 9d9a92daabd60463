"""librdkafka's simulated broker, on a real socket of this process, and the errors that it is told to answer with.

The package has no call for those, so they go by librdkafka's own (rdkafka_mock.h).
"""

from __future__ import annotations

import ctypes
import sysconfig
from pathlib import Path

from confluent_kafka import Producer

PRODUCE, ADD_PARTITIONS, END_TRANSACTION = 0, 24, 26
"""Numbers of requests in Kafka's protocol."""
_HEAD = 16
"""Bytes before an object's own in CPython; the client's handle is the first of these."""


def librdkafka():
    """Returns the library that a wheel of Linux brings, None where the package was not installed from one."""
    return next(Path(sysconfig.get_path("platlib")).glob("confluent_kafka.libs/librdkafka-*.so*"), None)


class SimulatedBroker:
    def __init__(self, *topics):
        self._client = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "none", "log_level": 0})
        for topic in topics:
            self._client.list_topics(topic, 10)  # makes it, of four partitions
        (node,) = self._client.list_topics(timeout=10).brokers.values()
        self.options = {"bootstrap.servers": f"{node.host}:{node.port}", "log_level": "0"}

    def make(self, topic):
        self._client.list_topics(topic, 10)

    def answer_next(self, request, code):
        """Has the next request of that number answered by an error of Kafka's protocol."""
        library = ctypes.CDLL(str(librdkafka()))
        library.rd_kafka_handle_mock_cluster.restype = ctypes.c_void_p
        library.rd_kafka_handle_mock_cluster.argtypes = [ctypes.c_void_p]
        push = library.rd_kafka_mock_push_request_errors_array
        push.argtypes = [ctypes.c_void_p, ctypes.c_int16, ctypes.c_size_t, ctypes.c_void_p]
        handle = ctypes.c_void_p.from_address(id(self._client) + _HEAD).value
        push(library.rd_kafka_handle_mock_cluster(handle), request, 1, (ctypes.c_int * 1)(code))
