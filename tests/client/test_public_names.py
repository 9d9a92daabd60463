"""``import trigmon``: what it offers and what it costs."""

import inspect
import subprocess
import sys

import pytest

import trigmon
from trigmon.client.message import Message
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.errors import BY_REASON
from trigmon.mq.replies import WasGot

HEAVY = ["pydantic", "structlog", "pyspark", "click", "yaml", "apsw", "asyncio", "apscheduler"]


def loaded_by(code):
    script = f"import sys\n{code}\nprint(*sys.modules)"
    return set(
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    )


def test_the_client_needs_neither_a_framework_nor_a_loop():
    assert loaded_by("import trigmon; trigmon.connect; trigmon.triggered").isdisjoint(HEAVY)


def test_the_package_alone_loads_nothing_of_its_own():
    assert {name for name in loaded_by("import trigmon") if name.startswith(("trigmon.", "msgspec"))} == set()


def test_every_public_name_is_there():
    for name in trigmon.__all__:
        assert getattr(trigmon, name) is not None
    assert dir(trigmon) == sorted(trigmon.__all__)


def test_every_reason_is_an_exception_of_the_package():
    for kind in BY_REASON.values():
        assert getattr(trigmon, kind.__name__) is kind
        assert issubclass(kind, trigmon.MQError)


def test_a_name_that_is_none_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'conect'"):
        _ = trigmon.conect
    with pytest.raises(AttributeError):
        _ = trigmon.CompCode


def test_a_message_has_every_field_of_its_descriptor():
    message = Message(WasGot(descriptor=MessageDescriptor(priority=3), data=b"one", data_length=3))
    for name in MessageDescriptor.__struct_fields__:
        assert getattr(message, name) == getattr(message.descriptor, name)
    assert repr(message) == f"<Message {'00' * 24} no format, 3 bytes>"
    with pytest.raises(AttributeError, match="a message has no 'colour'"):
        _ = message.colour


def test_the_fields_type_checkers_see_are_the_descriptors():
    source = inspect.getsource(Message)
    block = source.partition("if TYPE_CHECKING:  #")[2].partition("def __init__")[0]
    seen = [line.split(":")[0].strip() for line in block.splitlines()[1:] if ":" in line]
    assert [*seen, "persistence"] == [
        *(name for name in MessageDescriptor.__struct_fields__ if name != "persistence"),
        "persistence",
    ]
