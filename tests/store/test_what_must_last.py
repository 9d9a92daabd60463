"""What a power cut must not undo once answered, and what a crash undoes anyway: for queues that programs make."""

import pytest

from trigmon.mq.attributes import LocalQueue
from trigmon.mq.enums import DefinitionType, ObjectType
from trigmon.rules.model.change import SYNCED, VOLATILE
from trigmon.rules.model.changes import DeleteLogically, DropDefinition, SetDefinition


def changes_of(definition_type, is_temporary):
    definition = LocalQueue(name="Q", definition_type=definition_type)
    return [
        SetDefinition(ObjectType.QLOCAL, definition),
        DeleteLogically("Q", is_temporary),
        DropDefinition(ObjectType.QLOCAL, "Q", is_temporary),
    ]


@pytest.mark.parametrize("definition_type", [DefinitionType.PREDEFINED, DefinitionType.PERMANENT_DYNAMIC])
def test_a_lasting_queue_is_made_and_deleted_durably(definition_type):
    for change in changes_of(definition_type, False):
        assert change.durability is SYNCED


def test_a_temporary_queue_costs_no_sync():
    for change in changes_of(DefinitionType.TEMPORARY_DYNAMIC, True):
        assert change.durability is VOLATILE
