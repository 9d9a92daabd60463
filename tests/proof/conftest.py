"""What the proofs' own tests need."""

import random

import pytest


@pytest.fixture
def chance():
    return random.Random(2026)
