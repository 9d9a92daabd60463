"""The character sets of texts in PCF messages, by CCSID."""

from __future__ import annotations

from typing import Final

CODECS: Final = {
    1208: "utf-8",
    367: "ascii",
    819: "latin-1",
    923: "iso8859-15",
    850: "cp850",
    437: "cp437",
    858: "cp858",
    1252: "cp1252",
    5348: "cp1252",
    37: "cp037",
    500: "cp500",
    1140: "cp1140",
    1148: "cp500",
}
"""Python's codec by CCSID. 1148 is 500 with the euro sign, which no name holds."""
OF_Q_MGR: Final = (0, -1, -2)
"""MQCCSI_Q_MGR or MQCCSI_DEFAULT, MQCCSI_EMBEDDED, MQCCSI_INHERIT: the queue manager's, which is UTF-8."""


def text_codec(ccsid: int) -> str | None:
    """Returns Python's name of a character set, None for one that is not known."""
    return "utf-8" if ccsid in OF_Q_MGR else CODECS.get(ccsid)
