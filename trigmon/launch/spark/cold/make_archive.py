"""Makes one archive of classes: ``python -m trigmon.launch.spark.cold.make_archive DIRECTORY SPARK JAVA PARENT``.

It runs a job that uses a little of everything, and its Java machine writes the archive of its loaded classes: about
half a minute of processor time, at the lowest priority. The archive is tested once before it is installed. The process
ends with its monitor, whose process id is PARENT, and its Java machine with it, however either ends.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
from msgspec.structs import replace

from trigmon.keeper.parent_death import end_with, end_with_parent
from trigmon.launch.environment import inherited
from trigmon.launch.spark import sockets
from trigmon.launch.spark.cold import class_archive, java_command, web_page
from trigmon.launch.spark.cold.class_archive import Archives, Note
from trigmon.launch.spark.cold.java import Java
from trigmon.launch.spark.conf_options import conf_options
from trigmon.mq.attributes import Process
from trigmon.mq.quantities import size
from trigmon.rules.runs import spark_ports

TIME_LIMIT_S = 1800.0
"""Seconds that a Java machine may take: many, since it works at the lowest priority."""

ROOM = 1 << 30
"""Bytes that must be free. An archive has some 180 MB, and twice that while it is made."""

_PROCESS = Process(name="")
_SETTINGS = {
    "spark.master": "local[2]",
    **spark_ports.closing("local[2]", {}),
    "spark.ui.port": "0",
    "spark.log.level": "WARN",
    "spark.sql.shuffle.partitions": "2",
}
_LAST_WORDS = 300


class Failed(Exception):  # noqa: N818 - named like the field of the record
    """The archive could not be made; the text says why."""


def begin(archives: Archives, home: Path, java: Java) -> subprocess.Popen[bytes]:
    """Starts the process. Its output goes to ``log`` beside the archives. Raises OSError."""
    archives.directory.mkdir(parents=True, exist_ok=True)
    argv = [sys.executable, "-m", __name__, str(archives.directory), str(home), _to_json(java), str(os.getpid())]
    with (archives.directory / "log").open("wb") as log:
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)


def make(archives: Archives, home: Path, java: Java, *, time_limit_s: float = TIME_LIMIT_S) -> Note | None:
    """Makes the archive for this Spark and this Java; None when another process is making one.

    The record describes the result and is written either way. Archives that fit no Java or Spark any more are removed.
    """
    with archives.lock() as is_ours:
        if not is_ours:
            return None
        began = time.monotonic()
        draft = Note(
            key=class_archive.key(home, java),
            spark_home=str(home),
            java_home=str(java.home),
            image=str(java.image_home),
            version=java.version,
        )
        directory = archives.directory / "making"
        shutil.rmtree(directory, ignore_errors=True)  # of a process that was killed
        try:
            directory.mkdir(mode=0o700)
            made = _made(directory, home, java, time_limit_s)
            note = replace(draft, size=made.stat().st_size, **_times(began))
            archives.install(made, note)
        except (Failed, OSError) as error:
            note = replace(draft, failed=str(error), **_times(began))
            archives.remove(note.key)
            archives.write(note)
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        archives.remove_stale()
        return note


def _times(began: float) -> dict[str, float]:
    return {"made_ms": time.time_ns() // 1_000_000, "took_s": round(time.monotonic() - began, 1)}


def _made(directory: Path, home: Path, java: Java, time_limit_s: float) -> Path:
    free = shutil.disk_usage(directory).free
    if free < ROOM:
        raise Failed(f"{directory.parent} has {size(free)} free, and an archive wants {size(ROOM)}")
    of_its_own = java.image_home / "lib" / "server" / "classes.jsa"
    if java.version < 25 and not of_its_own.exists():
        raise Failed(
            f"one of Spark's rests on the Java's own, {of_its_own}, and `{java.executable} -Xshare:dump` makes it"
        )
    file = directory / "archive"
    training = Path(__file__).parents[3] / "spark" / "archive_workload.py"
    web_page.write(directory / "page", web_page.new_key())
    settings = conf_options(_SETTINGS)
    settings += [*web_page.options(directory / "page", home, {}), *sockets.options(directory / "s", {})]
    trained = java_command.command(home, java, _PROCESS, {}, class_archive.making(file, java))
    _run([*trained, *settings, str(training)], directory, home, java, time_limit_s)
    if not file.is_file():
        raise Failed("the Java machine wrote no archive")
    tried = java_command.command(home, java, _PROCESS, {}, class_archive.using(file, java))
    _run([*tried, "--version"], directory, home, java, time_limit_s)
    return file


def _run(argv: list[str], directory: Path, home: Path, java: Java, time_limit_s: float) -> None:
    """Runs a Java machine to its end, and kills all processes that it leaves. Raises Failed."""
    environment = inherited(os.environ) | java_command.environment(home)
    environment |= {"SPARK_HOME": str(home), "JAVA_HOME": str(java.home), "TMPDIR": str(directory)}
    environment |= {spark_ports.PAGE_ADDRESS: spark_ports.LOOPBACK}
    environment |= {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    with tempfile.TemporaryFile(dir=directory) as output:
        program = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=directory,
            env=environment,
            start_new_session=True,
            preexec_fn=_end_with_maker,
        )
        try:
            code = program.wait(time_limit_s)
        except subprocess.TimeoutExpired:
            raise Failed(f"it took longer than {time_limit_s:g} s") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
            program.wait()
        if code:
            output.seek(max(0, output.seek(0, os.SEEK_END) - _LAST_WORDS))
            raise Failed(f"the Java machine ended with {code}: {output.read().decode(errors='replace').strip()}")


def _end_with_maker() -> None:
    end_with_parent(signal.SIGKILL)


def _to_json(java: Java) -> str:
    return msgspec.json.encode(java, enc_hook=str).decode()


def _from_json(text: str) -> Java:
    return msgspec.json.decode(text, type=Java, dec_hook=lambda kind, value: kind(value))


def main(argv: list[str]) -> int:
    """Makes the archive that the arguments name; returns 1 when it failed."""
    directory, home, java, parent = argv
    os.nice(19)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # its Java machine ends with it
    end_with(int(parent))
    note = make(Archives(Path(directory)), Path(home), _from_json(java))
    if note is not None and note.failed:
        print(note.failed, file=sys.stderr)  # noqa: T201 - its log
    return int(note is not None and bool(note.failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
