"""Importing this puts trigmon in the place of the C module of IBM's Python package ``ibmmq``.

import trigmon.mqi.replace_ibmmqc  # before: import ibmmq
"""

from __future__ import annotations

import sys

from trigmon.mqi import ibmmqc


def replace() -> None:
    """Puts it there; once more does nothing more."""
    sys.modules["ibmmq.ibmmqc"] = ibmmqc


replace()
