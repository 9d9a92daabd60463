"""The texts of the console, from values."""

from trigmon.console.cells import ATTENTION, attention_cells, widths
from trigmon.rules.attention import KINDS, Attention


def test_every_kind_of_finding_has_a_name_of_its_own_that_fits_and_nearly_full_is_not_full():
    names = [attention_cells(Attention(kind, "Q", "text", "help"), 1, 100)[0] for kind in KINDS]
    assert "near full" in names
    assert "full" not in names
    assert max(map(len, names)) < widths(ATTENTION, 100)[0]
