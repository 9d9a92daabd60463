"""``with_keytab.py PROGRAM ...``: becomes PROGRAM, the name behind ``--keytab`` replaced by the run's own copy of it.

Where a run's secrets lie is known when it runs: the keeper and systemd each have their own place, and say it in
CREDENTIALS_DIRECTORY. Executed by its path, with nothing but the standard library.
"""

from __future__ import annotations

import os
import sys


def main(argv: list[str], directory: str) -> list[str]:
    """The words to execute; the first ``--keytab`` is Spark's, for its options stand before the program's own."""
    at = argv.index("--keytab") + 1
    return [*argv[:at], f"{directory}/{argv[at]}", *argv[at + 1 :]]


if __name__ == "__main__":
    words = main(sys.argv[1:], os.environ["CREDENTIALS_DIRECTORY"])
    os.execv(words[0], words)  # noqa: S606 - no shell, on purpose
