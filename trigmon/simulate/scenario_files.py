"""From YAML to scenarios. A file that is no scenario is refused with file, line, key and the nearest known key."""

from __future__ import annotations

from typing import Any

from trigmon import files
from trigmon.mq.names import is_object_name
from trigmon.simulate.expectations import EXPECTATIONS, read_expected
from trigmon.simulate.mapping import Fields, Place, Reader, items, nearest, shown, text, worded
from trigmon.simulate.scenario import Crash, Restart, Scenario, Step
from trigmon.simulate.step_verbs import ACTS, commands
from trigmon.yaml12 import Document, YamlError, load_all

DEFAULT_APPLICATION = "app"
DEFAULT_Q_MGR = "QM1"
_SCENARIO = ("scenario", "source", "qmgrs", "setup", "steps")
_BESIDE = ("as", "on", *EXPECTATIONS)


def read_files(named: list[str]) -> list[Scenario]:
    """Returns the scenarios of all files, in order. Raises YamlError for the first file that is none."""
    found: list[Scenario] = []
    for file in named:
        try:
            raw = files.read(file)
        except OSError as error:
            raise YamlError(file, f"it cannot be read: {error.strerror}") from None
        found += read_scenarios(raw, file)
    return found


def read_scenarios(raw: str | bytes, file: str) -> list[Scenario]:
    """Returns the scenarios of one file's text. Raises YamlError."""
    documents = load_all(raw, file)
    if not documents:
        raise YamlError(f"{file}:1", "there is no scenario in it")
    return [_scenario(document) for document in documents]


def _scenario(document: Document) -> Scenario:
    place = Place(document)
    fields = Fields(document.value, place, "a scenario", _SCENARIO)
    title = fields.need("scenario", text)
    q_mgrs = fields.take("qmgrs", _q_mgrs, (DEFAULT_Q_MGR,))
    setup = fields.take("setup", commands, ())
    steps = fields.need("steps", items)
    return Scenario(
        title=" ".join(title.split()),
        file=document.source,
        line=place.line,
        q_mgrs=q_mgrs,
        setup=setup,
        setup_line=place.at("setup").line,
        steps=tuple(_step(number, value, where, q_mgrs) for number, (value, where) in enumerate(steps, 1)),
        source=fields.take("source", text, ""),
    )


def _q_mgrs(value: Any, place: Place) -> tuple[str, ...]:
    names = [(text(item, where), where) for item, where in items(value, place)]
    if not names:
        raise place.error("qmgrs names at least one queue manager")
    for name, where in names:
        if not is_object_name(name):
            raise where.error(f"qmgrs: {shown(name)} is no name of a queue manager")
    seen: set[str] = set()
    for name, where in names:
        if name in seen:
            raise where.error(f"qmgrs: {name} stands there twice")
        seen.add(name)
    return tuple(name for name, _ in names)


def _step(number: int, value: Any, place: Place, q_mgrs: tuple[str, ...]) -> Step:
    if not isinstance(value, dict) or not value:
        raise place.error(f"step {number} is a mapping with one verb, not {shown(value)}")
    fields = Fields(value, place, f"step {number}", (*ACTS, *_BESIDE))
    verbs = [key for key in value if key in ACTS]
    if not verbs:
        raise place.error(f"step {number} has no verb; verbs are {', '.join(ACTS)}")
    if len(verbs) > 1:
        raise place.at(verbs[1]).error(f"step {number} has the verbs {verbs[0]} and {verbs[1]}: one a step")
    verb = verbs[0]
    act = ACTS[verb](value[verb], place.at(verb))
    known = _known(q_mgrs)
    if isinstance(act, Restart | Crash):
        known(act.q_mgr, place.at(verb))
    return Step(
        number=number,
        line=place.line,
        verb=verb,
        application=fields.take("as", text, DEFAULT_APPLICATION),
        q_mgr=fields.take("on", known, ""),
        act=act,
        expected=read_expected(fields, verb, known),
    )


def _known(q_mgrs: tuple[str, ...]) -> Reader[str]:
    """Returns a reader of the name of one of the scenario's queue managers."""

    def read(value: Any, place: Place) -> str:
        name = text(value, place)
        if name not in q_mgrs:
            raise place.error(f"{worded(name)} is none of the scenario's queue managers{nearest(name, q_mgrs)}")
        return name

    return read
