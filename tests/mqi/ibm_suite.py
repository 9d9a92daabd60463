"""Runs IBM's own suite of the package ``ibmmq`` on a queue manager of trigmon, and counts what passes.

    python -m tests.mqi.ibm_suite [SUITE] [--library DIRECTORY]

Without SUITE the source distribution of that version is fetched from the index by pip; nothing of it is kept. With
``--library`` the package's own C module is used, on the library in that directory, instead of ``trigmon.mqi``.
"""

from __future__ import annotations

import argparse
import collections
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.daemons import queue_managers

VERSION = "2.1.2"
_PLUGIN = "import trigmon.mqi.replace_ibmmqc\n"
_TEST = re.compile(r"^(\w+)\.py::\S+ (PASSED|FAILED|SKIPPED|ERROR)", re.MULTILINE)
MUST_PASS = (
    *("test_base_api", "test_get_buffers", "test_message_property", "test_rfh2_put_get", "test_h2py"),
    "test_api_transition_pep8",
)
"""Files of the suite of which no test may fail."""


def pip(*arguments):
    # The package's own setup asks for IBM's headers unless it is told that this is CI; nothing is built here.
    return subprocess.run([sys.executable, "-m", "pip", "-q", *arguments], env=os.environ | {"CI": "true"}, check=True)


def fetched(directory):
    """Returns the folder of the tests in the source distribution."""
    source = ["--no-deps", "--no-binary", ":all:", "-d", str(directory)]
    pip("download", *source, f"ibmmq=={VERSION}")
    with tarfile.open(next(directory.glob("ibmmq-*.tar.gz"))) as archive:
        archive.extractall(directory, filter="data")
    return next(directory.glob("ibmmq-*/code/tests"))


def run(suite, library=None):
    """Returns how many tests of each file of the suite passed, failed or were skipped, and all that was printed."""
    with tempfile.TemporaryDirectory() as made, queue_managers(lambda: Path(made, "qm")) as manager:
        packages = Path(made, "packages")
        pip("install", "--target", str(packages), "--no-deps", f"ibmmq=={VERSION}", "ddt")
        # Where it is installed, the package puts properties of its own on every message.
        Path(packages, "opentelemetry.py").write_text("raise ImportError\n")
        Path(packages, "on_trigmon.py").write_text("" if library else _PLUGIN)
        Path(made, "qm").mkdir()
        daemon = manager()
        # Tests look for a queue that has messages, as a queue manager of IBM's always has some on queues of its own.
        with daemon.connect() as qm:
            qm.put("SYSTEM.DEFAULT.LOCAL.QUEUE", b"so that one queue has a message")
        env = daemon.env | {
            "PYTHONPATH": f"{packages}:{Path(__file__).parents[2]}",
            "PY_IBMMQ_TEST_QM_CONNAUTH_USE_PW": "OPTIONAL",
            "PYTHONWARNINGS": "default",
            **({"LD_LIBRARY_PATH": str(library)} if library else {}),
        }
        plugins = ["-p", "no:cacheprovider", "-p", "on_trigmon"]
        command = [sys.executable, "-m", "pytest", "-v", *plugins, "--timeout", "60"]
        done = subprocess.run([*command, "."], cwd=suite, env=env, capture_output=True, text=True)
    counts = collections.defaultdict(collections.Counter)
    for file, outcome in _TEST.findall(done.stdout):
        counts[file][outcome.lower()] += 1
    return counts, done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suite", nargs="?", type=Path, help="the folder code/tests of the package's source")
    parser.add_argument("--library", type=Path, help="the directory of libmqm_r.so")
    parser.add_argument("--output", type=Path, help="a file for all that the suite prints")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        counts, printed = run(given.suite or fetched(Path(made)), given.library)
    if given.output:
        given.output.write_text(printed)
    outcomes = ("passed", "failed", "error", "skipped")
    for file, found in [*sorted(counts.items()), ("all", sum(counts.values(), collections.Counter()))]:
        print(f"{file:28}", *(f"{found[outcome]:4} {outcome}" for outcome in outcomes))
    return 0 if counts else 1


if __name__ == "__main__":
    sys.exit(main())
