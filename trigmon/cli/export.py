"""``trigmon export``: writes the definitions as MQSC or as a definition file."""

from __future__ import annotations

import click

from trigmon.cli.command import command, invocation


@command("export", "trigmon export --yaml > objects.yaml\ntrigmon export --mqsc > objects.mqsc")
@click.option("--mqsc", is_flag=True, help="MQSC, in the form of dmpmqcfg.")
@click.option("--yaml", is_flag=True, help="A definition file for trigmon apply.")
@click.option("--system", is_flag=True, help="The SYSTEM objects too.")
@click.option("--all", "everything", is_flag=True, help="With --yaml: every attribute, also those at their default.")
def export(mqsc: bool, yaml: bool, system: bool, everything: bool) -> None:
    """Write the definitions of the queue manager to standard output; they load back equal."""
    from trigmon.cli.objects import rows
    from trigmon.mq.attributes import EVERY_TYPE

    if mqsc == yaml:
        raise click.UsageError("--mqsc and --yaml exclude each other" if mqsc else "give a form: --mqsc or --yaml")
    with invocation().connected() as qm:
        found = [row for kind in EVERY_TYPE for row in rows(qm, kind)]
        name = qm.q_mgr_name
    if mqsc:
        from trigmon.mqsc.mqsc_dump import script

        click.echo(f"* trigmon export --mqsc, queue manager {name}")
        for line in script(found, system=system):
            click.echo(line)
        return
    from trigmon.definitions.to_yaml import yaml_text

    click.echo(f"# trigmon export --yaml, queue manager {name}")
    click.echo(yaml_text(found, system=system, everything=everything), nl=False)
