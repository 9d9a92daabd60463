"""A database whose schema has another version is refused, and left as it is."""

from __future__ import annotations

import apsw
import pytest

from tests.worlds import World
from trigmon.store.port import UnsupportedVersion
from trigmon.store.sqlite.connection import RELEASED_VERSION, SCHEMA_VERSION


@pytest.mark.parametrize(
    ("version", "remedy"),
    [(SCHEMA_VERSION + 1, "install a later one"), (RELEASED_VERSION - 1, "empty its queues .* empty directory")],
)
def test_another_version_is_refused_with_a_remedy(tmp_path, version, remedy):
    World("sqlite", tmp_path).qm.stop()
    db = apsw.Connection(str(tmp_path / "qm.db"))
    db.execute(f"PRAGMA user_version = {version}")
    db.close()
    with pytest.raises(UnsupportedVersion, match=f"has schema {version}.* knows {SCHEMA_VERSION}: {remedy}"):
        World("sqlite", tmp_path)
    db = apsw.Connection(str(tmp_path / "qm.db"))
    assert db.execute("PRAGMA user_version").fetchall() == [(version,)]
    db.close()
