"""Parts of the run record that only some runs have: a queue elsewhere, a Spark job. See :mod:`trigmon.mq.run`."""

from __future__ import annotations

from typing import Any

import msgspec


class QueueThere(msgspec.Struct, frozen=True, gc=False):
    """How a queue of a queue manager elsewhere stood when the monitor looked."""

    trigger_type: str = ""  # every, first, depth or none, as in a local queue's TRIGTYPE
    depth: int = 0  # CURDEPTH
    readers: int = 0  # IPPROCS: how many handles were open for input
    first: str = ""  # MsgId of the first message, in hexadecimal digits; "" where there was none, or it was not seen
    backouts: int = 0  # how often that message was backed out
    uncommitted: int = 0  # how many of the depth are known not to be committed
    trigger_priority: int = 0  # TRIGMPRI: messages of lower priority do not count
    # The priority at which its messages count: the first one's, which no other exceeds, or DEFPRTY where the queue is
    # FIFO; -1 where that is not known.
    priority: int = -1
    # How many of the readers are handles of the run's own program; -1 where that was not asked, or cannot be known.
    own_readers: int = -1


class Bridged(msgspec.Struct, frozen=True, gc=False):
    """Where a run comes from whose trigger message was taken from a queue manager elsewhere."""

    bridge: str = ""  # the bridge in the settings; "" for a trigger message of this queue manager
    remote_q_mgr: str = ""  # the name of that queue manager
    remote_initiation_q: str = ""  # the initiation queue there
    remote_msg_id: str = ""  # MsgId of the trigger message, in hexadecimal digits: one run a MsgId
    # The queue manager: the user whose monitor recorded it, where that is no administrator; no other user starts it.
    bridged_by: str = ""
    remote_before: QueueThere | None = None  # the queue when the trigger message was taken; None where it was not seen
    remote_after: QueueThere | None = None  # the queue when the program had ended


class SparkJob(msgspec.Struct, frozen=True, gc=False):
    """What is known of a Spark job. Written as soon as its log, or its driver's web server, tells."""

    application_id: str = ""  # of the Spark application
    driver_id: str = ""  # of a driver that a cluster's master was asked for
    ui: str = ""  # the address of the driver's web server
    # How far it was when last seen, all of what Spark knew of by then: jobs, stages_done stages, tasks_done tasks
    # tasks_failed, rows_read rows_written.
    progress: dict[str, Any] | None = None
    application_ms: int = 0  # when the application began, by its driver's clock
    first_rows_ms: int = 0  # when the first of its tasks that read or wrote rows was launched
