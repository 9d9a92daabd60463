"""Each verb gets the facts that its functions name in their types: the table of verbs holds functions of many types."""

from __future__ import annotations

from typing import get_type_hints

import pytest

from trigmon.rules.model.facts import WIDE, Facts, WideFacts
from trigmon.rules.verbs import VERBS


@pytest.mark.parametrize("call", VERBS, ids=lambda call: call.__name__)
def test_a_verb_gets_the_facts_that_its_functions_require(call):
    verb = VERBS[call]
    wants = get_type_hints(verb.wants)["return"]
    gets = WIDE[wants] if verb.is_wide else Facts
    for function in filter(None, (verb.decide, verb.look_for)):
        assert issubclass(gets, get_type_hints(function)["facts"]), function.__name__


@pytest.mark.parametrize("wants", [wants for wants in WIDE if WIDE[wants] is not WideFacts], ids=lambda w: w.__name__)
def test_all_objects_and_runs_are_asked_for_by_wide_verbs_alone(wants):
    asking = [call for call, verb in VERBS.items() if get_type_hints(verb.wants)["return"] is wants]
    assert asking
    assert all(VERBS[call].is_wide for call in asking)
