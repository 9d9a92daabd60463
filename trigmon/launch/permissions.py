"""The permissions that a monitor's administrator grants to programs, and the check of a definition against them.

The same for every application type: user, limits, secrets, and further variables of the environment.
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
        """Returns the grants of the settings, as they stand in the settings file."""
        return cls(
            Path(run_as_file) if run_as_file else None,
            Path(secrets_directory) if secrets_directory else None,
            tuple(environment),
        )

    def completed(self, plan: LaunchPlan, process: Process) -> LaunchPlan:
        """Returns the plan with the user, limits, secrets and variables that the definition asks for.

        Raises LaunchError with the remedy.
        """
        more = self.variables()
        wishes: dict[str, object] = {}
        if process.secrets.strip():
            wishes["secrets"] = secret_files.found(process.secrets, self.secrets_directory, os.environ)
        if process.run_as:
            user = allowed(process.run_as, self.run_as_file, gives_files="secrets" in wishes)
            if user is not None:
                wishes["user"] = user.name
                # systemd's default for a service; another user may not be allowed to enter the monitor's own directory.
                wishes["working_directory"] = plan.working_directory or "/"
                more = user.environment() | more
        for name in ("memory_limit_mib", "cpu_limit_s", "open_files_limit"):
            if limit := getattr(process, name):
                wishes[name] = limit
        if more:
            wishes["environment"] = more | plan.environment
        return replace(plan, **wishes) if wishes else plan

    def variables(self) -> dict[str, str]:
        """Returns the variables that the administrator gives to every program."""
        pairs = (entry.partition("=") for entry in self.environment)
        return {
            name: value if equals else os.environ[name] for name, equals, value in pairs if equals or name in os.environ
        }
