"""PROTOCOL.md is held to the structs: every word with its fields in order, and every call with its reply."""

import re
from pathlib import Path

import pytest

from tests.wire.values import CALLS, REPLIES, tag_of
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.wire import codec

TEXT = Path(codec.__file__).with_name("PROTOCOL.md").read_text()
ROWS = dict(re.findall(r"^\| `(\w+)` \| ([^|]*?) ?\|", TEXT, re.MULTILINE))
ANSWERS = dict(re.findall(r"^\| `(\w+)` \|[^|]*\| `(\w+)` \|$", TEXT, re.MULTILINE))


@pytest.mark.parametrize("kind", [codec.Hello, codec.Welcome, *CALLS, *REPLIES], ids=tag_of)
def test_every_struct_stands_in_the_text_with_its_fields_in_order(kind):
    assert [field for field in ROWS[tag_of(kind)].split(", ") if field] == list(kind.__struct_fields__)


@pytest.mark.parametrize("kind", CALLS, ids=tag_of)
def test_every_call_stands_with_the_reply_its_docstring_names(kind):
    answer = ANSWERS[tag_of(kind)]
    named = re.search(r"Answered by (\w+)", kind.__doc__)
    assert answer in {tag_of(reply) for reply in REPLIES}
    if named:
        assert answer == next(tag_of(reply) for reply in REPLIES if reply.__name__ == named[1])


def test_the_text_knows_no_struct_that_is_not_there():
    assert set(ROWS) == {tag_of(kind) for kind in (codec.Hello, codec.Welcome, *CALLS, *REPLIES)}


def test_the_descriptors_fields_stand_in_order():
    words = re.search(r"A descriptor is an array of all fields of the MQMD: ([^.]*)\.", TEXT)[1]
    assert re.split(r",\s+", words) == list(MessageDescriptor.__struct_fields__)


def test_the_text_names_the_version_that_is_spoken():
    assert f"`protocol` is {codec.PROTOCOL_VERSION} " in TEXT
