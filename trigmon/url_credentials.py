"""Texts with URLs as a log, a record or a terminal shows them: without what stands before the host."""

from __future__ import annotations

import re


def without_credentials(text: str) -> str:
    """Returns a text whose URLs have ``***`` in place of the password, or of what is no user and password.

    A password may have an ``@`` or a ``/``: all up to the last ``@`` of a word goes.
    """
    return re.sub(r"\S+", lambda word: _hidden(word[0]), text)


def _hidden(word: str) -> str:
    before, _, rest = word.partition("//")
    given, at, host = rest.rpartition("@")
    if not at:
        return word
    user, colon, _ = given.partition(":")
    return f"{before}//{user if colon else ''}{colon}***@{host}"
