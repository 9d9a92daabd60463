"""What the administrator of a monitor grants the programs it starts, and a definition's wishes held against it.

The same for every application type: as whom, with which limits, with which secrets, and what more of the environment.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from trigmon.launch import secret_files
from trigmon.launch.launch_plan import LaunchPlan
from trigmon.launch.users import allowed
from trigmon.mq.attributes import Process


class Grants(msgspec.Struct, frozen=True):
    """The settings ``monitor.run_as_file``, ``secrets_directory`` and ``environment``; by default nothing.

    ``environment`` are names of the monitor's variables, or ``NAME=value``.
    """

    run_as_file: Path | None = None
    secrets_directory: Path | None = None
    environment: tuple[str, ...] = ()

    @classmethod
    def of(cls, run_as_file: str | None, secrets_directory: str | None, environment: Sequence[str]) -> Grants:
        """From the settings as they stand in the file."""
        return cls(
            Path(run_as_file) if run_as_file else None,
            Path(secrets_directory) if secrets_directory else None,
            tuple(environment),
        )

    def completed(self, plan: LaunchPlan, process: Process) -> LaunchPlan:
        """The plan with what the definition asks for beyond the ordinary. Raises LaunchError with the remedy."""
        more = self.variables()
        wishes: dict[str, object] = {}
        if process.secrets.strip():
            wishes["secrets"] = secret_files.found(process.secrets, self.secrets_directory, os.environ)
        if process.run_as:
            user = allowed(process.run_as, self.run_as_file, gives_files="secrets" in wishes)
            if user is not None:
                wishes["user"] = user.name
                # What systemd has for a service that names no directory; the monitor's own may be nobody else's.
                wishes["working_directory"] = plan.working_directory or "/"
                more = user.environment() | more
        for name in ("memory_limit_mib", "cpu_limit_s", "open_files_limit"):
            if limit := getattr(process, name):
                wishes[name] = limit
        if more:
            wishes["environment"] = more | plan.environment
        return replace(plan, **wishes) if wishes else plan

    def variables(self) -> dict[str, str]:
        """What every program gets beyond the ordinary."""
        pairs = (entry.partition("=") for entry in self.environment)
        return {
            name: value if equals else os.environ[name] for name, equals, value in pairs if equals or name in os.environ
        }
