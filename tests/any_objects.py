"""Hypothesis strategies for objects: any value that the table of attributes allows."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from trigmon.mq.attributes import ATTRIBUTES, Attribute
from trigmon.mq.calls import Alter, Call, Define
from trigmon.mq.enums import ObjectType
from trigmon.rules.objects.define import DEFAULT_OBJECTS

names = st.text("ABZabz019./_%", min_size=1, max_size=48)
texts = st.one_of(
    st.sampled_from(
        ["", "on", "null", "012", "1e3", "it's", "a 'b'", "x +", "- y", "* z", "a;b", "#c", "{d}", "k=v w"]
    ),
    st.text(st.characters(min_codepoint=32, exclude_categories=("Cs",), exclude_characters="\x7f"), max_size=20),
    st.text("'+-*;(), a", max_size=20),
)
_files = st.lists(st.sampled_from(["a.py", "/b/c", "hdfs://n/d.zip#e", "ü.txt"]), max_size=3).map(",".join)
_memory = st.sampled_from(["", "512m", "2g", "1T"])
FITTING: dict[str, st.SearchStrategy[Any]] = {
    "authorities": st.sampled_from(["none", "put", "put,get,browse", "inquire", "alladm"]),
    "cron": st.sampled_from(["", "0 2 * * *", "*/5 1-3 1,15 * mon-fri"]),
    "every_s": st.sampled_from([0, 0, 1, 900]),
    "timezone": st.sampled_from(["UTC", "UTC", "Europe/Berlin"]),
    "directory": st.sampled_from(["/srv/in", "/srv/two words"]),
    "pattern": st.sampled_from(["*", "*.csv", "a b?"]),
    "done": st.sampled_from(["", "/srv/done"]),
    "failed": st.sampled_from(["", "/srv/failed"]),
    "run_as": st.sampled_from(["", "load"]),
    "virtualenv": st.sampled_from(["", "/srv/venv"]),
    "warm_interpreter": st.sampled_from(["no"] * 9 + ["yes"]),
    "warm_modules": st.sampled_from(["", "json", "pandas  a.b"]),
    "working_directory": st.sampled_from(["", "/srv", "/srv/two words/../x"]),
    "secrets": st.sampled_from(["", "db", "db, key"]),
    "spark_master": st.sampled_from(["", "local[2]", "yarn", "spark://m:7077", "sc://c:15002", "k8s://https://k:6443"]),
    "spark_class": st.sampled_from(["", "org.example.Load"]),
    "spark_conf": st.sampled_from(["", "a=1", "a=1   'b=2 3'"]),
    "spark_py_files": _files,
    "spark_files": _files,
    "spark_archives": _files,
    "spark_jars": _files,
    "spark_packages": st.sampled_from(["", "g:a:1", "g:a:1, h:b:2"]),
    "spark_driver_memory": _memory,
    "spark_executor_memory": _memory,
    "spark_principal": st.sampled_from(["", "load/h@R"]),
    "spark_keytab": st.sampled_from(["", "load.keytab"]),
    "spark_environment": st.sampled_from(["", "A=1", "A=  B='two words'"]),
    "spark_arguments": st.sampled_from(["", "--queue {queue}", "'two words'   x"]),
}
"""Values that fit, of attributes in which hardly any text would: a definition of any text would hardly ever be one."""


def values(attribute: Attribute) -> st.SearchStrategy[Any]:
    """Draws a plain value of one attribute."""
    if attribute.name in FITTING:
        return FITTING[attribute.name]
    if attribute.is_name:
        return st.one_of(st.just(""), names)
    if attribute.is_names:
        return st.lists(names, max_size=4)
    if attribute.is_text:
        fitting = texts.filter(lambda text: len(text.encode()) <= attribute.length)
        # A text ends where its trailing blanks begin, as fields of fixed length have it.
        return fitting.map(lambda text: text.rstrip(" "))
    if attribute.flags or attribute.words:
        kind = type(attribute.default)
        members = (attribute.words or kind.__members__).values()
        plain = st.sampled_from([attribute.plain(member) for member in members])
        return st.one_of(plain, st.integers(65_537, attribute.high)) if attribute.user_range else plain
    return st.integers(attribute.low, min(attribute.high, 10**9))


def attributes(which: ObjectType) -> st.SearchStrategy[dict[str, Any]]:
    """Draws some plain attributes of an object, by long name."""
    writable = {a.name: values(a) for a in ATTRIBUTES[which].values() if not a.read_only}
    return st.fixed_dictionaries({}, optional=writable)


record_names = st.builds(
    lambda of_type, profile, entity: f"{of_type} {profile} {entity}",
    st.sampled_from(["queue", "namelist", "process", "watch"]),
    st.sampled_from(["A.**", "**", "A?", "Z.*.9", "%_/"]),
    st.sampled_from(["user alice", "group etl", "group *", "user 5001"]),
)


def defines(which: ObjectType) -> st.SearchStrategy[Call]:
    """Draws a DEFINE of an object of a type."""
    named = record_names if which is ObjectType.AUTHREC else names
    return st.builds(
        lambda name, given: Define(object_type=which.name, name=name, attributes=given), named, attributes(which)
    )


alterations = attributes(ObjectType.QMGR).map(lambda given: Alter(object_type="QMGR", name="", attributes=given))
default_objects = st.one_of(
    *(
        st.builds(
            lambda given, which=which, name=name: Alter(object_type=which.name, name=name, attributes=given),
            attributes(which),
        )
        for which, name in DEFAULT_OBJECTS.items()
    )
)
kinds = tuple(kind for kind in ObjectType if kind is not ObjectType.QMGR)
commands = st.lists(st.one_of(*(defines(which) for which in kinds), alterations), max_size=6)
"""Definitions of any objects, and alterations of the queue manager."""
changed_defaults = st.lists(st.one_of(*(defines(which) for which in kinds), alterations, default_objects), max_size=6)
"""The same, with the default objects altered in between."""
