"""The metrics exporter beside a real queue manager: HTTP, the file, the two health pages, and what they say when."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.console.metrics.exported import Exported, Scrape, free_port
from tests.daemons import Daemon, define
from tests.processes import is_there
from tests.waiting import until
from trigmon.console.metrics.exporter import FRESH_S, MOST_AT_ONCE, SLOW_CLIENT_S, ExporterOptions, Reader
from trigmon.mq.calls import Pause

INITQ = "SYSTEM.DEFAULT.INITIATION.QUEUE"
ARMED = {"trigger_control": "on", "trigger_type": "first", "initiation_q_name": INITQ, "process_name": "P"}


@pytest.fixture
def exported(daemon):
    return Exported(daemon)


def exporter_of(one):
    return one.daemon.wait_for_event("metrics exporter started")["pid"]


def test_it_serves_beside_the_queue_manager_and_ends_with_it_in_order(exported):
    assert exported.scrape().value("ibmmq_qmgr_status", qmgr="QM1") == 2
    pid = exporter_of(exported)
    assert exported.daemon.stop() == 0
    assert not is_there(pid)
    assert exported.page("healthz")[0] == 0


def test_one_that_dies_is_started_again_and_a_killed_daemon_leaves_none_behind(exported):
    os.kill(exporter_of(exported), signal.SIGKILL)
    until(lambda: len(exported.daemon.events("metrics exporter started")) == 2)
    until(lambda: exported.page("healthz")[0] == 200)
    pid = exported.daemon.events("metrics exporter started")[-1]["pid"]
    exported.daemon.kill()
    until(lambda: not is_there(pid))


def test_a_queue_manager_that_nobody_asks_to_serve_metrics_has_no_exporter(daemon):
    one = daemon()
    with one.connect():
        pass
    assert one.events("metrics exporter started") == []


def test_what_is_no_page_is_not_found_and_a_head_has_no_body(exported):
    assert exported.page("")[0] == 404
    with urlopen(Request(f"http://127.0.0.1:{exported.port}/metrics", method="HEAD"), timeout=60) as answer:
        assert (answer.status, answer.read()) == (200, b"")
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")


def test_it_is_ready_when_puts_are_taken_and_monitors_are_there(exported):
    assert exported.page("readyz") == (200, "ready\n")
    with exported.daemon.connect() as qm:
        define(qm, "Q", max_q_depth=1)
        qm.put("Q", b"m")
        qm.call(Pause(what="queue", name="Q"))
        assert exported.page("readyz")[0] == 200  # a full queue and a paused one: the others work
        define(qm, "P", "PROCESS", appl_id="/bin/true")
        define(qm, "T", **ARMED)
        assert exported.page("readyz") == (503, f"{INITQ}: no monitor reads it\n")
        with qm.open(INITQ, "input_shared"):
            assert exported.page("readyz")[0] == 200


def test_it_is_not_ready_while_puts_are_refused(daemon):
    port = free_port()
    settings = {"metrics.listen": f"127.0.0.1:{port}", "store.disk_reserve": "900 TiB"}
    one = Exported.__new__(Exported)
    one.port, one.daemon = port, daemon(settings=settings)
    until(lambda: one.page("healthz")[0] == 200)
    status, why = one.page("readyz")
    assert (status, "puts are refused" in why) == (503, True)
    found = one.scrape()
    assert (found.value("trigmon_puts_allowed"), found.value("trigmon_attention", kind="disk")) == (0, 1)
    assert found.value("trigmon_disk_reserve_bytes") == 900 << 40


def test_clients_that_say_nothing_take_up_a_few_threads_and_not_more(exported):
    idle = [socket.create_connection(("127.0.0.1", exported.port)) for _ in range(MOST_AT_ONCE)]
    try:
        until(lambda: exported.page("healthz")[0] == 0)  # cut at once
        idle.pop().close()
        until(lambda: exported.page("healthz")[0] == 200)
    finally:
        for each in idle:
            each.close()


def test_clients_that_send_a_byte_now_and_then_do_not_keep_a_probe_out(exported):
    dribbling = [socket.create_connection(("127.0.0.1", exported.port)) for _ in range(MOST_AT_ONCE)]
    try:
        until(lambda: exported.page("healthz")[0] == 0)

        def is_let_in():
            for each in dribbling:
                with suppress(OSError):
                    each.send(b"G")
            return exported.page("healthz")[0] == 200

        until(is_let_in, timeout_s=10 * SLOW_CLIENT_S)
    finally:
        for each in dribbling:
            each.close()


@pytest.mark.parametrize(
    ("host", "status"),
    [
        *((host, 200) for host in ("127.0.0.1:1", "127.0.0.1", "[::1]:1", "[::1]", "localhost", "LOCALHOST:1")),
        *((host, 421) for host in ("evil.example", "evil.example:9157", "127.0.0.1.evil.example", "[")),
    ],
)
def test_a_request_for_another_host_is_misdirected(alone, host, status):
    request = Request(f"http://127.0.0.1:{alone.port}/healthz", headers={"Host": host})
    try:
        with urlopen(request, timeout=60) as answer:
            found = answer.status
    except HTTPError as error:
        found = error.code
    assert found == status


# -- many scrapes


@pytest.fixture
def readings(shared_daemon):
    """A reader with a clock of the test's own, and when it connected."""

    class Readings:
        now_s = 0.0

    it = Readings()
    it.connected = []
    it.reader = Reader(shared_daemon.address, "QM1", ExporterOptions(), clock=lambda: it.now_s)
    connect = it.reader._connect
    it.reader._connect = lambda: it.connected.append(it.now_s) or connect()
    return it


def test_scrapes_at_one_moment_cost_one_reading(readings):
    with ThreadPoolExecutor(8) as scrapers:
        texts = list(scrapers.map(lambda _: readings.reader.metrics(), range(8)))
    assert len(set(texts)) == 1
    assert readings.connected == [0.0]
    readings.now_s = FRESH_S
    assert readings.reader.metrics() != texts[0]
    assert readings.connected == [0.0, FRESH_S]


def test_probes_at_one_moment_cost_one_reading(readings):
    assert [readings.reader.unready() for _ in range(8)] == [""] * 8
    assert readings.connected == [0.0]


# -- a queue manager that does not answer


@pytest.fixture
def alone(tmp_path):
    """An exporter of its own for a queue manager that does not run yet."""
    daemon, port = Daemon(tmp_path), free_port()
    argv = [sys.executable, "-m", "trigmon", "metrics", "--listen", f"127.0.0.1:{port}"]
    process = subprocess.Popen(argv, env=daemon.env, stderr=subprocess.DEVNULL)
    one = Exported.__new__(Exported)
    one.port, one.daemon = port, daemon
    until(lambda: one.page("healthz")[0] == 200)
    yield one
    process.terminate()
    assert process.wait(60) == 0
    daemon.end()


def test_before_behind_and_while_a_queue_manager_stops_a_scrape_has_its_status_alone(alone):
    names = {"ibmmq_qmgr_status", "ibmmq_qmgr_exporter_collection_time"}
    for _ in range(2):
        found = alone.scrape()
        assert {sample.name for sample in found.samples} == names
        assert found.value("ibmmq_qmgr_status", qmgr="QM1", platform="UNIX", description="-") == 0
        status, why = alone.page("readyz")
        assert (status, "2059" in why) == (503, True)
        alone.daemon.start()
        assert alone.scrape().value("ibmmq_qmgr_status") == 2
        assert alone.page("readyz")[0] == 200
        alone.daemon.stop()


def test_scrapes_go_on_while_a_queue_manager_starts_and_stops(alone):
    seen = set()
    for _ in range(3):
        alone.daemon.launch()
        while alone.scrape().value("ibmmq_qmgr_status") != 2:
            assert alone.daemon.process.poll() is None
        alone.daemon.process.send_signal(signal.SIGTERM)
        while alone.daemon.process.poll() is None:
            seen.add(alone.scrape().value("ibmmq_qmgr_status"))
        seen.add(alone.scrape().value("ibmmq_qmgr_status"))
    assert seen <= {0, 2, 3}
    assert 0 in seen


def test_a_queue_manager_that_hangs_has_no_status_but_the_scrape_ends(alone):
    alone.daemon.start()
    os.kill(alone.daemon.process.pid, signal.SIGSTOP)
    try:
        assert alone.scrape().value("ibmmq_qmgr_status") == 0
        assert alone.page("healthz")[0] == 200
    finally:
        os.kill(alone.daemon.process.pid, signal.SIGCONT)
    assert alone.scrape().value("ibmmq_qmgr_status") == 2


# -- the file


def test_the_file_is_written_anew_readable_for_all_and_goes_with_the_queue_manager(daemon, tmp_path):
    file = tmp_path / "trigmon.prom"
    one = daemon(settings={"metrics.textfile": str(file), "metrics.interval_s": 0.1})
    with one.connect() as qm:
        define(qm, "Q")
        qm.put("Q", b"m")
        until(lambda: file.exists() and Scrape(file.read_text()).value("ibmmq_queue_depth", queue="Q") == 1)
        assert file.stat().st_mode & 0o777 == 0o644
        qm.put("Q", b"m")
        until(lambda: Scrape(file.read_text()).value("ibmmq_queue_depth", queue="Q") == 2)
    one.stop()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_in_the_log_and_tried_again(daemon, tmp_path):
    file = tmp_path / "missing" / "trigmon.prom"
    one = daemon(settings={"metrics.textfile": str(file), "metrics.interval_s": 0.1})
    row = one.wait_for_event("metrics cannot be written", timeout_s=60)
    assert row["file"] == str(file)
    file.parent.mkdir()
    until(file.exists)


# -- the command


def test_the_command_prints_the_same_once(exported):
    with exported.daemon.connect() as qm:
        define(qm, "Q", description='a "b" \\ c')
    printed = exported.daemon.trigmon("metrics")
    assert printed.returncode == 0
    (series,) = Scrape(printed.stdout).series("ibmmq_queue_depth", queue="Q")
    assert series.labels["description"] == 'a "b" \\ c'
    lines = exported.daemon.trigmon("metrics", "--output", "json").stdout.splitlines()
    assert f'"value": {series.value:.0f}' in next(line for line in lines if '"queue": "Q"' in line)


def test_it_refuses_another_machines_address_a_taken_port_and_nothing_to_serve(exported):
    daemon = exported.daemon
    refused = daemon.trigmon("metrics", "--listen", "0.0.0.0:9157")
    assert (refused.returncode, "no loopback address" in refused.stderr) == (2, True)
    refused = daemon.trigmon("metrics", "--listen", f"127.0.0.1:{exported.port}")
    assert (refused.returncode, "nobody can listen on" in refused.stderr) == (1, True)
    bare = Daemon(Path(daemon.home))
    refused = bare.trigmon("metrics", "--serve")
    assert (refused.returncode, "metrics.listen or metrics.textfile" in refused.stderr) == (2, True)


# -- which queues


def test_queues_beyond_the_limit_and_temporary_ones_are_one_series(daemon):
    one = Exported(daemon, queues="Q.*,!Q.2", max_queues=2)
    with one.daemon.connect() as qm:
        define(qm, "Q.MODEL", "QMODEL")
        for number in range(6):
            define(qm, f"Q.{number}")
            qm.put_many(f"Q.{number}", [b"m"] * (number + 1))
        with qm.open("Q.MODEL", "output", dynamic_q_name="Q.T*") as made:
            made.put(b"m")
            found = one.scrape()
    depths = {each.labels["queue"]: each.value for each in found.series("ibmmq_queue_depth")}
    assert depths == {"Q.0": 1, "Q.1": 2, "(others)": 4 + 5 + 6 + 1}
    assert {each.labels["queue"] for each in found.series("trigmon_queue_puts_total")} == {"Q.0", "Q.1"}


def test_no_name_of_a_program_is_a_label(daemon):
    one = Exported(daemon)
    with one.daemon.connect() as qm:
        define(qm, "P", "PROCESS", appl_id="curl --user joe:secret")
        define(qm, "T", **ARMED)
        qm.put("T", b"m")
    assert not re.search("secret", one.page("metrics")[1])
