"""MQ's commands as programs of their own, by their names in a directory that ``trigmon mq-commands`` made."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.cli.conftest import run_cli


class MqPrograms:
    """Runs MQ's commands by their names against a queue manager; each run is the finished process."""

    def __init__(self, daemon, directory: Path) -> None:
        self.daemon = daemon
        self.directory = directory
        made = run_cli("mq-commands", str(directory), env={"PATH": "/usr/bin:/bin"})
        assert made.exit_code == 0, made.stderr

    def __call__(self, name: str, *arguments: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        path = f"{self.directory}:/usr/bin:/bin"
        return subprocess.run(
            [str(self.directory / name), *arguments],
            env={k: v for k, v in self.daemon.env.items() if k != "TRIGMON_QMGR"} | {"PATH": path} | env,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def lines(self, name: str, *arguments: str, stdin: str = "", status: int = 0) -> list[str]:
        """Returns the lines that a command printed that ended with ``status``."""
        done = self(name, *arguments, stdin=stdin)
        assert done.returncode == status, (done.stdout, done.stderr)
        return done.stdout.splitlines()
