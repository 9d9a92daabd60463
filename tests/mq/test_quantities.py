"""Numbers, spans and sizes have one form in every text."""

from __future__ import annotations

import pytest

from trigmon.mq.quantities import counted, size, span


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0 ms"),
        (999.9, "999 ms"),
        (1000, "1.0 s"),
        (9999, "9.9 s"),
        (10_000, "10 s"),
        (89_999, "89 s"),
        (90_000, "2 min"),
        (89 * 60_000, "89 min"),
        (90 * 60_000, "2 h"),
        (35 * 3_600_000, "35 h"),
        (36 * 3_600_000, "2 d"),
        (500 * 86_400_000, "500 d"),
    ],
)
def test_a_span_has_one_unit_and_its_text_does_not_go_back_while_it_grows(ms, text):
    assert span(ms) == text


@pytest.mark.parametrize(
    ("bytes_", "text"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (64 << 20, "64 MiB"), (3 << 50, "3072 TiB")],
)
def test_a_size_has_units_of_1024(bytes_, text):
    assert size(bytes_) == text


def test_a_number_agrees_with_its_noun_and_has_its_thousands_apart():
    assert [counted(n, "message") for n in (0, 1, 2, 12_000)] == [
        "0 messages",
        "1 message",
        "2 messages",
        "12 000 messages",
    ]
