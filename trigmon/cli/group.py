"""``trigmon group``: the state of the queue-sharing group, from one of its members."""

from __future__ import annotations

from typing import Any

import click

from trigmon.cli.command import command, invocation


@command("group", "trigmon group\ntrigmon --qmgr QM2 group --output json")
@click.pass_context
def group(ctx: click.Context) -> None:
    """Show the queue-sharing group: its members, its queues and the members that have them open, and the recoveries.

    A member is serving, silent (its heartbeat has stopped; its units of work are backed out when another member
    notices), dead (its units of work are backed out, and it has not started again) or away (it ended in order). Its
    epoch grows by one with each start and with each recovery. Its roles are its tasks for the group: EXPIRY is to
    remove expired messages. seen_by is the member that answered. Under "recovered" stands the last recovery of each
    member: what was backed out, and by which member.
    """
    from trigmon.cli import output
    from trigmon.cli.errors import WRONG_STATE
    from trigmon.mq.calls import DisplayGroup
    from trigmon.mq.replies import Values

    with invocation().connected() as qm:
        values = qm.ask(DisplayGroup(), Values).values
    if invocation().is_json:
        output.one(_in_seconds(values))
    elif values["group"]:
        _show(_in_seconds(values))
    if not values["group"]:
        output.note(
            f"{values['q_mgr_name']} is in no queue-sharing group: group.name in its settings makes it a member"
        )
        ctx.exit(WRONG_STATE)


def _show(values: dict[str, Any]) -> None:
    from trigmon.cli import output

    output.one({"group": values["group"], "seen_by": values["q_mgr_name"]})
    click.echo()
    output.listing(values["members"], ["name", "state", "epoch", "silent_s", "host", "pid", "roles"])
    if values["queues"]:
        click.echo()
        rows = [queue | {"open_on": _opens(queue["members"])} for queue in values["queues"]]
        output.listing(rows, ["name", "current_q_depth", "uncommitted_puts", "uncommitted_gets", "open_on"])
    if values["recovered"]:
        click.echo()
        rows = [{"recovered": row["name"]} | row for row in values["recovered"]]
        output.listing(rows, ["recovered", "by", "ago_s", "puts", "gets", "opens", "locks"])


def _opens(members: list[dict[str, Any]]) -> str:
    """Returns which members have a queue open, and how: ``QM1 input 2, QM2 exclusive``."""
    values = []
    for member in members:
        inputs = "exclusive" if member["exclusive"] else f"input {member['open_input_count']}"
        ways = [inputs] if member["open_input_count"] else []
        ways += [f"output {member['open_output_count']}"] if member["open_output_count"] else []
        if not ways and member["opens"]:
            ways = [f"open {member['opens']}"]
        if ways:
            values.append(" ".join([member["member"], *ways]))
    return ", ".join(values)


def _in_seconds(values: dict[str, Any]) -> dict[str, Any]:
    """Returns the same values with durations in seconds instead of milliseconds."""

    def seconds(row: dict[str, Any]) -> dict[str, Any]:
        durations = {"silent_ms", "lease_ms", "ago_ms"}
        return {(f"{key[:-3]}_s" if key in durations else key): _s(key, value, durations) for key, value in row.items()}

    lists = {key: [seconds(row) for row in values[key]] for key in ("members", "recovered") if key in values}
    return values | lists


def _s(key: str, value: Any, durations: set[str]) -> Any:
    return round(value / 1000, 3) if key in durations and value is not None else value
