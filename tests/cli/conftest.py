from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner, Result

from trigmon.cli.main import cli

Trigmon = Callable[..., Result]


def run_cli(*arguments: str, env: dict[str, str | None] | None = None, **more: Any) -> Result:
    """Returns the command line in this process: its exit code, standard output and standard error."""
    clean: dict[str, str | None] = {
        name: None for name in (*os.environ, "TRIGMON_CONFIG") if name.startswith("TRIGMON_")
    }
    result = CliRunner().invoke(cli, arguments, env=clean | (env or {}), prog_name="trigmon", **more)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def trigmon(shared_daemon) -> Trigmon:
    """Returns the command line against the file's queue manager: ``trigmon("queue", "list")``."""
    ours = {name: value for name, value in shared_daemon.env.items() if name.startswith("TRIGMON_")}
    return lambda *arguments, **more: run_cli(*arguments, env=ours, **more)


def objects(result: Result) -> list[dict[str, Any]]:
    """Returns the JSON objects of an output that succeeded, one a line."""
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]
