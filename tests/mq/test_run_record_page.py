"""The page of a run's record is made from comments: each field has one, and all fields stand in one of its parts."""

from __future__ import annotations

import inspect
import re

import pytest

from trigmon.mq import run
from trigmon.mq.descriptors import TriggerMessage

PARTS = (run.Origin, run.Bridged, run.Program, run.Outcome, run.Cancellation, run.SparkJob, run.Work)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_each_field_has_a_comment(part):
    lines = inspect.getsource(part).splitlines()
    for name in part.__struct_fields__:
        at = next(n for n, line in enumerate(lines) if re.match(rf"    {name}: ", line))
        assert "#" in lines[at] or lines[at - 1].strip().startswith("#"), name


def test_each_field_of_the_record_is_of_one_part():
    of_parts = [name for part in (TriggerMessage, *PARTS) for name in part.__struct_fields__]
    assert sorted(of_parts) == sorted(set(of_parts))
    assert set(run.RunFields.__annotations__) - set(of_parts) == {"run_id", "state", "why"}
