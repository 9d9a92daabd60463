"""Changes of what a queue-sharing group has, and of what a member has judged of it."""

from __future__ import annotations

from trigmon.mq.attributes import AnyDefinition
from trigmon.mq.enums import ObjectType
from trigmon.rules.model.change import VOLATILE, Change


class SetGroupDefinition(Change, frozen=True):
    """The group has a definition, new or altered, of which each member takes a copy."""

    object_type: ObjectType
    definition: AnyDefinition


class DropGroupDefinition(Change, frozen=True):
    """The group no longer has a definition, and its copies are deleted."""

    object_type: ObjectType
    name: str


class NoteTriggered(Change, frozen=True):
    """A shared queue has fired: for the whole group where its initiation queue is shared.

    ``is_disarmed``: its control goes off with that, in the change that follows.
    """

    durability = VOLATILE

    q_name: str
    is_for_group: bool
    is_disarmed: bool

    @property
    def written_to(self) -> str:
        """Returns the queue that has fired."""
        return self.q_name


class NoteJudged(Change, frozen=True):
    """All that happened to a shared queue until now has been judged on this member. Forgotten at restart."""

    durability = VOLATILE

    q_name: str
