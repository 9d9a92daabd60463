"""A put that fires passes few files: what one has to read to follow it."""

from __future__ import annotations

import subprocess
import sys

MOST_FILES = 30


def test_a_put_that_fires_passes_thirty_files_at_most_from_its_first_byte_to_the_last_of_its_reply():
    traced = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.put_path"], capture_output=True, text=True, check=True
    ).stdout
    files = [line.split()[0] for line in traced.splitlines()[:-1]]
    assert files[0] == "server/connection.py"
    assert "rules/triggers/conditions.py" in files
    assert len(files) <= MOST_FILES, traced
