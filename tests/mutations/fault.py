"""A fault: one thing the law of triggering could get wrong, planted at run time by replacing functions and tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class Fault:
    """``name`` says what is wrong, ``plant`` makes it so until the patches are undone."""

    name: str
    plant: Callable[[pytest.MonkeyPatch], None]
