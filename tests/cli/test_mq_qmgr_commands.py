"""``crtmqm``, ``strmqm``, ``endmqm``, ``dltmqm`` and ``runmqtrm`` by their names."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

from tests.cli.mq_programs import MqPrograms
from tests.daemons import Daemon
from tests.waiting import until


def test_a_queue_manager_is_made_started_ended_and_not_deleted(tmp_path: Path):
    mq = MqPrograms(Daemon(tmp_path / "home", "QM.NEW"), tmp_path / "links")
    assert mq("strmqm", "QM.NEW").returncode == 16
    assert mq("endmqm", "QM.NEW").returncode == 16
    made = mq("crtmqm", "-lc", "-lp", "3", "-u", "SYSTEM.DEAD.LETTER.QUEUE", "-c", "ours", "QM.NEW")
    assert (made.returncode, made.stdout) == (0, "trigmon queue manager 'QM.NEW' created.\n"), made.stderr
    assert made.stderr.splitlines() == [
        "crtmqm: skipped: -lc: the log has no such kinds here",
        "crtmqm: skipped: -lp 3: the log has no such files here",
    ]
    assert mq("crtmqm", "QM.NEW").returncode == 8
    assert mq.lines("dspmq") == [f"{'QMNAME(QM.NEW)':<58}STATUS(Ended normally)"]
    assert mq.lines("strmqm", "QM.NEW") == ["trigmon queue manager 'QM.NEW' started."]
    try:
        assert mq.lines("strmqm", "QM.NEW", status=5) == ["trigmon queue manager 'QM.NEW' running."]
        assert mq("dltmqm", "QM.NEW").returncode == 5
        shown = mq("runmqsc", "QM.NEW", stdin="DIS QMGR DEADQ DESCR\n").stdout
        assert "DEADQ(SYSTEM.DEAD.LETTER.QUEUE)" in shown
        assert "DESCR(ours)" in shown
    finally:
        ended = mq("endmqm", "-i", "QM.NEW")
    assert ended.stdout.splitlines()[-1] == "trigmon queue manager 'QM.NEW' ended.", ended.stderr
    assert mq("endmqm", "QM.NEW").returncode == 40
    kept = mq("dltmqm", "QM.NEW")
    assert (kept.returncode, "nothing is deleted" in kept.stderr) == (71, True)
    assert (tmp_path / "home" / "QM.NEW" / "qm.db").exists()


def test_wrong_names_and_options_end_with_mqs_statuses(shared_daemon, tmp_path: Path):
    mq = MqPrograms(shared_daemon, tmp_path / "links")
    for name in ("crtmqm", "strmqm", "endmqm", "dltmqm"):
        assert mq(name, "no name").returncode == 72
        assert mq(name, "-Z", "QM9").returncode == 39
    assert mq("crtmqm", "QM1").returncode == 8


def test_runmqtrm_starts_what_a_trigger_message_asks_for(shared_daemon, tmp_path: Path):
    mq = MqPrograms(shared_daemon, tmp_path / "links")
    seen = tmp_path / "seen"
    script = (
        "DEF QL(T.INITQ)\n"
        f"DEF PROCESS(T.PROC) APPLICID('/usr/bin/touch {seen}') TMCARG(NO)\n"
        "DEF QL(T.ONE) TRIGGER TRIGTYPE(FIRST) INITQ(T.INITQ) PROCESS(T.PROC)\n"
    )
    assert mq("runmqsc", "QM1", stdin=script).returncode == 0
    assert mq("runmqtrm", "-m", "QM1", "-q", "T.NONE").returncode == 20
    assert mq("runmqtrm", "-m", "NOBODY").returncode == 20
    argv = [str(mq.directory / "runmqtrm"), "-m", "QM1", "-q", "T.INITQ"]
    with subprocess.Popen(argv, env=mq.daemon.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as one:
        try:
            assert one.stdout is not None
            line = one.stdout.readline()
            assert line == "trigmon trigger monitor started: queue manager QM1, initiation queue T.INITQ.\n"
            assert mq("amqsput", "T.ONE", "QM1", stdin="go\n").returncode == 0
            until(seen.exists, 60.0)
        finally:
            one.send_signal(signal.SIGTERM)
        assert one.wait(30) == 0
