"""Queues as the text of runmqsc's DISPLAY has them: QLOCAL, QSTATUS, PROCESS and QMGR, as far as it holds them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from trigmon import files
from trigmon.bridge.seen_queue import ZOS, Fact, NotSeen, ObjectValues, OpenHandle, SeenQueue, Source, seen_queue
from trigmon.mq.attributes import ATTRIBUTES
from trigmon.mq.enums import ObjectType
from trigmon.mq.errors import UnknownObjectName
from trigmon.mqsc.display_text import Block, names_not_found, read_blocks

_ZOS_WORDS: Final = ("MVS", "ZOS")
_OF_ZOS: Final = "CSQM"


def read_displayed(path: Path, q_name: str) -> SeenQueue:
    """Returns the local queue of this name from a file. Raises OSError, UnknownObjectName."""
    found = next((seen for seen in read_all_displayed(path) if seen.asked == q_name), None)
    if found is None:
        raise UnknownObjectName(f"{q_name}: the text of {path} has no DISPLAY QLOCAL({q_name}) ALL")
    return found


def read_all_displayed(path: Path) -> list[SeenQueue]:
    """Returns every local queue that the text of a file shows. Raises OSError."""
    return displayed_queues(files.read(str(path)).decode("utf-8", "replace"))


def displayed_queues(text: str) -> list[SeenQueue]:
    """Returns every local queue that the text shows; what the text lacks counts as not seen."""
    shown = _Shown(text)
    return [seen_queue(shown.source(name)) for name in shown.queues]


class _Shown:
    """The blocks of one text by what they are about."""

    def __init__(self, text: str) -> None:
        self.queues: dict[str, Block] = {}
        self._status: dict[str, Block] = {}
        self._handles: dict[str, list[Block]] = {}
        self._processes: dict[str, Block] = {}
        self._manager: Block = {}
        self._missing = names_not_found(text)
        self._is_zos = _OF_ZOS in text
        for block in read_blocks(text):
            self._add(block)

    def _add(self, block: Block) -> None:
        first, kind = next(iter(block)), block.get("TYPE", "")
        name = block[first].strip()
        if first == "QUEUE" and kind == "QLOCAL":
            self.queues[name] = block
        elif first in ("QUEUE", "QSTATUS") and kind == "QUEUE":
            self._status[name] = block
        elif first in ("QUEUE", "QSTATUS") and kind == "HANDLE":
            self._handles.setdefault(name, []).append(block)
        elif first == "PROCESS":
            self._processes[name] = block
        elif first == "QMNAME":
            self._manager |= block

    def source(self, name: str) -> Source:
        """Returns what the text says of a local queue and of what its triggering looks at."""
        block, unseen = self.queues[name], dict[Fact, str]()
        trigger_interval = self._manager.get("TRIGINT", "")
        if not trigger_interval.isdecimal():
            unseen[Fact.INTERVAL] = "the text has no DISPLAY QMGR TRIGINT"
        uncommitted = self._uncommitted(name, unseen)
        values = self._values(ObjectType.QLOCAL, block | self._status.get(name, {}))
        if uncommitted is not None:
            values["uncommitted_msgs"] = uncommitted
        handles, initiation_q = self._handles_of(name), block.get("INITQ", "").strip()
        if not handles and any(block.get(word, "0").strip("0 ") for word in ("IPPROCS", "OPPROCS")):
            unseen[Fact.HANDLES] = f"the text has no DISPLAY QSTATUS({name}) TYPE(HANDLE) ALL"
        return Source(
            asked=name,
            q_mgr_name=self._manager.get("QMNAME", "").strip() or "DISPLAY",
            queue=ObjectValues(name, values),
            processes={p: self._process(p) for p in _named(block, "PROCESS")},
            initiations={q: self._initiation(q) for q in _named(block, "INITQ")},
            trigger_interval_ms=int(trigger_interval) if trigger_interval.isdecimal() else None,
            platform=ZOS if self._is_zos or self._manager.get("PLATFORM", "") in _ZOS_WORDS else 0,
            handles=handles,
            monitors=self._handles_of(initiation_q),
            unseen=unseen,
        )

    def _uncommitted(self, name: str, unseen: dict[Fact, str]) -> int | None:
        """Returns UNCOM; where it only says that there are some, or is not there, it is not seen."""
        given = self._status.get(name, {}).get("UNCOM", "").strip()
        if given == "NO" or given.isdecimal():
            return 0 if given == "NO" else int(given)
        why = "UNCOM(YES) says that there are some" if given else f"the text has no DISPLAY QSTATUS({name}) UNCOM"
        unseen[Fact.UNCOMMITTED] = why
        return None

    def _handles_of(self, name: str) -> tuple[OpenHandle, ...]:
        handles = (
            OpenHandle(
                pid=int(block.get("PID", "0")) if block.get("PID", "0").strip().isdecimal() else 0,
                application=block.get("APPLTAG", "").strip(),
                user=block.get("USERID", "").strip(),
                for_input=block.get("INPUT", "NO").strip() != "NO",
                for_output=block.get("OUTPUT", "NO").strip() == "YES",
            )
            for block in self._handles.get(name, ())
        )
        return tuple(handle for handle in handles if handle.for_input or handle.for_output)

    def _process(self, name: str) -> ObjectValues | NotSeen | None:
        if name in self._processes:
            return ObjectValues(name, self._values(ObjectType.PROCESS, self._processes[name]))
        return None if name in self._missing else NotSeen(f"the text has no DISPLAY PROCESS({name}) ALL")

    def _initiation(self, name: str) -> ObjectValues | NotSeen | None:
        if name in self.queues:
            return ObjectValues(name, self._values(ObjectType.QLOCAL, self.queues[name] | self._status.get(name, {})))
        return None if name in self._missing else NotSeen(f"the text has no DISPLAY QLOCAL({name}) ALL")

    def _values(self, which: ObjectType, block: Block) -> dict[int | str, Any]:
        """Returns a block's values by word, those of the two words of a flag by the attribute's name."""
        values: dict[int | str, Any] = {word: _number_or_text(value) for word, value in block.items()}
        for attribute in ATTRIBUTES[which].values():
            for flag in attribute.flags or ():
                if values.pop(flag, None) is not None:
                    values[attribute.name] = flag
        values["TYPE"] = "QLOCAL"
        return values


def _number_or_text(value: str) -> int | str:
    text = value.rstrip()
    return int(text) if text.isdecimal() and len(text) < 19 else text


def _named(block: Block, word: str) -> Iterable[str]:
    name = block.get(word, "").strip()
    return [name] if name else []
