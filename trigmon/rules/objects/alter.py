"""What follows when a local queue's attributes change, by MQSET or by a command: occasions 13, 13a and 13b.

"Changed" means that the value differs from before. One change may be two occasions (control turned on and gets
allowed at once); for each queue only the first that fires counts.
"""

from __future__ import annotations

from collections import Counter

from msgspec.structs import replace

from trigmon.mq.attributes import LocalQueue
from trigmon.mq.calls import Call
from trigmon.mq.enums import Inhibit, ObjectType, TriggerControl
from trigmon.rules.model.changes import AnyChange, SetDefinition
from trigmon.rules.model.decision import Decision, Ids, Judged
from trigmon.rules.model.events import TriggerFired
from trigmon.rules.model.facts import Facts, Neighbour
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.situation import Happened, Situation
from trigmon.rules.triggers.effects import trigger

_CRITERIA = ("trigger_control", "trigger_type", "trigger_msg_priority", "trigger_depth")


def altered(
    facts: Facts, neighbour: Neighbour, definition: LocalQueue, served: tuple[Neighbour, ...], now: int, ids: Ids
) -> Decision:
    """Returns the decision that writes a queue's new definition, with the trigger messages that are due.

    ``neighbour`` is the queue as it was, with the process and the initiation queue that its *new* definition names.
    """
    before = neighbour.queue.definition
    if definition.trigger_control is TriggerControl.ON and definition.is_disarmed:
        definition = replace(definition, is_disarmed=False)
    queue = replace(neighbour.queue, definition=definition)
    if queue.shared is not None:
        return Decision(changes=[SetDefinition(ObjectType.QLOCAL, definition)])  # each member judges it behind this
    changes: list[AnyChange] = [SetDefinition(ObjectType.QLOCAL, definition)]
    internal_calls: list[Call] = []
    fired: list[TriggerFired] = []
    judged: list[Judged] = []
    placed: Counter[str] = Counter()
    for of_queue in situations(facts, queue, neighbour, before, served, now):
        for situation in of_queue:
            name = situation.initiation.definition.name if situation.initiation is not None else ""
            effects = trigger(situation, facts.q_mgr.name, ids, placed=placed[name])
            judged += effects.judged
            if effects.events:
                changes += effects.changes
                internal_calls += effects.internal_calls
                fired += effects.events
                # The queue's own goes to the queue it names, those of the queues it serves go onto itself.
                placed[name] += 1 - len(effects.internal_calls)
                break
    return Decision(changes=changes, internal_calls=internal_calls, events=tuple(fired), judged=tuple(judged))


def situations(
    facts: Facts,
    queue: QueueFacts,
    neighbour: Neighbour,
    before: LocalQueue,
    served: tuple[Neighbour, ...],
    now: int,
) -> list[list[Situation]]:
    """Returns for each queue concerned what happened to it, in the order of the seed."""
    after = queue.definition
    interval = facts.q_mgr.trigger_interval
    initiation = neighbour.initiation
    if initiation is not None and initiation.definition.name == after.name:
        initiation = queue
    was = {name: getattr(before, name) for name in _CRITERIA if getattr(before, name) != getattr(after, name)}
    own: list[Situation] = []
    if was:
        own.append(Situation(Happened.CHANGE, queue, neighbour.process, initiation, interval, now, was=was))
    if before.inhibit_get is Inhibit.INHIBITED and after.inhibit_get is Inhibit.ALLOWED:
        own.append(Situation(Happened.GET_ALLOWED, queue, neighbour.process, initiation, interval, now))
    all_of_them = [own]
    if before.inhibit_put is Inhibit.INHIBITED and after.inhibit_put is Inhibit.ALLOWED:
        for other in served:
            itself = other.queue.definition.name == after.name
            situation = Situation(
                Happened.INITIATION_PUT_ALLOWED,
                queue if itself else other.queue,
                other.process,
                queue,
                interval,
                now,
            )
            if itself:
                own.append(situation)
            else:
                all_of_them.append([situation])
    return all_of_them
