"""Requirements that look at the wrong thing: readers, gets, process, initiation queue, monitor."""

from __future__ import annotations

from msgspec.structs import replace

from tests.mutations.fault import Fault
from tests.mutations.planting import (
    DEPTH,
    EVERY,
    FIRST,
    INPUT,
    Patches,
    followed,
    found_with,
    held_as,
    kind_of,
    of_queue,
    replaced,
)
from trigmon.mq.enums import Inhibit, OpenOption, TriggerType, Usage
from trigmon.rules.model import handle_changes, handle_transitions
from trigmon.rules.model.situation import Situation
from trigmon.rules.model.state import Standing
from trigmon.rules.triggers import table


def _not_for(kind: TriggerType):
    return held_as(lambda s, f: f.holds or kind_of(s) is kind)


def _for_every(s: Situation, f) -> bool:
    return f.holds and not (kind_of(s) is EVERY and s.queue.open_input_count)


def _browsers_too(patches: Patches) -> None:
    patches.setattr(handle_transitions, "_INPUT", INPUT | OpenOption.BROWSE.value)


def _exclusive_not(patches: Patches) -> None:
    patches.setattr(handle_transitions, "_INPUT", OpenOption.INPUT_SHARED.value)


def _alias_not(patches: Patches) -> None:
    right = handle_transitions._opened

    def opened(standing, handle, by):
        through = handle.object_name != handle.q_name
        right(standing, replace(handle, options=handle.options & ~INPUT) if through else handle, by)

    patches.setattr(handle_transitions, "_opened", opened)


def _once_an_application(patches: Patches) -> None:
    right = handle_transitions._opened

    def opened(standing, handle, by):
        others = [
            h
            for h in standing.handles.values()
            if h.q_name == handle.q_name
            and h.connection == handle.connection
            and h.handle != handle.handle
            and h.options & INPUT
        ]
        right(standing, replace(handle, options=handle.options & ~INPUT) if others else handle, by)

    patches.setattr(handle_transitions, "_opened", opened)


def _initiation_by_alias(patches: Patches) -> None:
    right = Standing.facts

    def facts(self, wants):
        found = right(self, wants)
        if found.queue is None or found.initiation is not None:
            return found
        alias = self.aliases.get(found.queue.definition.initiation_q_name)
        return found if alias is None else replace(found, initiation=self.queues.get(alias.base_q_name))

    patches.setattr(Standing, "facts", facts)


def _usable_but(name: str, good: object):
    def change(s: Situation) -> Situation:
        q = s.initiation
        if q is None:
            return s
        return replace(s, initiation=replace(q, definition=replace(q.definition, **{name: good})))

    return found_with(change)


def _monitors(count):
    return held_as(lambda s, f: s.initiation is not None and count(s.initiation) > 0)


FAULTS = [
    Fault("4: not asked of FIRST", replaced(table.c04, _not_for(FIRST))),
    Fault("4: not asked of DEPTH", replaced(table.c04, _not_for(DEPTH))),
    Fault("4: asked of EVERY", replaced(table.c04, held_as(_for_every))),
    Fault(
        "4: any open handle reads",
        replaced(table.c04, of_queue(lambda q, s: replace(q, open_input_count=q.open_count))),
    ),
    Fault(
        "4: one reader is none",
        replaced(table.c04, of_queue(lambda q, s: replace(q, open_input_count=max(0, q.open_input_count - 1)))),
    ),
    Fault("4: a browser counts as a reader", _browsers_too),
    Fault("4: an exclusive reader does not count", _exclusive_not),
    Fault("4: who reads through an alias does not count", _alias_not),
    Fault("4: two handles of one application count once", _once_an_application),
    Fault(
        "5: not asked of normal queues",
        replaced(table.c05, held_as(lambda s, f: f.holds or s.queue.definition.usage is Usage.NORMAL)),
    ),
    Fault(
        "5: not asked of transmission queues",
        replaced(table.c05, held_as(lambda s, f: f.holds or s.queue.definition.usage is Usage.TRANSMISSION)),
    ),
    Fault(
        "5: looks at puts",
        replaced(
            table.c05,
            of_queue(lambda q, s: replace(q, definition=replace(q.definition, inhibit_get=q.definition.inhibit_put))),
        ),
    ),
    Fault(
        "6: a name is enough",
        replaced(table.c06, held_as(lambda s, f: f.holds or bool(s.queue.definition.process_name))),
    ),
    Fault(
        "6: a normal queue may do without",
        replaced(table.c06, held_as(lambda s, f: f.holds or not s.queue.definition.process_name)),
    ),
    Fault(
        "6: a transmission queue may name a process that is missing",
        replaced(table.c06, held_as(lambda s, f: f.holds or s.queue.definition.usage is Usage.TRANSMISSION)),
    ),
    Fault(
        "6: a transmission queue needs a process",
        replaced(table.c06, held_as(lambda s, f: f.holds and s.process is not None)),
    ),
    Fault("7: gets are not looked at", replaced(table.c07, _usable_but("inhibit_get", Inhibit.ALLOWED))),
    Fault("7: puts are not looked at", replaced(table.c07, _usable_but("inhibit_put", Inhibit.ALLOWED))),
    Fault("7: usage is not looked at", replaced(table.c07, _usable_but("usage", Usage.NORMAL))),
    Fault("7: an alias will do", _initiation_by_alias),
    Fault(
        "7: a full one will not do",
        replaced(table.c07, held_as(lambda s, f: f.holds and s.initiation.depth < s.initiation.definition.max_q_depth)),
    ),
    Fault(
        "7: a small one will not do",
        replaced(table.c07, held_as(lambda s, f: f.holds and s.initiation.definition.max_msg_length >= 684)),
    ),
    Fault("8: any open handle listens", replaced(table.c08, _monitors(lambda q: q.open_count))),
    Fault("8: one monitor is none", replaced(table.c08, _monitors(lambda q: q.open_input_count - 1))),
    Fault(
        "8: an exclusive monitor is none",
        replaced(table.c08, _monitors(lambda q: 0 if q.open_exclusive else q.open_input_count)),
    ),
    Fault(
        "8: a monitor that has closed still listens",
        followed(handle_changes.CloseHandle, lambda right, standing, change: _leave(right, standing, change)),
    ),
]


def _leave(right, standing: Standing, change: handle_changes.CloseHandle) -> None:
    """The handle goes, but an initiation queue's count of readers stays."""
    q_name = standing.handles[change.handle].q_name
    before = standing.queues.get(q_name)
    right(standing, change)
    if before is not None and any(q.definition.initiation_q_name == q_name for q in standing.queues.values()):
        standing.write(
            standing.queues, q_name, replace(standing.queues[q_name], open_input_count=before.open_input_count)
        )
