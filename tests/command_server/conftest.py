"""A queue manager in this process, and a program of its administrator."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.command_server.commands import Program
from trigmon.simulate.in_process import InProcess


@pytest.fixture
def stage() -> Iterator[InProcess]:
    stage = InProcess(["QM1"], "memory")
    yield stage
    stage.close()


@pytest.fixture
def program(stage: InProcess) -> Program:
    return Program(stage)
