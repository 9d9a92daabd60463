"""Hypothesis strategies for every value that travels, made from the structs' own fields and types."""

import types
from enum import IntEnum
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
from hypothesis import strategies as st

from trigmon.mq.calls import AnyCall
from trigmon.mq.replies import AnyReply

CALLS = get_args(AnyCall)
REPLIES = get_args(AnyReply)

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
numbers = st.integers(-(2**63), 2**63 - 1)
plain = st.recursive(
    st.none() | st.booleans() | numbers | st.floats(allow_nan=False) | text | st.binary(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=8,
)
SIMPLE = {
    int: numbers,
    str: text,
    bytes: st.binary(max_size=200),
    bool: st.booleans(),
    float: st.floats(allow_nan=False),
    Any: plain,
    type(None): st.none(),
}


def of_type(kind: Any) -> st.SearchStrategy[Any]:
    """Values of an annotation as the structs use it."""
    if kind in SIMPLE:
        return SIMPLE[kind]
    origin = get_origin(kind)
    if origin is list:
        return st.lists(of_type(get_args(kind)[0]), max_size=4)
    if origin is dict:
        return st.dictionaries(text, of_type(get_args(kind)[1]), max_size=4)
    if origin in (Union, types.UnionType):
        return st.one_of([of_type(inner) for inner in get_args(kind)])
    if issubclass(kind, IntEnum):
        return st.sampled_from(kind)
    return structs(kind)


def structs(kind: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    """Structs of a class, with values in all their fields or only in those that need one."""
    hints = get_type_hints(kind)
    needed, optional = {}, {}
    for field in msgspec.structs.fields(kind):
        (needed if field.required else optional)[field.name] = of_type(hints[field.name])
    return st.fixed_dictionaries(needed, optional=optional).map(lambda given: kind(**given))


calls = st.one_of([structs(kind) for kind in CALLS])
replies = st.one_of([structs(kind) for kind in REPLIES])


def tag_of(kind: type[msgspec.Struct]) -> str:
    """The word a struct begins with on the wire."""
    return str(kind.__struct_config__.tag)
