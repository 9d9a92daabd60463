"""``trigmon status``: the queue manager at a glance."""

from __future__ import annotations

from typing import Any

from trigmon.cli.command import command, invocation


@command("status", "trigmon status --output json")
def status() -> None:
    """Show the queue manager at a glance: connections, messages, open units of work, reservations, monitors."""
    import click

    from trigmon.cli import output
    from trigmon.mq.attributes import ATTRIBUTES
    from trigmon.mq.calls import Status
    from trigmon.mq.enums import ObjectType
    from trigmon.mq.replies import Values

    with invocation().connected() as qm:
        said, version = qm.ask(Status(), Values).values, qm.server_version
    # What the queue manager is comes first, its attributes last; its name was among them twice.
    attributes = {a.name for a in ATTRIBUTES[ObjectType.QMGR].values()}
    drop = {"object_type", "name", "created_ms", "altered_ms"}
    first = {"q_mgr_name": said["q_mgr_name"], "version": version, "started_ms": said["started_ms"]}
    rest = {key: value for key, value in said.items() if key not in attributes | drop | first.keys()}
    values: dict[str, Any] = first | rest | {key: said[key] for key in said if key in attributes}
    values["reserved"] = [
        {key: value for key, value in row.items() if key != "age_ms"} | {"age_s": row["age_ms"] / 1000}
        for row in said.get("reserved", [])
    ]
    if invocation().is_json:
        output.one(values)
        return
    queues, reserved = values.pop("initiation_queues", []), values.pop("reserved", [])
    values["paused"] = "\n".join(pause["paused"] for pause in values.pop("pauses", [])) or "nothing"
    output.one(values)
    if reserved:
        click.echo()
        output.listing(reserved, ["reservation", "q_name", "consumer", "left", "count", "offers", "age_s", "told"])
    if queues:
        print_initiation_queues(queues)


def print_initiation_queues(queues: list[dict[str, object]]) -> None:
    """The initiation queues under the rest, and a word where nobody reads one."""
    import click

    from trigmon.cli import output

    click.echo()
    output.listing(queues, ["name", "monitors", "current_q_depth", "queues", "runs_held"])
    for queue in queues:
        if not queue.get("monitors"):
            output.note(f"nobody reads {queue['name']}: trigmon monitor --initq {queue['name']}")
