"""A directory that hangs, as one of a dead file server does, holds up no other watch, and the status says so."""

import subprocess
import sys

from tests.daemons import define
from tests.waiting import until
from tests.watches.watched_queue import WatchedQueue

HANGS = """\
import sys, threading
from trigmon.watches import directory, service, watch

real = directory.look
directory.look = lambda definition: threading.Event().wait() if definition.name == "HANGS" else real(definition)
watch.SLOW_S["look"] = 0.5
service.run(sys.argv[1])
"""


def test_a_directory_that_hangs_holds_up_no_other_watch_nor_the_end(daemon, tmp_path):
    it = WatchedQueue(daemon(settings={"server.watches": "false"}), tmp_path / "in")
    with it.daemon.connect() as qm:
        define(qm, "HANGS", "WATCH", directory=str(tmp_path), q_name="Q")
    process = subprocess.Popen([sys.executable, "-c", HANGS, it.daemon.address], env=it.daemon.env)
    try:
        it.put_file("a")
        it.until_delivered(1)
        until(lambda: "does not answer" in it.state("HANGS")["problem"])
        assert [each["name"] for each in it.attention("watch")] == ["HANGS"]
        process.terminate()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
