"""``trigmon mqsc`` and ``trigmon export`` with a real queue manager: files, pipes, a terminal, and back again."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Trigmon, run_cli
from trigmon.cli.objects import rows

DUMPS = Path(__file__).parents[1] / "mqsc" / "dumps"


@pytest.mark.parametrize("file", sorted(DUMPS.glob("*.mqsc")), ids=lambda file: file.stem)
def test_a_whole_dump_loads_and_what_it_defined_loads_back_equal(daemon, tmp_path: Path, file: Path):
    one, two, three = daemon("QM1"), daemon("QM2"), daemon("QM3")
    loaded = one.trigmon("mqsc", str(file))
    assert loaded.returncode == 0, loaded.stdout
    assert "Skipped, since they have no meaning here: " in loaded.stdout
    assert loaded.stdout.endswith("All valid MQSC commands were processed.\n")

    script = one.trigmon("export", "--mqsc", "--system").stdout
    again = two.trigmon("mqsc", input=script)
    assert again.returncode == 0, again.stdout
    assert "Skipped" not in again.stdout
    assert _objects(two) == _objects(one)

    objects = tmp_path / "all.yaml"
    objects.write_text(one.trigmon("export", "--yaml", "--system").stdout)
    assert three.trigmon("apply", str(objects)).returncode == 0
    assert _objects(three) == _objects(one)


def _objects(qm) -> list[dict[str, object]]:
    """Returns every object of a queue manager, without its times and its own name."""
    with qm.connect() as connection:
        found = [row for kind in ("QMGR", "PROCESS", "queue") for row in rows(connection, kind)]
    assert len(found) > 10
    left_out = {"created_ms", "altered_ms", "q_mgr_identifier"}
    return [
        {k: v for k, v in row.items() if k not in left_out and (k, row["object_type"]) != ("name", "QMGR")}
        for row in found
    ]


def test_a_failed_command_and_a_syntax_error_end_with_10(shared_daemon):
    done = shared_daemon.trigmon("mqsc", input="DEL QL(NONE)\nDEFN QL(A)\nPING QMGR\n")
    assert done.returncode == 10
    assert done.stdout.splitlines()[-3:] == [
        "3 MQSC commands read.",
        "One command has a syntax error.",
        "One valid MQSC command could not be processed.",
    ]
    assert "AMQ8147E" in done.stdout
    assert "AMQ8415I" in done.stdout


def test_a_driver_that_listens_beyond_loopback_is_named_behind_the_command_that_defines_it(shared_daemon):
    script = (
        "DEFINE PROCESS(M.OPEN) APPLTYPE(SPARK) APPLICID('/job.py') SPKCONF('spark.driver.host=10.0.0.1')\n"
        "ALTER PROCESS(M.OPEN) SPKCONF(' ')\n"
    )
    done = shared_daemon.trigmon("mqsc", input=script)
    assert done.returncode == 0, done.stdout
    (warned,) = [line for line in done.stdout.splitlines() if "warning" in line]
    assert (
        "PROCESS M.OPEN has a Spark driver that other users can connect to: SPKCONF(spark.driver.host=10.0.0.1)"
        in warned
    )


def test_a_queue_manager_that_is_not_there_ends_with_20(shared_daemon):
    done = shared_daemon.trigmon("mqsc", "--qmgr", "NOBODY", input="PING QMGR\n")
    assert (done.returncode, done.stdout) == (20, "")
    assert "AMQ8146E" in done.stderr


@pytest.mark.parametrize("as_file", [True, False])
def test_bytes_that_are_no_utf8_are_the_errors_of_their_command(shared_daemon, tmp_path: Path, as_file: bool):
    script = tmp_path / "latin1.mqsc"
    script.write_bytes(b"DEF QL(L.ONE) DESCR('caf\xe9') REPLACE\nDEF QL(L.TWO) DESCR('caf\xc3\xa9') REPLACE\n")
    argv = [sys.executable, "-m", "trigmon", "mqsc", *([str(script)] if as_file else [])]
    with script.open("rb") as stdin:
        done = subprocess.run(argv, env=shared_daemon.env, stdin=stdin, capture_output=True, timeout=60, check=False)
    assert done.returncode == 10, done.stderr
    assert b"line 1, near : there are bytes here that are no UTF-8" in done.stdout
    assert done.stdout.count(b"AMQ8006I") == 1


def test_a_pipe_is_not_prompted(shared_daemon):
    done = shared_daemon.trigmon("mqsc", input="PING QMGR\n")
    assert "QM1>" not in done.stdout
    assert "     1 : PING QMGR\n" in done.stdout


class Terminal:
    """The command on a terminal of its own."""

    def __init__(self, qm) -> None:
        self.ours, theirs = pty.openpty()
        argv = [sys.executable, "-m", "trigmon", "mqsc"]
        env = qm.env | {"TERM": "dumb"}
        self.process = subprocess.Popen(argv, env=env, stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True)
        os.close(theirs)
        self.seen = ""

    def wait_for(self, text: str, timeout_s: float = 20.0) -> str:
        """Returns everything up to a text that is awaited."""
        deadline = time.monotonic() + timeout_s
        while text not in self.seen:
            ready, _, _ = select.select([self.ours], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"no {text!r} in {self.seen!r}"
            self.seen += os.read(self.ours, 65536).decode().replace("\r\n", "\n")
        before, _, self.seen = self.seen.partition(text)
        return before

    def type(self, text: str) -> None:
        """Types at the terminal."""
        os.write(self.ours, text.encode())

    def end(self) -> int:
        """Returns the exit status."""
        code = self.process.wait(20)
        os.close(self.ours)
        return code


def test_a_terminal_is_prompted_and_answered_command_by_command(shared_daemon):
    terminal = Terminal(shared_daemon)
    assert "Starting MQSC for queue manager QM1." in terminal.wait_for("QM1> ")
    terminal.type("def ql(typed) +\n")
    terminal.wait_for("> ")
    terminal.type("trigger\n")
    terminal.wait_for("AMQ8006I: trigmon queue created.")
    terminal.wait_for("QM1> ")
    terminal.type("dis ql(typed) trigger\n")
    terminal.wait_for("   QUEUE(TYPED)")
    terminal.wait_for("QM1> ")
    terminal.type("end\n")
    terminal.wait_for("2 MQSC commands read.")
    assert terminal.end() == 0


def test_the_end_of_a_terminals_input_ends_it(shared_daemon):
    terminal = Terminal(shared_daemon)
    terminal.wait_for("QM1> ")
    terminal.type("\x04")
    terminal.wait_for("No MQSC commands read.")
    assert terminal.end() == 0


def test_what_is_exported_loads_into_another_queue_manager(trigmon: Trigmon, daemon, tmp_path: Path):
    trigmon("queue", "define", "OB.EXPORT", "DESCR=it's on", "TRIGGER", "TRIGTYPE=every")
    trigmon("process", "define", "OB.EXPORT", "spark_master=local[2]", "spark_conf=a=1")
    exported = trigmon("export", "--yaml")
    (tmp_path / "all.yaml").write_text(exported.stdout)
    other = daemon("QM2")
    assert other.trigmon("apply", str(tmp_path / "all.yaml")).returncode == 0
    same = other.trigmon("export", "--yaml").stdout
    assert same.partition("\n")[2] == exported.stdout.partition("\n")[2]
    script = trigmon("export", "--mqsc").stdout
    loaded = other.trigmon("mqsc", input=script)
    assert (loaded.returncode, loaded.stdout.splitlines()[-1]) == (0, "All valid MQSC commands were processed.")


def test_export_asks_for_its_form_and_takes_one():
    assert run_cli("export").exit_code == 2
    both = run_cli("export", "--mqsc", "--yaml")
    assert (both.exit_code, both.stdout) == (2, "")
    assert "--mqsc and --yaml exclude each other" in both.stderr


def test_mqsc_reads_a_file_or_standard_input_and_keeps_mqs_exit_codes(trigmon: Trigmon, tmp_path: Path):
    file = tmp_path / "a.mqsc"
    file.write_text("DEFINE QLOCAL(OB.MQSC) +\n  TRIGGER\n")
    assert "AMQ8006I" in trigmon("mqsc", str(file)).stdout
    failed = trigmon("mqsc", input="DEFINE QLOCAL(OB.MQSC)\nEND\n")
    assert failed.exit_code == 10
    assert "AMQ8150E" in failed.stdout
    nobody = run_cli("mqsc", "--qmgr", "NOBODY", input="PING QMGR\n")
    assert nobody.exit_code == 20
    assert "AMQ8146E" in nobody.stderr
