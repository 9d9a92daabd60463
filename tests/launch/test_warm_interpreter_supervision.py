"""A forked run is supervised as one that is executed, and what was imported is never out of date."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.launch.keeper_machine import is_gone
from tests.waiting import until
from trigmon.keeper import protocol, run_directory


class TestWhatIsImported:
    def test_a_module_that_changes_is_imported_anew(self, own, tmp_path):
        (tmp_path / "lib").mkdir()
        (tmp_path / "lib" / "mine.py").write_text("VALUE = 1")
        script = tmp_path / "prints.py"
        script.write_text("import mine; print(mine.VALUE)")
        more = {"modules": ["mine"], "PYTHONPATH": str(tmp_path / "lib")}
        server = own.warmed(script, **more)
        first = own.start(script, **more)
        assert own.end_of(first)[1] == "1\n"
        assert own.is_forked(first)
        (tmp_path / "lib" / "mine.py").write_text("VALUE = 22")
        own.forget()
        second = own.start(script, **more)
        assert own.end_of(second)[1] == "22\n"
        assert not own.is_forked(second)
        assert own.machine.wait_for("warm", None)["pid"] != server
        third = own.start(script, **more)
        assert own.end_of(third)[1] == "22\n"
        assert own.is_forked(third)

    def test_a_package_that_is_installed_or_python_itself_makes_another_interpreter(self, own, tmp_path):
        (tmp_path / "lib").mkdir()
        script = tmp_path / "prints.py"
        script.write_text("print(1)")
        own.warmed(script, PYTHONPATH=str(tmp_path / "lib"))
        (tmp_path / "lib" / "new").mkdir()
        run_id = own.start(script, PYTHONPATH=str(tmp_path / "lib"))
        assert own.end_of(run_id)[0] == 0
        assert not own.is_forked(run_id)

    @pytest.mark.parametrize("name", ["decimal.py", "decimal/__init__.py"])
    def test_a_module_beside_the_program_is_not_hidden(self, warm, tmp_path, name):
        script = tmp_path / "prints.py"
        script.write_text("import decimal; print(decimal.__file__)")
        warm.warmed(script, modules=["decimal"])
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
        run_id = warm.start(script, modules=["decimal"])
        assert warm.end_of(run_id)[1] == f"{tmp_path / name}\n"
        assert not warm.is_forked(run_id)

    def test_a_program_that_changes_needs_no_other_interpreter(self, warm, tmp_path):
        script = tmp_path / "prints.py"
        for text in ("first", "second"):
            script.write_text(f"print({text!r})")
            warm.warmed(script)
            run_id = warm.start(script)
            assert warm.end_of(run_id)[1] == f"{text}\n"
            assert warm.is_forked(run_id)

    def test_one_that_starts_a_thread_or_is_missing_keeps_no_run_from_its_start(self, own, tmp_path):
        (tmp_path / "threads.py").write_text(
            "import threading, time\nthreading.Thread(target=time.sleep, args=[9]).start()"
        )
        script = tmp_path / "prints.py"
        script.write_text("print(1)")
        for module in ("missing", "threads"):
            more = {"modules": [module], "PYTHONPATH": str(tmp_path)}
            assert own.end_of(own.start(script, **more))[1] == "1\n"
        log = own.machine.monitors / "Q.1.keeper.log"
        for line in ("has started a thread", "No module named 'missing'"):
            until(lambda line=line: line in log.read_text())
        assert own.end_of(own.start(script, modules=["threads"], PYTHONPATH=str(tmp_path)))[1] == "1\n"


class TestSupervision:
    SLEEPS = "import subprocess, time\nsubprocess.Popen(['sleep', '60'])\nprint('up', flush=True)\ntime.sleep(60)"

    @pytest.fixture
    def sleeps(self, tmp_path):
        script = tmp_path / "sleeps.py"
        script.write_text(self.SLEEPS)
        quick = tmp_path / "quick.py"
        quick.write_text("print('quick')")
        return script, quick

    def test_a_stop_ends_its_process_group_and_its_end_is_on_record(self, warm, sleeps):
        script, quick = sleeps
        warm.warmed(quick)
        run_id = warm.start(script)
        warm.machine.wait_for_output(run_id)
        pid = warm.machine.wait_for("started", run_id)["pid"]
        [child] = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        assert warm.is_forked(run_id)
        warm.machine.keeper.stop(run_id, protocol.CANCELLED, 20)
        ended = warm.ended(run_id)
        assert (ended["status"], ended["why"]) == (-signal.SIGTERM, protocol.CANCELLED)
        assert run_directory.read_exit(warm.machine.run(run_id)) == {k: v for k, v in ended.items() if k != "say"}
        until(lambda: is_gone(int(child)))

    def test_limits_of_time_bind_it(self, warm, sleeps):
        script, quick = sleeps
        warm.warmed(quick)
        run_id = warm.start(script, time_limit_s=0.5)
        ended = warm.ended(run_id)
        assert (ended["status"], ended["why"]) == (-signal.SIGTERM, protocol.TIME_LIMIT)

    def test_another_definition_has_another_interpreter(self, own, sleeps):
        _, quick = sleeps
        first = own.warmed(quick)
        second = own.warmed(quick, options=["-u"])
        third = own.warmed(quick, OWN="1")
        assert len({first, second, third} - {0}) == 3
        assert {first, second, third} <= own.machine.children()

    def test_what_waits_for_one_that_dies_is_executed_once(self, own, sleeps):
        _, quick = sleeps
        server = own.warmed(quick)
        os.kill(server, signal.SIGSTOP)
        runs = [own.start(quick) for _ in range(3)]
        until((own.machine.run(runs[2]) / "claim").exists)
        os.kill(server, signal.SIGKILL)
        for run_id in runs:
            assert own.end_of(run_id) == (0, "quick\n", "")
            assert not own.is_forked(run_id)
        own.forget()
        assert own.machine.wait_for("warm", None)["pid"] != server

    def test_one_that_does_not_answer_is_given_up(self, own, sleeps):
        _, quick = sleeps
        server = own.warmed(quick)
        os.kill(server, signal.SIGSTOP)
        assert own.end_of(own.start(quick)) == (0, "quick\n", "")
        until(lambda: is_gone(server))

    def test_a_run_outlives_its_interpreter(self, own, sleeps):
        script, quick = sleeps
        server = own.warmed(quick)
        run_id = own.start(script)
        own.machine.wait_for_output(run_id)
        os.kill(server, signal.SIGKILL)
        until(lambda: is_gone(server))
        own.machine.keeper.stop(run_id, protocol.CANCELLED, 20)
        assert own.ended(run_id)["status"] == -signal.SIGTERM

    def test_a_run_outlives_its_keeper_and_the_next_one_learns_how_it_ended(self, own, sleeps):
        script, quick = sleeps
        own.warmed(quick)
        run_id = own.start(script)
        own.machine.wait_for_output(run_id)
        pid = own.machine.wait_for("started", run_id)["pid"]
        own.machine.keeper_is_killed()
        assert run_directory.is_program_of(pid, run_id)
        assert run_id in own.machine.wait_for("hello", None)["runs"]
        own.machine.keeper.stop(run_id, protocol.CANCELLED, 20)
        assert own.ended(run_id)["status"] == -signal.SIGTERM

    def test_one_whose_keeper_dies_before_it_begins_runs_nothing(self, own, sleeps):
        _, quick = sleeps
        server = own.warmed(quick)
        os.kill(server, signal.SIGSTOP)
        run_id = own.start(quick)
        until((own.machine.run(run_id) / "claim").exists)
        own.machine.keeper_is_killed()
        os.kill(server, signal.SIGCONT)
        until(lambda: is_gone(server))
        assert not run_directory.has_begun(own.machine.run(run_id))
        output = own.machine.run(run_id) / "stdout"
        assert not output.exists() or output.read_text() == ""

    def test_a_keeper_that_has_nothing_to_keep_ends_with_its_interpreters(self, own, sleeps):
        _, quick = sleeps
        server = own.warmed(quick)
        own.machine.keepers.close()
        until(lambda: is_gone(server))
