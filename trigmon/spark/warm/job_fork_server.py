"""The fork server: a Python with everything imported that a Spark Connect job needs, which becomes jobs by forking.

``python -m trigmon.spark.warm.job_fork_server`` with a stream socket of the keeper's as its standard input. It says
``{"ready": true}`` when its imports are done. For each job it is sent one byte with four descriptors: a file with the
order (JSON: ``argv``, whose first word is the script, ``environment``, ``working_directory``, and ``mark``, a file that
it makes when it begins), its stdout, its stderr,
and a pipe; it answers ``{"pid": N}`` or ``{"error": TEXT}``. The new process belongs to the keeper, which is a
subreaper: it is forked twice, and the process between has ended when the answer is sent. It does nothing before it
reads a byte from its pipe, which the keeper writes when it has written down which process the run is; the pipe's end
without one ends it, so that nothing runs that nobody knows of.

It opens no channel, for gRPC does not survive a fork with one, and keeps nothing of an order. Its end is that of its
socket.
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
    "grpc",
    "grpc._channel",  # what grpc imports with the first channel; it makes none
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
    "trigmon.spark",
)


class Job(NamedTuple):
    """What a new process is to be, as descriptors: the order's file, stdout, stderr, and the pipe it waits for."""

    order: int
    out: int
    err: int
    go: int


def warm_up() -> None:
    """Imports what jobs import, and has the garbage collector leave it alone: its pages stay shared."""
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
    """Forks twice: 0 in the grandchild, which leads its session, and its process id here. Raises OSError."""
    told, tells = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # numpy's own threads wait for work; its library forks well
        between = os.fork()
        if between == 0:
            os.close(told)
            try:
                if os.fork():
                    os._exit(0)
                os.setsid()
                os.write(tells, str(os.getpid()).encode())
                os.close(tells)
            except OSError:
                os._exit(1)
            return 0
    os.close(tells)
    os.waitpid(between, 0)
    with os.fdopen(told, "rb") as file:
        said = file.read()
    if not said:
        raise OSError("it could not fork")
    return int(said)


def become(job: Job) -> list[str]:
    """The new process leaves the server behind and waits until it may begin; the words it is to run."""
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
    _be_another()
    os.chdir(order["working_directory"])
    return list(order["argv"])


def _be_another() -> None:
    """What the server drew by chance once, each process draws anew; the module random does so itself."""
    import numpy

    numpy.random.seed()


def main() -> int:
    """The server, and in each forked process its job; the exit status."""
    link = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
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
