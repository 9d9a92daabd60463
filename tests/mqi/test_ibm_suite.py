"""IBM's own suite of the package ``ibmmq``, fetched for the run, on trigmon.mqi and on the C library."""

from __future__ import annotations

import collections
import subprocess
from importlib.util import find_spec

import pytest

from tests.mqi.ibm_suite import MUST_PASS, fetched, run

PASS_AT_LEAST = 93
"""Of 119, of which 12 are skipped; the others want topics, a password that is refused, or texts of IBM's."""


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ibmmq") is None, reason="ibmmq has no wheel for this machine")
@pytest.mark.parametrize("on", ["trigmon.mqi", "the C library"])
def test_it_passes_but_for_what_is_not_here(tmp_path, on, request):
    library = request.getfixturevalue("library_directory") if on == "the C library" else None
    try:
        suite = fetched(tmp_path)
    except subprocess.CalledProcessError:
        pytest.skip("the index does not give the source of ibmmq")
    counts, printed = run(suite, library)
    assert all(counts[file]["passed"] for file in MUST_PASS), printed
    assert {file: counts[file]["failed"] + counts[file]["error"] for file in MUST_PASS} == dict.fromkeys(MUST_PASS, 0)
    assert sum(counts.values(), collections.Counter())["passed"] >= PASS_AT_LEAST, printed
