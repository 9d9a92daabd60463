"""A PySpark script run with its session of a Spark Connect server already there, in a process made for it.

``python -m trigmon.spark.warm.job_process SCRIPT [ARGUMENT ...]``: ``SPARK_REMOTE`` says which session, ``TRIGMON_RUN``
what its queries are tagged with, and ``TRIGMON_SPARK`` (a JSON object) of what the session is made: ``name``, ``conf``,
``py_files``, ``files``, ``archives``, ``jars``. ``SparkSession.builder.getOrCreate()`` in the script then is that
session. The fork server's children run scripts in the same way (:mod:`trigmon.spark.warm.job_fork_server`).
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import types
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path

SESSION = "TRIGMON_SPARK"


_KINDS = {"py_files": {"pyfile": True}, "files": {"file": True}, "archives": {"archive": True}, "jars": {}}
"""How the session takes each list of files."""


class _OneModule:
    """Finds the module that is this file, and nothing beside it, as where spark-submit copies such files to."""

    def __init__(self, file: str) -> None:
        self._file = file

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """As :class:`importlib.abc.MetaPathFinder` has it."""
        return spec_from_file_location(name, self._file) if name == Path(self._file).stem else None


def make_importable(file: str) -> None:
    """One of the py-files can be imported in this process: a module, or an archive of some."""
    if file.endswith(".py"):
        sys.meta_path.insert(0, _OneModule(file))
    else:
        sys.path.insert(1, file)


def open_session() -> None:
    """Makes the session that the environment names. Raises what Spark raises, where it needs the server for that."""
    from pyspark.sql import SparkSession

    wanted = json.loads(os.environ.pop(SESSION, "{}"))
    spark = SparkSession.builder.getOrCreate()
    # At its exit the client would tidy up by a query, for minutes where the server is gone. The whole session goes.
    atexit.unregister(getattr(spark.client, "_on_exit", open_session))
    for tag in (os.environ.get("TRIGMON_RUN"), wanted.get("name", "").replace(",", " ")):
        if tag:
            spark.addTag(tag)
    if conf := wanted.get("conf"):
        spark.conf._set_all(conf, silent=False)  # each by itself would be a question of its own to the server
    for file in wanted.get("py_files", []):
        make_importable(file)
    for kind, how in _KINDS.items():
        if named := wanted.get(kind):
            spark.addArtifacts(*named, **how)


def run(argv: Sequence[str]) -> int:
    """Runs a script as ``python SCRIPT ...`` does, as the module ``__main__``; its exit status."""
    script = argv[0]
    sys.argv = list(argv)
    sys.path[0] = str(Path(script).absolute().parent)  # where -m has the working directory
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=script, __builtins__=__builtins__)
    sys.modules["__main__"] = main
    try:
        open_session()
        code = compile(Path(script).read_bytes(), script, "exec")
        exec(code, main.__dict__)  # noqa: S102 - it is what this process is for
    except SystemExit as end:
        return _status(end.code)
    except BaseException as error:
        # What led here is not the script's: its own traceback begins behind this frame.
        behind = error.__traceback__.tb_next if error.__traceback__ else None
        sys.excepthook(type(error), error.with_traceback(behind), behind)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _status(code: object) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code
    print(code, file=sys.stderr)  # noqa: T201 - as sys.exit does it
    return 1


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
