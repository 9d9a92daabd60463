from __future__ import annotations

import pytest

from trigmon.cli.output import cell


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a\x1b[31mb\x07", "a·[31mb·"),
        ("line\n\tnext é", "line\n\tnext é"),
        (["x\x1b"], "x·"),
        ({"why": "\x9b2J"}, "why=·2J"),
    ],
)
def test_what_a_job_says_does_nothing_to_a_terminal(value, shown):
    assert cell(value).replace("'", "") == shown
