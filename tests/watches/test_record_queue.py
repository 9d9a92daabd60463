"""What is taken for a record of a file, and what is not."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import until
from tests.watches.watched_queue import WatchedQueue
from trigmon.mq.names import RECORD_QUEUE
from trigmon.watches.watched import FileRecord, encode


@pytest.fixture
def watched(daemon, tmp_path):
    return WatchedQueue(daemon(settings={"server.watches": "false"}), tmp_path / "in")


def forged(watched, secret):
    return FileRecord(
        watch="W",
        q_name="Q",
        content="body",
        directory=str(secret.parent),
        name=os.fsencode(secret.name),
        done=str(watched.directory),
        done_name=b"stolen",
        inode=secret.stat().st_ino,
        size=secret.stat().st_size,
        mtime_ns=secret.stat().st_mtime_ns,
    )


@pytest.mark.parametrize("how", ["a report", "another correlation id", "no record"])
def test_what_the_process_did_not_put_there_moves_no_file(watched, tmp_path, how):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    record = forged(watched, secret)
    with watched.daemon.connect() as qm:
        options = {"correl_id": record.correl_id}
        if how == "a report":
            options["msg_type"] = "report"
        elif how == "another correlation id":
            options["correl_id"] = bytes(24)
        data = b"{}" if how == "no record" else encode(record)
        qm.put(RECORD_QUEUE, data, persistence="persistent", **options)
    watched.put_file("a")
    serving = subprocess.Popen([sys.executable, "-m", "trigmon", "watch", "serve"], env=watched.daemon.env)
    try:
        until(lambda: watched.depth() == 1)
        assert [json.loads(body)["name"] for body in watched.bodies()] == ["a"]
        assert secret.read_text() == "secret"
        assert not Path(watched.directory, "stolen").exists()
    finally:
        serving.terminate()
        serving.wait(30)
