"""Mutated structures and replies against the C library, built with sanitizers of addresses and undefined behaviour."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from trigmon.mqi import library

FLAGS = ("-std=gnu11", "-O1", "-g", "-D_GNU_SOURCE", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
EVERY_DAY, MANY = 5_000, 1_000_000


@pytest.fixture(scope="module")
def fuzz(tmp_path_factory):
    """The program that calls and answers the library, with the library's source files in it."""
    if (compiler := library.compiler()) is None:
        pytest.skip("there is no C compiler")
    program = tmp_path_factory.mktemp("fuzz") / "fuzz"
    sources = [Path(__file__).parent / "fuzz.c", *sorted(library.SOURCES.glob("*.c"))]
    argv = [compiler, *FLAGS, f"-I{library.SOURCES}", "-o", program, *sources, "-lpthread", "-ldl"]
    done = subprocess.run(argv, capture_output=True, text=True)
    if "asan" in done.stderr or "ubsan" in done.stderr:
        pytest.skip("the compiler has no sanitizers")
    assert done.returncode == 0, done.stderr
    return program


def fuzzed(program, seed, count, runtime):
    """Returns what the program said of so many calls from this seed: their number alone where nothing was wrong."""
    env = os.environ | {"TRIGMON_RUNTIME": str(runtime)}
    done = subprocess.run([program, str(seed), str(count)], env=env, capture_output=True, text=True, timeout=800)
    return done.returncode, done.stdout, done.stderr[-4000:]


@pytest.mark.parametrize("seed", [1, 2])
def test_mutated_structures_and_replies_are_refused_and_nothing_else_happens(fuzz, seed, tmp_path):
    assert fuzzed(fuzz, seed, EVERY_DAY, tmp_path) == (0, f"{EVERY_DAY}\n", "")


@pytest.mark.slow
def test_it_is_so_with_a_million(fuzz, tmp_path):
    seed = time.time_ns() % 1_000_000_007
    assert fuzzed(fuzz, seed, MANY, tmp_path) == (0, f"{MANY}\n", ""), f"seed {seed}"
