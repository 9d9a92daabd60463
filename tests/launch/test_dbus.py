"""D-Bus messages: what is written is what the specification says, and what is read is what was written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trigmon.keeper import dbus

# The header of a call as the specification's table lays it out: fixed part, fields (path, interface, member,
# destination, signature) each on a boundary of eight bytes, then the body.
STOP = (
    b"l\1\2\1" b"\x1b\0\0\0" b"\7\0\0\0" b"\xa1\0\0\0"
    b"\1\1o\0" b"\x19\0\0\0/org/freedesktop/systemd1\0" b"\0\0\0\0\0\0"
    b"\2\1s\0" b"\x20\0\0\0org.freedesktop.systemd1.Manager\0" b"\0\0\0\0\0\0\0"
    b"\3\1s\0" b"\x08\0\0\0StopUnit\0" b"\0\0\0\0\0\0\0"
    b"\6\1s\0" b"\x18\0\0\0org.freedesktop.systemd1\0" b"\0\0\0\0\0\0\0"
    b"\x08\1g\0" b"\2ss\0" b"\0\0\0\0\0\0\0"
)  # fmt: skip


def test_a_call_is_written_byte_for_byte_as_specified():
    body = b"\x05\0\0\0a.bcd\0\0\0\7\0\0\0replace\0"
    made = dbus.call(
        7, "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager", "StopUnit", "ss", "a.bcd", "replace"
    )
    fields = made[12:16]
    assert made[:4] == b"l\1\2\1"
    assert int.from_bytes(made[4:8], "little") == len(body)
    assert int.from_bytes(made[8:12], "little") == 7
    assert made.endswith(body)
    assert made[16 : 16 + int.from_bytes(fields, "little")] == STOP[16 : 16 + int.from_bytes(fields, "little")]


@pytest.mark.parametrize(
    ("signature", "found"),
    [
        ("", []),
        ("ssa(sv)a(sa(sv))", ["s", "s", "a(sv)", "a(sa(sv))"]),
        ("a{sv}as", ["a{sv}", "as"]),
        ("aay(sb)", ["aay", "(sb)"]),
    ],
)
def test_a_signature_falls_into_its_complete_types(signature, found):
    assert dbus.parts(signature) == found


VALUES = {
    "y": st.integers(0, 255),
    "b": st.booleans(),
    "i": st.integers(-(2**31), 2**31 - 1),
    "u": st.integers(0, 2**32 - 1),
    "t": st.integers(0, 2**64 - 1),
    "s": st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"])),
    "ay": st.binary(),
}
KINDS = st.sampled_from(sorted(VALUES))


@st.composite
def bodies(draw):
    """A signature, and values of it: plain ones, and structures, arrays and dictionaries of them."""
    signature, values = "", []
    for _ in range(draw(st.integers(0, 5))):
        first, second = draw(KINDS), draw(KINDS)
        pair = st.tuples(VALUES[first], VALUES[second])
        form, value = draw(
            st.one_of(
                VALUES[first].map(lambda value: ("{0}", value)),
                pair.map(lambda value: ("({0}{1})", value)),
                st.lists(pair).map(lambda value: ("a({0}{1})", value)),
                st.dictionaries(VALUES["s"], VALUES[second]).map(lambda value: ("a{{s{1}}}", value)),
            )
        )
        signature += form.format(first, second)
        values.append(value)
    return signature, tuple(values)


@given(bodies(), st.integers(1, 40))
def test_what_is_written_is_read_again_however_it_comes(body, size):
    signature, values = body
    raw = dbus.call(3, "/a", "b.c", "D", signature, *values) * 2
    messages = dbus.Messages()
    read = [message for at in range(0, len(raw), size) for message in messages.feed(raw[at : at + size])]
    assert [(one.member, one.path, one.serial, one.body) for one in read] == [("D", "/a", 3, values)] * 2


def test_a_variant_is_written_with_its_signature_and_read_as_its_value():
    raw = dbus.call(1, "/a", "b.c", "D", "a(sv)", [("n", ("t", 7)), ("l", ("a(sb)", [("x", True)]))])
    assert dbus.parse(raw).body == ([("n", 7), ("l", [("x", True)])],)


@pytest.mark.parametrize("raw", [b"x" * 16, b"l" + b"\xff" * 15])
def test_what_is_no_message_is_refused(raw):
    with pytest.raises(ValueError, match=r"not a message|bytes"):
        dbus.Messages().feed(raw)


def test_a_text_with_a_nul_is_refused():
    with pytest.raises(ValueError, match="NUL"):
        dbus.call(1, "/a", "b.c", "D", "s", "\0")
