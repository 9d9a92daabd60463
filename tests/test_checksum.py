"""CRC-32 is zlib's, whichever library computes it: a store of one machine is read on another."""

from __future__ import annotations

import random
import subprocess
import sys
import zlib

import pytest

from trigmon.checksum import crc32


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_it_is_the_one_of_zlib_whatever_the_length_the_buffer_and_the_start(kind):
    dice = random.Random(1)
    for length in (*range(70), 1023, 1024, 65_537, 1_000_003):
        data, start = dice.randbytes(length), dice.choice([0, 1, 2**32 - 1, dice.getrandbits(32)])
        assert crc32(kind(data), start) == zlib.crc32(data, start)
        assert crc32(kind(data)) == zlib.crc32(data)


def test_a_platform_without_the_fast_library_has_that_of_zlib():
    program = (
        "import sys, zlib; sys.modules['isal'] = None; from trigmon.checksum import crc32; print(crc32 is zlib.crc32)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "True"
