"""The texts of the console, from values."""

import pytest
from msgspec.structs import replace

from trigmon.console.cells import ATTENTION, attention_cells, heading, widths
from trigmon.console.overview import waiting_overview
from trigmon.rules.attention import KINDS, Attention


def test_every_kind_of_finding_has_a_name_of_its_own_that_fits_and_nearly_full_is_not_full():
    names = [attention_cells(Attention(kind, "Q", "text", "help"), 1, 100)[0] for kind in KINDS]
    assert "near full" in names
    assert "full" not in names
    assert max(map(len, names)) < widths(ATTENTION, 100)[0]


BUSY = replace(
    waiting_overview("QM1", ""),
    now_ms=90 * 86_400_000,
    started_ms=1,
    monitors=12,
    messages=1_234_567,
    oldest_ms=86_400_000,
    runs_now=16,
    runs_held=123,
    runs_ok=123_456,
    runs_failed=12_345,
    disk_free_bytes=52 << 30,
)


def test_a_heading_has_all_where_it_fits():
    line = heading(BUSY, 200)
    assert line.startswith("up 90 d  12 monitors  1 234 567 messages, oldest 89 d  runs 16 now, 123 held, ")
    assert line.endswith("  52 GiB free")


@pytest.mark.parametrize("name", [3, 12, 48])
def test_a_heading_is_one_line_of_100_columns(name):
    line = heading(BUSY, 100 - name - 2)
    assert len(line) <= 100 - name - 2
    assert "12 monitors  1 234 567 messages" in line
    if name < 10:
        assert "123 456 ok / 12 345 bad" in line
