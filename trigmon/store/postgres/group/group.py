"""A queue-sharing group in one schema of PostgreSQL: who its members are, and the way in for each of them.

The schema is the group's own, whatever schema or file a member keeps its own data in.
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

    ``peek_s``: turns that do nothing in the group ask at least so often what others did, 0: each of them.
    """

    def __init__(self, place: Place, name: str, peek_s: float = PEEK_S) -> None:
        self.place = place
        self.name = name
        self._peek_s = peek_s

    def join(self, member: str, reached: Reached = NOTHING_REACHED) -> PostgresMembership:
        """A session for this queue manager; it is active from its ``open`` on.

        ``reached`` is what its last life was told to last. Raises Unreachable, Unfit for a server that has less or
        whose commits nobody would confirm, MayLose, StoreBroken, StoreTooNew, AnothersStore for the schema of another
        group.
        """
        return PostgresMembership(self.place, self.name, member, self._peek_s, reached)

    def members(self) -> list[Member]:
        """All members that ever were, by name. Raises Unreachable, StoreBroken, StoreTooNew, AnothersStore."""
        with connect(self.place, GROUP) as connection:
            check_name(connection, self.place, self.name)
            return [member_of(row) for row in connection.execute(group_sql.MEMBERS)]
