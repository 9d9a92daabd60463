"""Make reference pages from the product's own lists, so that a list stands once.

``{settings}`` shows config/trigmon.yaml, ``{attributes}`` the attribute table of one object type, ``{exits}`` how a
service ends, ``{run-record}`` the fields of a run's record, ``{metrics}`` the table of metrics, ``{events}`` the table
of event messages, ``{package-page}`` a Markdown page that lies in the package beside the code that it describes.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from trigmon.console.metrics.metric_table import METRICS
from trigmon.log_events import EVENT_NAMES
from trigmon.mq import run
from trigmon.mq.attribute_meanings import MEANINGS
from trigmon.mq.attributes import ATTRIBUTES, Attribute
from trigmon.mq.enums import ObjectType, word
from trigmon.mq.event_kinds import COMMON, EVENTS, EventKind
from trigmon.server.exit_status import EXITS

ROOT = Path(__file__).parents[2]
_LINK_TO_SOURCE = re.compile(r"\[([^\]]+)\]\((?!https?:|#)([^)]+)\)")
_MEMBER = re.compile(r"    (?P<name>\w+)(?:: [^=]+)? = [^#]+(?:#(?P<comment>.*))?$")
_SECTION = re.compile(r"^(?=\w+:\n)", re.MULTILINE)


class Settings(SphinxDirective):
    """Show each section of config/trigmon.yaml under a heading of its own."""

    def run(self) -> list[nodes.Node]:
        """Return the sections; the file is a dependency of the page."""
        path = ROOT / "config" / "trigmon.yaml"
        self.env.note_dependency(str(path))
        introduction, *sections = _SECTION.split(path.read_text())
        text = re.sub("^# ?", "", introduction, flags=re.MULTILINE)
        for section in sections:
            text += f"\n## `{section.partition(':')[0]}`\n\n```yaml\n{section.rstrip()}\n```\n"
        return self.parse_text_to_nodes(text, allow_section_headings=True)


class Attributes(SphinxDirective):
    """Show the attributes of one object type: ``{attributes} qlocal``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return one table, in the order of the attribute table. Raises KeyError for an unknown object type."""
        rows = [_row(attribute) for attribute in ATTRIBUTES[ObjectType[self.arguments[0].upper()]].values()]
        head = ["| attribute | MQSC | means | allowed | default |", "|---|---|---|---|---|"]
        return self.parse_text_to_nodes("\n".join([*head, *rows]))


class Exits(SphinxDirective):
    """Show every way in which a service ends: ``{exits} run``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return one table, in the order of trigmon/server/exit_status.py."""
        head = ["| status | met | systemd starts it again |", "|---|---|---|"]
        rows = [f"| {_status(e.status)} | {e.met} | {'yes' if e.is_tried_again else 'no'} |" for e in EXITS]
        kept = [row for row, e in zip(rows, EXITS, strict=True) if e.program == self.arguments[0]]
        return self.parse_text_to_nodes("\n".join([*head, *kept]))


class LogEvents(SphinxDirective):
    """Show every named event of daemon, monitor and launchers: ``{log-events}``."""

    def run(self) -> list[nodes.Node]:
        """Return one table, in the order of trigmon/log_events.py."""
        rows = [f"| `{name}` | {sentence} |" for sentence, name in EVENT_NAMES.items()]
        return self.parse_text_to_nodes("\n".join(["| event_name | event |", "|---|---|", *rows]))


class Events(SphinxDirective):
    """Show every event message: ``{events}``."""

    def run(self) -> list[nodes.Node]:
        """Return two tables, in the order of trigmon/mq/event_kinds.py: the fields of all events, and the events."""
        common = [f"| `{name}` | {means} |" for name, means in COMMON.items()]
        rows = [f"| `{kind.name}` | {kind.means} | {_fields(kind)} | {_of_mq(kind)} |" for kind in EVENTS.values()]
        text = ["| field | means |", "|---|---|", *common, "", "| event | told when | fields | MQ's event |"]
        return self.parse_text_to_nodes("\n".join([*text, "|---|---|---|---|", *rows]))


class Metrics(SphinxDirective):
    """Show every metric: ``{metrics}``."""

    def run(self) -> list[nodes.Node]:
        """Return one table, in the order of trigmon/console/metrics/metric_table.py."""
        rows = [f"| `{each.name}` | {each.kind} | {', '.join(each.labels)} | {each.text} |" for each in METRICS]
        return self.parse_text_to_nodes("\n".join(["| name | type | labels | means |", "|---|---|---|---|", *rows]))


class RunRecord(SphinxDirective):
    """Show the states of a run, its endings and the fields of its record, with their comments: ``{run-record}``."""

    def run(self) -> list[nodes.Node]:
        """Return a section a part, in the order of trigmon/mq/run.py."""
        self.env.note_dependency(run.__file__)
        states = [f"| `{run.RunState[name].value}` | {means} |" for name, means in _commented(run.RunState)]
        endings = [f"| `{run.Ending[name].value}` | {means} |" for name, means in _commented(run.Ending)]
        text = ["## States", "", "| state | means |", "|---|---|", *states]
        where = "One word for how it ended, in metrics, in `trigmon runs history` and on pages."
        text += ["", "## Endings", "", where, ""]
        text += ["| ending | means |", "|---|---|", *endings]
        for part in (run.Origin, run.Bridged, run.Program, run.Outcome, run.Cancellation, run.SparkJob, run.Work):
            rows = [f"| `{name}` | {means} |" for name, means in _commented(part)]
            text += ["", f"## {part.__name__}", "", f"{part.__doc__}", "", "| field | means |", "|---|---|", *rows]
        return self.parse_text_to_nodes("\n".join(text), allow_section_headings=True)


class PackagePage(SphinxDirective):
    """Show a Markdown page of the package: ``{package-page} trigmon/rules/LINT.md``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the page without its title. A link to a source file becomes its name: the site has no source."""
        path = ROOT / self.arguments[0]
        self.env.note_dependency(str(path))
        _, _, body = path.read_text().partition("\n")
        return self.parse_text_to_nodes(_LINK_TO_SOURCE.sub(r"`\1`", body), allow_section_headings=True)


def _fields(kind: EventKind) -> str:
    return ", ".join(f"`{field}`" for field in kind.fields)


def _of_mq(kind: EventKind) -> str:
    return f"{int(kind.reason)} {kind.reason.mq_name}" if kind.reason else ""


def _commented(kind: type) -> Iterator[tuple[str, str]]:
    """Yield the names in a class body, each with the comment before it or behind it."""
    before: list[str] = []
    for line in inspect.getsource(kind).splitlines():
        if line.strip().startswith("#"):
            before.append(line.strip(" #"))
        elif found := _MEMBER.match(line):
            comment = " ".join([*before, found["comment"] or ""]).strip()
            yield found["name"], (comment[:1].upper() + comment[1:]).replace("|", "\\|")
            before = []


def _status(status: int) -> str:
    return str(status) if status >= 0 else f"signal {-status}"


def _row(attribute: Attribute) -> str:
    marks = [mark for mark, holds in (("ours", attribute.ours), ("read only", attribute.read_only)) if holds]
    mqsc = f"`{attribute.mqsc}`" if attribute.mqsc else ""
    notes = f" ({', '.join(marks)})" if marks else ""
    means = MEANINGS[attribute.name].replace("*", "\\*")
    return f"| `{attribute.name}` | {mqsc}{notes} | {means} | {attribute.allowed} | {_shown(attribute)} |"


def _shown(attribute: Attribute) -> str:
    if attribute.default in ("", None):
        return "blank"
    return f"`{word(attribute.default) if hasattr(attribute.default, 'name') else attribute.default}`"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("settings", Settings)
    app.add_directive("attributes", Attributes)
    app.add_directive("exits", Exits)
    app.add_directive("log-events", LogEvents)
    app.add_directive("metrics", Metrics)
    app.add_directive("events", Events)
    app.add_directive("run-record", RunRecord)
    app.add_directive("package-page", PackagePage)
    return {"parallel_read_safe": True}
