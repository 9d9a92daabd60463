"""A real keeper and real warm interpreters: a program sees and does the same forked as executed."""

from __future__ import annotations

import json
import shutil

import pytest

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


def test_python_of_another_installation_needs_no_trigmon(own, tmp_path):
    script = tmp_path / "prints.py"
    script.write_text("import sys; print(sys.flags.isolated)")
    cold, forked = own.both(script, options=["-I", "-S"], modules=["trigmon.client.address"])
    assert forked == cold == (0, "1\n", "")
