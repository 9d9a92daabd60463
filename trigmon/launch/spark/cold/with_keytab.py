"""``with_keytab.py PROGRAM ...``: executes PROGRAM with the name behind ``--keytab`` as a path of the run's secrets.

The directory of a run's secrets is known only when it runs: the keeper and systemd each have their own, and pass it as
CREDENTIALS_DIRECTORY. Executed by its path, with only the standard library.
"""

from __future__ import annotations

import os
import sys


def main(argv: list[str], directory: str) -> list[str]:
    """Returns the words to execute; the first ``--keytab`` is Spark's, as its options precede the program's own."""
    at = argv.index("--keytab") + 1
    return [*argv[:at], f"{directory}/{argv[at]}", *argv[at + 1 :]]


if __name__ == "__main__":
    words = main(sys.argv[1:], os.environ["CREDENTIALS_DIRECTORY"])
    os.execv(words[0], words)  # noqa: S606 - no shell, on purpose
