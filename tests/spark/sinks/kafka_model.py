"""Kafka's transactions as its specification has them (KIP-98), behind the calls that the sink makes of its package.

librdkafka's simulated broker keeps to the protocol, but lets a replaced producer commit and shows readers what was
aborted. Here ``init_transactions`` aborts what the id has open, and fences its producers. Readers of what is committed
see nothing of an aborted transaction, and nothing behind an open one.

``cluster.hook(name)`` is called before each call, and by ``"committed"`` behind a commit, before its answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NamedTuple

import confluent_kafka
import confluent_kafka.admin
from confluent_kafka import KafkaError, KafkaException, TopicPartition

OPEN, COMMITTED, ABORTED = "open", "committed", "aborted"


@dataclass(eq=False)
class Transaction:
    state: str = OPEN


@dataclass
class Id:
    """A ``transactional.id``: how often it was taken, and its last transaction."""

    epoch: int = 0
    transaction: Transaction = field(default_factory=lambda: Transaction(ABORTED))


class Sent(NamedTuple):
    transaction: Transaction
    key: bytes | None
    value: bytes | None
    headers: Any


class Cluster:
    """Topics and transactional ids. ``library`` stands for the package."""

    def __init__(self, *topics):
        self.topics: dict[str, dict[int, list[Sent]]] = {topic: {} for topic in topics}
        self.ids: dict[str, Id] = {}
        self.hook = lambda name: None
        self.largest, self.policy = 1000, "compact"
        admin = SimpleNamespace(
            list_topics=lambda timeout: SimpleNamespace(topics=self.topics),
            create_topics=self._made,
            list_offsets=self._ends,
            describe_configs=self._configurations,
        )
        of_admin = vars(confluent_kafka.admin) | {"AdminClient": lambda _, logger: admin}
        producer, consumer = (lambda options, logger, of=of: of(self, options) for of in (Producer, Consumer))
        self.library = SimpleNamespace(
            **vars(confluent_kafka) | {"admin": SimpleNamespace(**of_admin), "Producer": producer, "Consumer": consumer}
        )

    def committed(self, topic):
        """Returns the messages that a reader of committed ones comes to see, when no transaction is open any more."""
        parts = self.topics[topic].values()
        return [sent for sent_to in parts for sent in sent_to if sent.transaction.state == COMMITTED]

    def _made(self, new, request_timeout):
        (topic,) = new
        assert (topic.num_partitions, topic.config["cleanup.policy"]) == (1, "compact")
        self.topics[topic.topic] = {}
        return {topic: _answer(None)}

    def _ends(self, asked, isolation_level, request_timeout):
        self.hook("list_offsets")
        assert isolation_level == confluent_kafka.IsolationLevel.READ_UNCOMMITTED
        (partition,) = asked
        end = len(self.topics[partition.topic].get(partition.partition, ()))
        return {partition: _answer(SimpleNamespace(offset=end))}

    def _configurations(self, asked, request_timeout):
        return {asked[0]: _answer({"cleanup.policy": SimpleNamespace(value=self.policy)})}


def _answer(result):
    return SimpleNamespace(result=lambda: result, exception=lambda: None)


class Producer:
    def __init__(self, cluster, options):
        self._cluster, self._id = cluster, cluster.ids.setdefault(options["transactional.id"], Id())
        self._epoch = -1
        self._refused = []

    def init_transactions(self, _):
        self._cluster.hook("init_transactions")
        if self._id.transaction.state == OPEN:
            self._id.transaction.state = ABORTED
        self._id.epoch += 1
        self._epoch = self._id.epoch

    def begin_transaction(self):
        self._cluster.hook("begin_transaction")
        self._check()
        self._id.transaction = Transaction()

    def produce(self, topic, value, key, headers, partition, on_delivery):
        self._cluster.hook("produce")
        if self._epoch != self._id.epoch:  # only a call to begin or to commit has the reason
            raise KafkaException(KafkaError(KafkaError._FATAL, "Local: Fatal error"))
        if value is not None and len(value) > self._cluster.largest:
            self._refused.append(on_delivery)  # the broker finds it
        sent_to = self._cluster.topics[topic].setdefault(max(partition, 0), [])
        sent_to.append(Sent(self._id.transaction, key, value, headers))

    def commit_transaction(self, _):
        self._cluster.hook("commit_transaction")
        self._check()
        for tell in self._refused:
            tell(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE, "message too large"), None)
        if self._refused:
            raise KafkaException(KafkaError(KafkaError._INCONSISTENT, "messages failed"))
        self._id.transaction.state = COMMITTED
        self._cluster.hook("committed")

    def abort_transaction(self, _):
        self._cluster.hook("abort_transaction")
        self._check()
        if self._id.transaction.state == OPEN:
            self._id.transaction.state = ABORTED

    def _check(self):
        if self._epoch != self._id.epoch:
            raise KafkaException(KafkaError(KafkaError._FENCED, "there is a newer producer with this id", True))


class Consumer:
    """A reader of committed messages. At the end, or before an open transaction, it says that here is the end."""

    def __init__(self, cluster, options):
        assert options["isolation.level"] == "read_committed"
        self._cluster = cluster

    def assign(self, partitions):
        (partition,) = partitions
        assert isinstance(partition, TopicPartition)
        self._sent = self._cluster.topics[partition.topic].setdefault(partition.partition, [])
        self._at = self._ends = 0

    def poll(self, _):
        self._cluster.hook("poll")
        while self._at < len(self._sent) and self._sent[self._at].transaction.state == ABORTED:
            self._at += 1
        if self._at == len(self._sent) or self._sent[self._at].transaction.state == OPEN:
            end = KafkaError(KafkaError._PARTITION_EOF)
            self._ends += 1
            assert self._ends < 10_000, "a reader waits for a transaction that nobody ends"
            return SimpleNamespace(error=lambda: end, offset=lambda: self._at)
        sent = self._sent[self._at]
        self._at += 1
        return SimpleNamespace(error=lambda: None, key=lambda: sent.key, value=lambda: sent.value)

    def close(self):
        pass
