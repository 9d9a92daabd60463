"""A real keeper and real warm interpreters: a forked run is as one that is executed, and is supervised as one."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
from pathlib import Path

import pytest

from tests.launch.keeper_machine import KeeperMachine, is_gone
from tests.waiting import until
from trigmon.keeper import protocol, run_directory

# What a program can see of itself; "seen" is a file's name.
SEES = """\
import fcntl, json, os, resource, signal, stat, sys
main = sys.modules["__main__"]
names = [n for n in dir(resource) if n.startswith("RLIMIT_")]
print(json.dumps({
    "argv": sys.argv, "orig_argv": sys.orig_argv, "flags": repr(sys.flags), "path": sys.path,
    "executable": [sys.executable, sys.prefix, sys.base_prefix], "x": sys._xoptions, "warnings": sys.warnoptions,
    "environ": list(os.environ.items()), "cwd": os.getcwd(), "umask": (os.umask(0), os.umask(0o77))[0],
    "limits": {n: resource.getrlimit(getattr(resource, n)) for n in names}, "nice": os.nice(0),
    "user": [os.getresuid(), os.getresgid(), os.getgroups()],
    "leads": [os.getpid() == os.getsid(0) == os.getpgid(0), os.getppid()],
    "signals": {int(n): str(signal.getsignal(n)) for n in signal.valid_signals()},
    "mask": [int(n) for n in signal.pthread_sigmask(signal.SIG_BLOCK, [])],
    "descriptors": [(n, os.path.realpath(f"/proc/self/fd/{n}").split("/")[-1]) for n in os.listdir("/proc/self/fd")],
    "kinds": [(stat.S_IFMT(os.fstat(n).st_mode), fcntl.fcntl(n, fcntl.F_GETFL)) for n in range(3)],
    "input": sys.stdin.read(),
    "inheritable": [os.get_inheritable(n) for n in range(3)],
    "streams": [[s.encoding, s.errors, s.name, s.line_buffering, s.isatty(), s.seekable()]
                for s in (sys.stdin, sys.stdout, sys.stderr)],
    "main": {n: repr(v).split(" object at")[0] for n, v in vars(main).items()
             if n.startswith("__") and n not in ("__loader__", "__builtins__")},
    "loader": [type(main.__loader__).__name__, main.__loader__.path], "name": __name__,
    "builtins": type(__builtins__).__name__,
    "cmdline": open("/proc/self/cmdline").read(), "kernel_environ": open("/proc/self/environ").read(),
    "comm": open("/proc/self/comm").read(),
    "hook": sys.excepthook is sys.__excepthook__, "bytecode": sys.dont_write_bytecode,
    "threads": len(os.listdir("/proc/self/task")), "recursion": sys.getrecursionlimit(),
}))
"""


def environment(**more):
    return {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"} | more


class Warm:
    """A machine whose keeper keeps warm interpreters; :meth:`both` runs a program executed and forked."""

    def __init__(self, machine):
        self.machine = machine
        self.count = 0
        self.kept = set()

    def start(self, *words, options=(), modules=(), is_warm=True, **more):
        """Starts Python with these words and returns the run's id."""
        self.count += 1
        run_id = f"r{self.count}"
        words = [str(word) for word in words]
        python = [sys.executable, *options]
        warm = {"interpreter": python, "fork": words, "modules": list(modules)} if is_warm else {}
        asks = warm | more.pop("asks", {})
        self.machine.start(run_id, *python, *words, asks=asks, **environment(**{"TRIGMON_RUN": run_id} | more))
        return run_id

    def warmed(self, *words, **more):
        """Starts it once, so that its interpreter is kept. Returns that one's process id, 0 where it was there."""
        self.forget()
        run_id = self.start(*words, **more)
        self.ended(run_id)
        key = repr({**more, "asks": ""})
        if key in self.kept or self.is_forked(run_id):
            return 0
        self.kept.add(key)
        return self.machine.wait_for("warm", None)["pid"]

    def forget(self):
        self.machine.heard = [frame for frame in self.machine.heard if frame["say"] == "hello"]

    def ended(self, run_id):
        return self.machine.wait_for("ended", run_id)

    def both(self, *words, **more):
        """Returns status, output and errors of a program, executed and forked."""
        cold = self.end_of(self.start(*words, is_warm=False, **more))
        self.warmed(*words, **more)
        warm = self.start(*words, **more)
        seen = self.end_of(warm)
        assert self.is_forked(warm) or cold[2], seen  # what Python says of a text is said by Python itself
        return cold, seen

    def end_of(self, run_id):
        """Returns exit status, output and errors of a run when it has ended."""
        return self.ended(run_id)["status"], self.output(run_id), self.output(run_id, "stderr")

    def is_forked(self, run_id):
        self.machine.wait_for("started", run_id)
        until(lambda: "argv" in run_directory.read(self.machine.run(run_id)))
        log = (self.machine.monitors / "Q.1.keeper.log").read_text()
        claim = run_directory.read(self.machine.run(run_id))
        return claim.get("forked", False) and f"run {run_id} is executed, not forked" not in log

    def output(self, run_id, name="stdout"):
        text = self.machine.output(run_id, name).replace(run_id, "RUN")
        return re.sub("0x[0-9a-f]+", "ADDRESS", text)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    for file in Path("/proc/self/fd").iterdir():  # what pytest's own parent left open would be open in programs too
        if int(file.name) > 2 and file.exists():
            os.set_inheritable(int(file.name), False)
    machine = KeeperMachine(tmp_path_factory.mktemp("machine"))
    yield Warm(machine)
    machine.end()


@pytest.fixture
def warm(kept):
    """One keeper for all tests that leave it alone."""
    kept.forget()
    return kept


@pytest.fixture
def own(machine):
    """One of the test's own, to be killed."""
    return Warm(machine)


def same(seen):
    """Returns what both ways of a start have seen, once; shows where they differ."""
    assert [each[0] for each in seen] == [0, 0], seen
    cold, warm = (json.loads(output) for _, output, _ in seen)
    assert {key: warm[key] for key in cold if warm[key] != cold[key]} == {}, {
        key: cold[key] for key in cold if warm[key] != cold[key]
    }
    return warm


class TestWhatAProgramSees:
    def test_a_file_sees_the_same(self, warm, tmp_path):
        script = tmp_path / "sees.py"
        script.write_text(SEES)
        seen = same(warm.both(script, "a 'b'", "é", "", OWN="é", working_directory=tmp_path))
        assert seen["argv"] == [str(script), "a 'b'", "é", ""]
        assert seen["path"][0] == str(tmp_path)
        assert [name for _, name in seen["descriptors"]][:3] == ["null", "stdout", "stderr"]
        assert len(seen["descriptors"]) == 4  # and the one by which it looks

    @pytest.mark.parametrize("name", ["sees.py", "./sees.py", "below/../sees.py", "link.py"])
    def test_a_relative_file_or_a_link_sees_the_same(self, warm, tmp_path, name):
        (tmp_path / "below").mkdir()
        (tmp_path / "real").mkdir()
        (tmp_path / "sees.py").write_text(SEES)
        (tmp_path / "real" / "sees.py").write_text(SEES)
        (tmp_path / "link.py").symlink_to("real/sees.py")
        seen = same(warm.both(name, working_directory=tmp_path))
        assert seen["argv"] == [name]

    def test_a_module_and_a_package_see_the_same(self, warm, tmp_path):
        (tmp_path / "sees.py").write_text(SEES)
        (tmp_path / "package").mkdir()
        (tmp_path / "package" / "__init__.py").touch()
        (tmp_path / "package" / "__main__.py").write_text(SEES)
        assert same(warm.both("-m", "sees", "a", working_directory=tmp_path))["argv"][1:] == ["a"]
        assert same(warm.both("-m", "package", working_directory=tmp_path))["path"][0] == str(tmp_path)

    @pytest.mark.parametrize(
        "options",
        [["-u"], ["-O"], ["-I"], ["-E", "-s"], ["-B", "-X", "utf8", "-W", "error"], ["-b", "-S"], ["-P"]],
        ids=" ".join,
    )
    def test_it_does_with_options_of_python(self, warm, tmp_path, options):
        script = tmp_path / "sees.py"
        script.write_text(SEES)
        same(warm.both(script, options=options))

    def test_it_does_with_variables_of_python(self, warm, tmp_path):
        script = tmp_path / "sees.py"
        script.write_text(SEES)
        more = {"PYTHONPATH": "lib:/nowhere", "PYTHONUNBUFFERED": "1", "PYTHONOPTIMIZE": "2", "PYTHONHASHSEED": "7"}
        seen = same(warm.both(script, working_directory=tmp_path, TZ="Asia/Tokyo", LC_ALL="C", **more))
        assert f"{tmp_path}/lib" in seen["path"]

    def test_it_does_with_limits(self, warm, tmp_path):
        script = tmp_path / "sees.py"
        script.write_text(SEES)
        asks = {"memory_limit_mib": 4096, "open_files_limit": 99, "cpu_limit_s": 50}
        seen = same(warm.both(script, asks=asks))
        assert seen["limits"]["RLIMIT_NOFILE"] == [99, 99]
        assert seen["limits"]["RLIMIT_DATA"] == [4096 << 20, 4096 << 20]

    def test_secrets_are_there(self, warm, tmp_path):
        (tmp_path / "key").write_text("secret")
        script = tmp_path / "reads.py"
        script.write_text("import os\nprint(open(os.environ['CREDENTIALS_DIRECTORY'] + '/key').read())\n")
        seen = warm.both(script, asks={"secrets": {"key": str(tmp_path / "key")}})
        assert seen == ((0, "secret\n", ""), (0, "secret\n", ""))


ENDS = {
    "nothing": "print('done')",
    "a status": "import sys; sys.exit(7)",
    "a status of more than a byte": "import sys; sys.exit(259)",
    "a text": "import sys; sys.exit('no room')",
    "an error": (
        "def go():\n    raise KeyError('here')\n"
        "try:\n    go()\nexcept KeyError as error:\n    raise ValueError from error"
    ),
    "an error in an import": "import json.nothing",
    "bad syntax": "print(1)\ndef go(:\n",
    "bad bytes": "# coding: ascii\nprint('é')",
    "an interrupt": "import atexit; atexit.register(print, 'last'); raise KeyboardInterrupt",
    "a signal": "import os, signal; print('lost'); os.kill(os.getpid(), signal.SIGTERM)",
    "an abort": "import os; os.abort()",
    "at once": "import os; os._exit(3)",
    "a broken pipe": "import os\nread, write = os.pipe()\nos.close(read)\nos.write(write, b'x')",
    "handlers and threads": (
        "import atexit, threading, time\natexit.register(print, 'last')\n"
        "threading.Thread(target=lambda: (time.sleep(0.2), print('thread'))).start()"
    ),
    "an exit handler that fails": "import atexit; atexit.register(lambda: 1 / 0)",
    "a hook of its own": "import sys; sys.excepthook = lambda *about: print(about[0], about[2].tb_lineno); 1 / 0",
    "a full disk": "import sys; sys.stdout = open('/dev/full', 'w'); print('x')",
    "a closed output": "import os; os.close(1); print('x')",
    "an old escape": "import warnings; warnings.simplefilter('always')\nprint('\\d')",
    "an exit in an error": "import sys\ntry:\n    1 / 0\nfinally:\n    sys.exit(5)",
}


@pytest.mark.parametrize("text", list(ENDS.values()), ids=list(ENDS))
def test_it_ends_as_one_that_is_executed(warm, tmp_path, text):
    script = tmp_path / "ends.py"
    script.write_text(text + "\n")
    cold, forked = warm.both(script)
    assert forked == cold
    cold, forked = warm.both("-m", "ends", working_directory=tmp_path)
    assert forked == cold


@pytest.mark.parametrize("words", [["gone.py"], ["-m", "gone"], ["below"], ["archive.zip"]], ids=" ".join)
def test_what_is_no_file_or_module_fails_or_runs_as_by_any_python(warm, tmp_path, words):
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "__main__.py").write_text("print('below')")
    shutil.make_archive(str(tmp_path / "archive"), "zip", tmp_path / "below")
    cold = warm.end_of(warm.start(*words, is_warm=False, working_directory=tmp_path))
    warm.warmed(*words, working_directory=tmp_path)
    assert warm.end_of(warm.start(*words, working_directory=tmp_path)) == cold


def test_runs_have_chances_and_an_environment_of_their_own_and_find_what_was_imported(warm, tmp_path):
    script = tmp_path / "chance.py"
    script.write_text(
        "import os, random, sys\nprint(random.random(), os.environ.get('TRIGMON_QNAME'), 'decimal' in sys.modules)"
    )
    warm.warmed(script, modules=["decimal", "random"])
    seen = []
    for q_name in ("FIRST", "SECOND"):
        run_id = warm.start(script, modules=["decimal", "random"], TRIGMON_QNAME=q_name)
        seen.append(warm.end_of(run_id)[1].split())
        assert warm.is_forked(run_id)
    assert [each[1:] for each in seen] == [["FIRST", "True"], ["SECOND", "True"]]
    assert seen[0][0] != seen[1][0]


def test_processes_of_its_own_work(warm, tmp_path):
    script = tmp_path / "pool.py"
    text = "import multiprocessing, sys\ndef twice(n): return 2 * n\nif __name__ == '__main__':\n"
    text += "    for way in ('fork', 'spawn', 'forkserver'):\n"
    text += "        with multiprocessing.get_context(way).Pool(1) as pool: print(pool.map(twice, [1, 2]))\n"
    script.write_text(text)
    cold, forked = warm.both(script)
    assert forked == cold == (0, "[2, 4]\n" * 3, "")


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
        until(lambda: "has started a thread" in log.read_text())
        assert "No module named 'missing'" in log.read_text()
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


def test_python_of_another_installation_needs_no_trigmon(own, tmp_path):
    script = tmp_path / "prints.py"
    script.write_text("import sys; print(sys.flags.isolated)")
    cold, forked = own.both(script, options=["-I", "-S"], modules=["trigmon.client.address"])
    assert forked == cold == (0, "1\n", "")
