"""Runs a PySpark script in a process of its own, with its Spark Connect session already opened.

``python -m trigmon.spark.warm.job_process SCRIPT [ARGUMENT ...]``: ``SPARK_REMOTE`` names the session, ``TRIGMON_RUN``
is the tag of its queries, and ``TRIGMON_SPARK`` (a JSON object) has the session's ``name``, ``conf``, ``py_files``,
``files``, ``archives``, ``jars``. ``SparkSession.builder.getOrCreate()`` in the script then returns that session.
The fork server's children run scripts in the same way (:mod:`trigmon.spark.warm.job_fork_server`).
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
"""The arguments of ``addArtifacts`` for each list of files."""


class _OneModule:
    """An import finder for one file, without the other files of its directory, as with spark-submit."""

    def __init__(self, file: str) -> None:
        self._file = file

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """Returns the spec of the module, as :class:`importlib.abc.MetaPathFinder` requires."""
        return spec_from_file_location(name, self._file) if name == Path(self._file).stem else None


def make_importable(file: str) -> None:
    """Makes one of the py-files importable in this process: a module, or an archive of modules."""
    if file.endswith(".py"):
        sys.meta_path.insert(0, _OneModule(file))
    else:
        sys.path.insert(1, file)


def open_session() -> None:
    """Opens the session that the environment names. Raises Spark's errors when the server does not answer."""
    from pyspark.sql import SparkSession

    wanted = json.loads(os.environ.pop(SESSION, "{}"))
    spark = SparkSession.builder.getOrCreate()
    # The client's exit handler sends a query, for minutes where the server is gone. The monitor releases the session.
    atexit.unregister(getattr(spark.client, "_on_exit", open_session))
    for tag in (os.environ.get("TRIGMON_RUN"), wanted.get("name", "").replace(",", " ")):
        if tag:
            spark.addTag(tag)
    if conf := wanted.get("conf"):
        spark.conf._set_all(conf, silent=False)  # one request to the server for all
    for file in wanted.get("py_files", []):
        make_importable(file)
    for kind, how in _KINDS.items():
        if named := wanted.get(kind):
            spark.addArtifacts(*named, **how)


def run(argv: Sequence[str]) -> int:
    """Runs a script as ``python SCRIPT ...`` does, as the module ``__main__``. Returns its exit status."""
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
        # The traceback begins behind this frame, with the script's own.
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
