"""The fork server: a Python process that has imported all that a Spark Connect job needs, and forks a process a job.

``python -m trigmon.spark.warm.job_fork_server N``, where N is the descriptor of a stream socket of the keeper. It sends
``{"ready": true}`` when its imports are done. For each job the keeper sends one byte with four descriptors: a file with
the order (JSON: ``argv``, whose first word is the script, ``environment``, ``working_directory``, and ``mark``, a file
that the job's process makes when it begins), stdout, stderr, and a pipe. The answer is ``{"pid": N}`` or
``{"error": TEXT}``. The new process becomes a child of the keeper, which is a subreaper: it is forked twice, and the
process between has ended when the answer is sent. It waits for a byte from its pipe, which the keeper writes when it
has recorded the process of the run. The end of the pipe without a byte ends the process, so that no process runs
without a record.

The fork server opens no channel, since gRPC does not survive a fork with one, and keeps nothing of an order. It ends
when its socket closes.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import socket
import sys
import time
import traceback
import warnings
from typing import NamedTuple

from trigmon.spark.warm import job_process

DESCRIPTORS = 4
_IMPORTED = (
    "pandas",
    "pyarrow",
    "pyarrow.parquet",
    "grpc",
    "grpc._channel",  # imported by grpc with the first channel; importing it opens none
    "pyspark.core.context",
    "pyspark.sql",
    "pyspark.sql.connect.session",
    "pyspark.sql.connect.dataframe",
    "pyspark.sql.connect.functions",
    "pyspark.sql.connect.readwriter",
    "pyspark.sql.connect.streaming",
    "pyspark.sql.connect.udf",
    "pyspark.sql.functions",
    "pyspark.sql.types",
    "trigmon.client.reconnectable",
    "trigmon.spark",
)


class Job(NamedTuple):
    """The descriptors of a job: the order's file, stdout, stderr, and the pipe it waits for."""

    order: int
    out: int
    err: int
    go: int


def warm_up() -> None:
    """Imports what jobs import, and excludes it from garbage collection: so its memory pages stay shared."""
    for name in _IMPORTED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()


def serve(link: socket.socket) -> Job | None:
    """Forks for each order. Returns the job in each new process, and None in the server when the keeper has gone."""
    while True:
        _, descriptors, _, _ = socket.recv_fds(link, 1, DESCRIPTORS)
        if len(descriptors) != DESCRIPTORS:
            return None
        job = Job(*descriptors)
        try:
            pid = _forked()
        except OSError as error:
            answer: dict[str, object] = {"error": str(error)}
        else:
            if pid == 0:
                link.close()
                return job
            answer = {"pid": pid}
        for descriptor in descriptors:
            os.close(descriptor)
        link.sendall(json.dumps(answer).encode() + b"\n")


def _forked() -> int:
    """Forks twice. Returns 0 in the grandchild, which leads its session, and its process id here. Raises OSError."""
    read_end, write_end = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # numpy's own threads wait for work; its library forks well
        between = os.fork()
        if between == 0:
            os.close(read_end)
            try:
                if os.fork():
                    os._exit(0)
                os.setsid()
                os.write(write_end, str(os.getpid()).encode())
                os.close(write_end)
            except OSError:
                os._exit(1)
            return 0
    os.close(write_end)
    os.waitpid(between, 0)
    with os.fdopen(read_end, "rb") as file:
        text = file.read()
    if not text:
        raise OSError("it could not fork")
    return int(text)


def become(job: Job) -> list[str]:
    """Turns the new process into the job's: waits for the go, sets descriptors and environment. Returns its words."""
    os.dup2(job.out, 1)
    os.dup2(job.err, 2)
    if not os.read(job.go, 1):
        os._exit(127)
    with os.fdopen(job.order, "rb") as file:
        order = json.loads(file.read())
    os.close(os.open(order["mark"], os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    for descriptor in (job.out, job.err, job.go):
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(order["environment"])
    time.tzset()
    sys.path[1:1] = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if os.environ.get("PYTHONUNBUFFERED"):
        sys.stdout.reconfigure(write_through=True)  # type: ignore[union-attr]
    _reseed()
    os.chdir(order["working_directory"])
    return list(order["argv"])


def _reseed() -> None:
    """Seeds numpy's random numbers anew, so that no two jobs have the same; the module random does so itself."""
    import numpy

    numpy.random.seed()


def main() -> int:
    """Runs the server, and in each forked process its job. Returns the exit status."""
    link = socket.socket(fileno=int(sys.argv[1]))
    link.set_inheritable(False)
    warm_up()
    link.sendall(b'{"ready": true}\n')
    job = serve(link)
    if job is None:
        return 0
    try:
        argv = become(job)
    except Exception:
        traceback.print_exc()
        return 127
    return job_process.run(argv)


if __name__ == "__main__":
    sys.exit(main())
