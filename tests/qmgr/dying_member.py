"""``python -m tests.qmgr.dying_member DIRECTORY DSN SCHEMA STEP WHEN``: a member that ends itself within a commit.

It works on its own store and on the group's in one unit of work, and commits; SIGKILL comes before or after the step.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from tests.qmgr.members import Member, works_on_both
from trigmon.mq.calls import Commit
from trigmon.store.postgres.connection import Place
from trigmon.store.postgres.group.group import PostgresGroup

STEPS = ("own.prepare", "shared.end_unit", "shared.end", "own.end")


def main(directory: str, dsn: str, schema: str, step: str, when: str) -> None:
    member = Member("sqlite", Path(directory), PostgresGroup(Place(dsn, schema, accept_loss=True), "QSG1", 0))
    works_on_both(member)
    half, name = step.split(".")
    where = getattr(member, half)
    right = getattr(where, name)

    def dies(*args: object) -> None:
        if when == "after":
            right(*args)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(where, name, dies)
    member.do(Commit(unit=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
