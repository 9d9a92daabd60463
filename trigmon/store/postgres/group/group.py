"""A queue-sharing group in one schema of PostgreSQL: lists its members and lets a queue manager join.

The schema is the group's own, separate from the schema or file of each member's own data.
"""

from __future__ import annotations

from trigmon.rules.model.group_members import Member
from trigmon.store.postgres import group_sql
from trigmon.store.postgres.connection import Place, connect
from trigmon.store.postgres.group.member_session import NOTHING_REACHED, Reached, check_name
from trigmon.store.postgres.group.membership import PEEK_S, PostgresMembership, member_of
from trigmon.store.postgres.schemas import GROUP


class PostgresGroup:
    """A queue-sharing group: ``place`` is its schema, ``name`` what QSGNAME shows.

    ``peek_s``: turns without work in the group check for others' changes at least so often, in seconds; 0: each turn.
    """

    def __init__(self, place: Place, name: str, peek_s: float = PEEK_S) -> None:
        self.place = place
        self.name = name
        self._peek_s = peek_s

    def join(self, member: str, reached: Reached = NOTHING_REACHED) -> PostgresMembership:
        """Returns a membership for this queue manager; it is active once its ``open`` has returned.

        ``reached``: what the member's previous process knew to be durable. Raises Unreachable; Unfit for a server that
        has less, or that no standby confirms commits for; MayLose, StoreBroken, UnsupportedVersion; AnothersStore
        for the schema of another group.
        """
        return PostgresMembership(self.place, self.name, member, self._peek_s, reached)

    def members(self) -> list[Member]:
        """Returns every member ever joined, by name. Raises as :meth:`join` does."""
        with connect(self.place, GROUP) as connection:
            check_name(connection, self.place, self.name)
            return [member_of(row) for row in connection.execute(group_sql.MEMBERS)]
