"""The settings, their layers, and where each value came from.

The sections say which keys exist and what a value may be; defaults and reasons stand in the shipped
``config/trigmon.yaml`` alone, which is the lowest layer. Over it lie ``/etc/trigmon/trigmon.yaml``, the file of
``--config`` or ``TRIGMON_CONFIG``, the environment (``TRIGMON_<SECTION>_<KEY>``) and the command line. An unknown key
in any of them is an error that names file and line, or variable, and the nearest known key. A variable that merely
begins with our name may be somebody else's (a container's service link is): it is left alone, and can be listed.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import PrivateAttr, ValidationError

from trigmon import files, paths, yaml12
from trigmon.mq.shortening import shortened
from trigmon.setting_sections import (
    BridgeSettings,
    ConnectSettings,
    GroupSettings,
    LogSettings,
    MetricsSettings,
    MonitorSettings,
    QmgrSettings,
    RunsSettings,
    Section,
    ServerSettings,
    StoreSettings,
    TlsSettings,
    TracesSettings,
)
from trigmon.setting_values import BridgeName

SYSTEM_CONFIG = Path("/etc/trigmon/trigmon.yaml")
COMMAND_LINE = "command line"


class SettingsError(ValueError):
    """The settings cannot be used. ``problems`` are sentences, each beginning with the place it is about.

    ``can_pass``: a file could not be read, and may be later, as it stands.
    """

    def __init__(self, problems: list[str], *, can_pass: bool = False) -> None:
        self.problems = list(map(shortened, problems))
        super().__init__("\n".join(self.problems))
        self.can_pass = can_pass


class Settings(Section):
    """All sections, and of each value its origin."""

    qmgr: QmgrSettings
    server: ServerSettings
    tls: TlsSettings
    store: StoreSettings
    group: GroupSettings
    monitor: MonitorSettings
    connect: ConnectSettings
    runs: RunsSettings
    metrics: MetricsSettings
    traces: TracesSettings
    log: LogSettings
    bridges: dict[BridgeName, BridgeSettings]

    _origins: dict[str, str] = PrivateAttr(default_factory=dict)

    def origin(self, key: str) -> str:
        """Returns where ``section.key`` got its value: ``FILE:LINE``, an environment variable or ``command line``."""
        return self._origins[key]

    def rows(self) -> Iterator[tuple[str, Any, str]]:
        """Yields ``(section.key, plain value, origin)`` in the order of the shipped file."""
        for section, values in self.model_dump(mode="json").items():
            for key, value in values.items():
                yield f"{section}.{key}", value, self.origin(f"{section}.{key}")

    def as_environment(self) -> dict[str, str]:
        """Returns the command line's values as variables, so that a child process has the settings of its parent."""
        return {
            variable(key): ",".join(value) if isinstance(value, list) else str(value)
            for key, value, origin in self.rows()
            if origin == COMMAND_LINE and value is not None
        }


NAMED = ("bridges",)
"""Sections whose keys are names that the user gives, each with a mapping; only files set them.

A name that a stronger file has too stands there in full: nothing of the weaker one's mapping is kept.
"""

KEYS: dict[str, Any] = {
    f"{section}.{key}": inner.annotation
    for section, outer in Settings.model_fields.items()
    if section not in NAMED
    for key, inner in outer.annotation.model_fields.items()  # type: ignore[union-attr]
}
"""Every ``section.key`` and the type of its value."""

PATHS = {
    *("qmgr.data", "qmgr.definitions", "store.journal_archive"),
    *("tls.certificate", "tls.private_key", "tls.client_authority", "tls.users", "tls.ticket_key"),
    *("monitor.run_as_file", "monitor.secrets_directory", "metrics.textfile"),
}
"""Keys whose relative paths are meant from the file they stand in."""
_PATHS_OF_NAMED = ("ccdt", "key_repository")


def variable(key: str) -> str:
    """Returns the environment variable of ``section.key``."""
    return "TRIGMON_" + key.replace(".", "_").upper()


VARIABLES = {variable(key): key for key in KEYS}

# -- the layers ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Found:
    """A value of one layer, and where it stood."""

    value: Any
    origin: str


def load(
    overrides: Mapping[str, Any] | None = None,
    config: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """Returns the settings of this process.

    ``overrides`` are the command line's ``section.key`` values (a None is an option nobody gave), ``config`` is the
    file of ``--config``. Raises :class:`SettingsError` with every problem found, and for a file that cannot be read.
    """
    environ = os.environ if environ is None else environ
    problems: list[str] = []
    found: dict[str, _Found] = {}
    can_pass = False
    for layer in _layers(overrides or {}, config, environ):
        try:
            found.update(layer(problems))
        except (OSError, yaml12.YamlError) as error:
            problems.append(_unreadable(error))
            can_pass = can_pass or (isinstance(error, OSError) and files.can_pass(error))
    try:
        settings = _settings(found)
    except SettingsError as error:
        problems += error.problems
    if problems:
        raise SettingsError(problems, can_pass=can_pass)
    return settings


def _layers(
    overrides: Mapping[str, Any], config: str | Path | None, environ: Mapping[str, str]
) -> Iterator[Callable[[list[str]], dict[str, _Found]]]:
    """Yields the layers, the weakest first; each gives its values and adds its problems to a list."""
    yield _shipped
    if SYSTEM_CONFIG.exists():
        yield lambda problems: _from_file(SYSTEM_CONFIG, problems)
    if chosen := config or environ.get("TRIGMON_CONFIG"):
        by = "" if config else "TRIGMON_CONFIG="
        yield lambda problems: _from_chosen_file(Path(chosen).expanduser(), by, problems)
    yield lambda problems: _from_environment(environ, problems)
    yield lambda problems: {
        key: _Found(_from_there(key, value, Path.cwd()), COMMAND_LINE)
        for key, value in overrides.items()
        if value is not None
    }


def _shipped(problems: list[str]) -> dict[str, _Found]:
    return _from_file(paths.shipped("config") / "trigmon.yaml", problems)


def _from_chosen_file(path: Path, by: str, problems: list[str]) -> dict[str, _Found]:
    try:
        return _from_file(path, problems)
    except OSError as error:
        raise OSError(error.errno, error.strerror, f"{by}{path}") from None


def _from_file(path: Path, problems: list[str]) -> dict[str, _Found]:
    document = yaml12.read(path)
    if not isinstance(document.value, dict | None):
        raise document.error("settings are a mapping of sections")
    found = {}
    for section, values in (document.value or {}).items():
        if section in NAMED:
            found.update(_of_named_section(document, section, problems))
            continue
        known = [key.partition(".")[2] for key in KEYS if key.startswith(f"{section}.")]
        if not known:
            problems.append(str(document.unknown_key(Settings.model_fields, section)))
            continue
        if not isinstance(values, dict | None):
            problems.append(str(document.error(f"{section!r} is a section: a mapping of {', '.join(known)}", section)))
            continue
        for key, value in (values or {}).items():
            if key in known:
                name = f"{section}.{key}"
                given = document.as_written(section, key) if _is_text(name) else value
                found[name] = _Found(_from_there(name, given, path.parent), document.where(section, key))
            else:
                problems.append(str(document.unknown_key(known, section, key)))
    return found


def _of_named_section(document: yaml12.Document, section: str, problems: list[str]) -> dict[str, _Found]:
    """Returns the values of a section whose keys are names."""
    found: dict[str, _Found] = {}
    fields = BridgeSettings.model_fields
    values = document.value[section]
    if not isinstance(values, dict | None):
        problems.append(str(document.error(f"{section!r} is a mapping of names", section)))
        return found
    for name, given in (values or {}).items():
        if not isinstance(given, dict):
            what = f"{name!r} is a mapping of {', '.join(fields)}"
            problems.append(str(document.error(what, section, name)))
            continue
        problems += [str(document.unknown_key(fields, section, name, key)) for key in given if key not in fields]
        value = {
            key: document.as_written(section, name, key) if "str" in str(fields[key].annotation) else inner
            for key, inner in given.items()
            if key in fields
        }
        for key in _PATHS_OF_NAMED:
            if isinstance(path := value.get(key), str) and "://" not in path:
                value[key] = str(Path(document.source).parent.absolute() / Path(path).expanduser())
        found[f"{section}.{name}"] = _Found(value, document.where(section, name))
    return found


def _from_environment(environ: Mapping[str, str], problems: list[str]) -> dict[str, _Found]:
    found = {}
    name = environ.get("TRIGMON_QMGR", "")
    if name and not {":", ","} & set(name):
        # With a colon it is a client's address (unix:/path, tcp://host:port), which says nothing of a name; with a
        # comma it is several.
        found["qmgr.name"] = _Found(name, "environment TRIGMON_QMGR")
    for name, text in environ.items():
        if key := VARIABLES.get(name):
            found[key] = _Found(_from_there(key, _worded(key, text), Path.cwd()), f"environment {name}")
        elif _is_a_slip(name):
            problems.append(f"environment: unknown variable {name}{yaml12.did_you_mean(name, VARIABLES)}")
    return found


def _worded(key: str, text: str) -> Any:
    """Returns what a variable's text means for this key: lists are divided by commas, an empty one is nothing."""
    kind = KEYS[key]
    if get_origin(kind) is list:
        return [word.strip() for word in text.split(",") if word.strip()]
    if not text and type(None) in get_args(kind):
        return None
    return text if _is_text(key) else yaml12.scalar(text)


def _is_text(key: str) -> bool:
    """Returns whether this key's value is text, or several: a name 012 is no number."""
    return "str" in str(KEYS[key])


def _is_a_slip(name: str) -> bool:
    """Returns whether a variable that is none of ours was meant to be: another section of ours, or a letter away."""
    if not name.startswith("TRIGMON_"):
        return False
    if any(name.startswith(f"TRIGMON_{section.upper()}_") for section in Settings.model_fields):
        return True
    return bool(difflib.get_close_matches(name, VARIABLES, n=1, cutoff=0.9))


def _from_there(key: str, value: Any, directory: Path) -> Any:
    """Returns a relative path of a file's layer, as it is meant: from that file's directory."""
    if key not in PATHS or not value:
        return value
    if isinstance(value, list):
        return [_from_there(key, item, directory) for item in value]
    return str(directory.absolute() / Path(value).expanduser()) if isinstance(value, str) else value


def _settings(found: Mapping[str, _Found]) -> Settings:
    tree: dict[str, dict[str, Any]] = {section: {} for section in NAMED}
    for name, entry in found.items():
        section, _, key = name.partition(".")
        tree.setdefault(section, {})[key] = entry.value
    try:
        settings = Settings.model_validate(tree)
    except ValidationError as error:
        raise SettingsError([_sentence(problem, found) for problem in error.errors()]) from None
    settings._origins.update({name: entry.origin for name, entry in found.items()})
    if problems := _in_vain(settings, found):
        raise SettingsError(problems)
    return settings


def _in_vain(settings: Settings, found: Mapping[str, _Found]) -> list[str]:
    """Returns settings of a group although group.name is not set. A copy of the shipped file sets none."""
    if settings.group.name is not None:
        return []
    shipped = _shipped([])
    name = "there is no group.name, so it is in no queue-sharing group: set that, or take this out"
    return [
        f"{entry.origin}: {key}: {name}"
        for key, entry in found.items()
        if key.startswith("group.") and entry.value != shipped[key].value
    ]


def _sentence(problem: Any, found: Mapping[str, _Found]) -> str:
    key = ".".join(str(step) for step in problem["loc"][:2])
    origin = found[key].origin if key in found else str(paths.shipped("config") / "trigmon.yaml")
    if problem["loc"][0] in NAMED:
        key = ".".join(str(step) for step in problem["loc"] if step != "[key]")
    own_words = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "missing":
        return f"{origin}: {key}: it is missing"
    if own_words == problem["msg"]:
        return f"{origin}: {key}: {own_words.lower()}, not {problem['input']!r}"
    return f"{origin}: {key}: {own_words}"


def _unreadable(error: OSError | yaml12.YamlError) -> str:
    return f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
