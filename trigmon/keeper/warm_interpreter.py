"""A warm interpreter: a Python process that has imported modules in advance, and forks a process a run (WARM(YES)).

A keeper runs this file with the program's own Python and options, in the environment and the working directory of the
run but for the variables that each run has for itself. So all that Python makes of these at its start is as it would
be without the fork. The first argument is the descriptor of a stream socket of the keeper, the others are modules to
import. What is sent on the socket, and how a process is forked, is as with :mod:`trigmon.spark.warm.job_fork_server`:
``{"ready": true}``, and for each order ``{"pid": N}`` or ``{"error": TEXT}``; and ``{"old": TEXT}`` when a file that
this process has read has changed, so that it is to be replaced. In an order ``argv`` are the words behind Python's
options, ``words`` all of them. A process is forked in advance, and waits. One that finds that its program would not see
what it would see without the fork executes Python in its place.

Standard library only, of Python 3.9 and later: the Python may be any, and trigmon need not be installed there. A module
of the standard library is imported before the directory of the program can hide it; a directory that would gets no
forked runs.
"""

from __future__ import annotations

import sys

_AT_START = frozenset(sys.modules)
_MAIN = {name: value for name, value in globals().items() if name.startswith("__")}
_IS_SAFE = bool(getattr(sys.flags, "safe_path", False) or sys.flags.isolated)
if not _IS_SAFE:
    del sys.path[0]  # the directory of this file

import contextlib
import ctypes
import gc
import importlib
import json
import mmap
import os
import runpy
import select
import signal
import socket
import threading
import time
import traceback
import types
import warnings
from importlib.machinery import SourceFileLoader
from types import TracebackType
from typing import Any, NoReturn

_DESCRIPTORS = 4
_SPARE_AFTER_S = 0.02
_STANDARD = os.path.dirname(os.__file__) + os.sep
_PR_SET_MM, _PR_SET_MM_MAP = 35, 14
_kept: list[mmap.mmap] = []
"""Memory that the kernel reads as long as this process lives."""


class RefusedError(Exception):
    """Refuses one run, which is executed and not forked."""


class OldError(Exception):
    """Refuses every further run: what is imported here is not what would be imported now."""


class Imported:
    """What was imported in advance, and from which files."""

    def __init__(self) -> None:
        modules = [module for name, module in sys.modules.items() if name not in _AT_START]
        self._names = {module.__name__.partition(".")[0] for module in modules} - {*sys.builtin_module_names}
        files = {str(file) for module in sys.modules.values() if (file := getattr(module, "__file__", None))}
        own = {file for file in files - {__file__} if not file.startswith(_STANDARD) or "-packages" in file}
        paths = {path for path in sys.path if os.path.isdir(path)}
        self._signatures = {path: _signature(path) for path in own | paths | {sys.executable}}
        self._code: dict[str, tuple[bytes, types.CodeType]] = {}
        self._harmless: dict[str, tuple[int, int, int] | None] = {}

    def check(self) -> None:
        """Raises OldError when a file that was imported, or a directory of packages, has changed."""
        for path, before in self._signatures.items():
            if _signature(path) != before:
                raise OldError(f"{path} has changed")

    def compiled(self, file: str) -> types.CodeType:
        """Returns the code of a program. Raises RefusedError where Python has something to say of its text."""
        with open(file, "rb") as opened:
            source = opened.read()
        known, code = self._code.get(file, (None, None))
        if code is None or known != source:
            if b"\0" in source:
                raise RefusedError(f"{file} is no text")
            with warnings.catch_warnings(record=True) as warned:
                try:
                    code = compile(source, file, "exec", dont_inherit=True)
                except Exception as error:
                    raise RefusedError(f"{file}: {error}") from error
            if warned:
                raise RefusedError(f"{file}: {warned[0].message}")
            self._code[file] = source, code
        return code

    def check_directory(self, directory: str) -> None:
        """Raises RefusedError when a module of this directory is to hide one that was imported in advance."""
        if self._harmless.get(directory) == (signature := _signature(directory)):
            return
        for entry in os.listdir(directory):
            name, _, ending = entry.partition(".")
            is_package = not ending and os.path.exists(os.path.join(directory, entry, "__init__.py"))
            if name in self._names and (is_package or ending.endswith(("py", "pyc", "so"))):
                raise RefusedError(f"{entry} in {directory} hides a module that is imported in advance")
        self._harmless[directory] = signature


def _signature(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


class Run:
    """One order, with what is known of it before the fork. Raises RefusedError, OSError."""

    def __init__(self, order: dict[str, Any], imported: Imported) -> None:
        self.order = order
        self._word = order["argv"][0]
        directory = order["working_directory"]
        if self._word == "-m":
            self._first, self._code = "", None
            imported.check_directory(directory)
            return
        self._script = os.path.join(directory, self._word)  # as Python does: it is not normalised
        self._code = imported.compiled(self._script)
        self._first = os.path.dirname(os.path.realpath(self._script))
        imported.check_directory(self._first)

    def execute(self) -> None:
        """Executes the program as the module ``__main__``, as Python itself does."""
        if not _IS_SAFE:
            sys.path.insert(0, self._first or os.getcwd())
        sys.argv = list(self.order["argv"])
        if hasattr(sys, "orig_argv"):
            sys.orig_argv = list(self.order["words"])
        main = types.ModuleType("__main__")
        main.__dict__.update(_MAIN, __doc__=None)
        if "__annotations__" in _MAIN:
            main.__annotations__ = {}
        sys.modules["__main__"] = main
        if self._code is None:
            module = sys.argv.pop(1)
            # As Python's own start: it completes the arguments and the module, and reports a missing one.
            runpy._run_module_as_main(module)  # type: ignore[attr-defined]
            return
        main.__file__, main.__loader__ = self._script, SourceFileLoader("__main__", self._script)
        exec(self._code, main.__dict__)  # noqa: S102 - it is what this process is for


class _Map(ctypes.Structure):
    """The argument of prctl(2) with PR_SET_MM_MAP: where the parts of a process are in its memory."""

    _fields_ = [
        *((name, ctypes.c_uint64) for name in ("start_code", "end_code", "start_data", "end_data", "start_brk", "brk")),
        *((name, ctypes.c_uint64) for name in ("start_stack", "arg_start", "arg_end", "env_start", "env_end", "auxv")),
        ("auxv_size", ctypes.c_uint32),
        ("exe_fd", ctypes.c_uint32),
    ]


def name_process(words: list[str], environment: dict[str, str]) -> None:
    """Makes the kernel name this process by these words and variables, for ps(1) and for who looks for a run.

    A kernel that was built without it goes on with those of this process.
    """
    with open("/proc/self/stat", "rb") as file:
        numbers = [int(word) for word in file.read().rpartition(b")")[2].split()[1:]]
    arguments = b"".join(os.fsencode(word) + b"\0" for word in words)
    variables = b"".join(os.fsencode(f"{pair[0]}={pair[1]}") + b"\0" for pair in environment.items())
    memory = mmap.mmap(-1, len(arguments + variables), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.write(arguments + variables)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    middle, end = start + len(arguments), start + len(arguments + variables)
    library = ctypes.CDLL(None)
    library.sbrk.restype = ctypes.c_void_p
    # proc_pid_stat(5): the fields 26 and 27, 45 and 46, 47, and 28; numbers[0] is field 4.
    code, data = (numbers[22], numbers[23]), (numbers[41], numbers[42])
    found = _Map(*code, *data, numbers[43], library.sbrk(0), numbers[24], start, middle, middle, end, 0, 0, 0xFFFFFFFF)
    if not library.prctl(_PR_SET_MM, _PR_SET_MM_MAP, ctypes.byref(found), ctypes.sizeof(found), 0):
        _kept.append(memory)


class Spare:
    """A process that is forked before there is an order for it. ``pid`` is 0 in that process itself.

    It leads its session, and is a child of a process that ends when the order is there: then the keeper, a subreaper,
    becomes its parent. It ends when this server does before. Raises OSError.
    """

    def __init__(self, link: socket.socket) -> None:
        self.link, its = socket.socketpair()
        found, named = os.pipe()
        self.between = os.fork()
        if self.between == 0:
            link.close()
            self.link.close()
            os.close(found)
            self.between = os.getpid()
            self.pid = self._forked(its, named)
            self.link = its
            return
        its.close()
        os.close(named)
        with os.fdopen(found, "rb") as file:
            text = file.read()
        self.pid = int(text or 0)
        if not self.pid:
            self.end()
            raise OSError("it could not fork")

    def _forked(self, its: socket.socket, named: int) -> int:
        """Returns in the new process; the one between ends here, when the server's end of the socket says so."""
        try:
            pid = os.fork()
            if pid:
                os.write(named, str(pid).encode())
                os.close(named)
                its.recv(1, socket.MSG_PEEK)  # there is an order, or no server any more
                os._exit(0)
            os.setsid()
            os.close(named)
        except OSError:
            os._exit(1)
        return 0

    def end(self) -> None:
        """Waits for the process between, which has nothing to do any more."""
        self.link.close()
        os.waitpid(self.between, 0)


def fork_for(link: socket.socket, imported: Imported) -> Run | None:
    """Forks for each order. Returns its run in each new process, and None here when the keeper has gone."""
    spare = None
    while True:
        # The process that has just begun has the processor first.
        if spare is None and not select.select([link], [], [], _SPARE_AFTER_S)[0]:
            with contextlib.suppress(OSError):
                spare = Spare(link)
        if spare is not None and not spare.pid:
            return _ordered(spare, imported)
        _, descriptors, _, _ = socket.recv_fds(link, 1, _DESCRIPTORS)
        if len(descriptors) != _DESCRIPTORS:
            return None
        try:
            spare = spare or Spare(link)
            if not spare.pid:
                for descriptor in descriptors:
                    os.close(descriptor)
                return _ordered(spare, imported)
            socket.send_fds(spare.link, [b"j"], descriptors)
            answer: dict[str, object] = {"pid": spare.pid}
        except OSError as error:
            answer = {"error": str(error)}
        _answer(link, answer)
        for descriptor in descriptors:
            os.close(descriptor)
        if spare is not None:
            spare.end()
            spare = None
        try:
            imported.check()
        except OldError as error:
            _answer(link, {"old": str(error)})


def _answer(link: socket.socket, answer: dict[str, object]) -> None:
    link.sendall(json.dumps(answer).encode() + b"\n")


def _ordered(spare: Spare, imported: Imported) -> Run | None:
    """Waits in a new process for its order, and makes the process the run's."""
    _rehearse()
    _, descriptors, _, _ = socket.recv_fds(spare.link, 1, _DESCRIPTORS)
    if len(descriptors) != _DESCRIPTORS:
        os._exit(0)
    file, out, err, go = descriptors
    order = json.loads(os.pread(file, 1 << 30, 0))
    os.close(file)
    run: Run | None
    try:
        run = Run(order, imported)
        imported.check()
    except (OldError, RefusedError, OSError) as error:
        run = None
        name = order["environment"].get("TRIGMON_RUN", "")
        os.write(2, f"run {name} is executed, not forked: {error}\n".encode(errors="replace"))
    _become(order, out, err)
    if not os.read(go, 1):
        os._exit(127)
    while os.getppid() == spare.between:  # it is about to end
        time.sleep(0.0001)
    spare.link.close()
    os.close(go)
    try:
        os.close(os.open(order["mark"], os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except OSError:
        os._exit(127)  # without the mark nothing has begun
    if run is None:
        _replace(order)
    return run


def _rehearse() -> None:
    """Takes the steps of a start once, so that the memory they write to is this process's own before they count."""
    environment = dict(os.environ)
    json.loads(json.dumps(environment))
    _set_environment(list(getattr(sys, "orig_argv", sys.argv)), environment)
    importlib.invalidate_caches()
    SourceFileLoader("__main__", __file__)
    exec(compile("None", __file__, "exec", dont_inherit=True), types.ModuleType("__main__").__dict__)  # noqa: S102


def _set_environment(words: list[str], environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    with contextlib.suppress(OSError):  # no /proc
        name_process(words, environment)


def _become(order: dict[str, Any], out: int, err: int) -> None:
    """Sets descriptors, environment and directory of the new process, all before it is let go."""
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.close(out)
    os.close(err)
    _set_environment(order["words"], order["environment"])
    importlib.invalidate_caches()
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    try:
        os.chdir(order["working_directory"])
    except OSError as error:
        os.write(2, f"{order['working_directory']}: {error.strerror}\n".encode(errors="surrogateescape"))
        os._exit(127)


def _replace(order: dict[str, Any]) -> NoReturn:
    """Executes Python in this process, as without a fork."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and so would the program
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execve(order["words"][0], order["words"], order["environment"])  # noqa: S606 - no shell, on purpose
    except OSError as error:
        os.write(2, f"{order['words'][0]}: {error.strerror}\n".encode(errors="surrogateescape"))
        os._exit(127)


def _execute(run: Run) -> None:
    """Executes the program; the traceback of an error begins with the program's own frames."""
    try:
        run.execute()
    except SystemExit:
        raise
    except BaseException:
        hook = sys.excepthook

        def without_ours(kind: type[BaseException], error: BaseException, frames: TracebackType | None) -> None:
            sys.excepthook = hook
            while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
                frames = frames.tb_next
            hook(kind, error.with_traceback(frames), frames)

        sys.excepthook = without_ours
        raise


def main() -> None:
    """Imports what is to be imported, and forks until the keeper has gone; each new process executes its program."""
    link = socket.socket(fileno=int(sys.argv[1]))
    link.set_inheritable(False)
    for name in sys.argv[2:]:
        try:
            importlib.import_module(name)
        except Exception:  # the program imports it too, and shows what is wrong
            traceback.print_exc()
    os.chdir("/")  # it keeps no file system busy
    if threading.active_count() > 1:
        sys.exit("a module that was imported in advance has started a thread, which no fork has")
    imported = Imported()
    gc.collect()
    gc.freeze()
    sys.stdout.flush()
    link.sendall(b'{"ready": true}\n')
    run = fork_for(link, imported)
    if run is None:
        os._exit(0)
    del link, imported
    _execute(run)


if __name__ == "__main__":
    main()
