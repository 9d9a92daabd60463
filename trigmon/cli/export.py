"""``trigmon export``: definitions out, as MQSC or as a definition file."""

from __future__ import annotations

import click

from trigmon.cli.command import command, invocation


@command("export", "trigmon export --yaml > objects.yaml\ntrigmon export --mqsc > objects.mqsc")
@click.option("--mqsc", "form", flag_value="mqsc", help="MQSC, in the shape of MQ's own dump.")
@click.option("--yaml", "form", flag_value="yaml", help="A definition file for trigmon apply.")
@click.option("--system", is_flag=True, help="The SYSTEM objects too.")
@click.option("--all", "everything", is_flag=True, help="With --yaml: every attribute, also those at their default.")
def export(form: str | None, system: bool, everything: bool) -> None:
    """Write the definitions of the queue manager to standard output; they load back equal."""
    from trigmon.cli.objects import rows

    if form is None:
        raise click.UsageError("say which form: --mqsc or --yaml")
    with invocation().connected() as qm:
        found = [row for kind in ("QMGR", "PROCESS", "queue") for row in rows(qm, kind)]
        name = qm.q_mgr_name
    if form == "mqsc":
        from trigmon.mqsc.writer import script

        click.echo(f"* trigmon export --mqsc, queue manager {name}")
        for line in script(found, system=system):
            click.echo(line)
        return
    from trigmon.definitions.export import yaml_text

    click.echo(f"# trigmon export --yaml, queue manager {name}")
    click.echo(yaml_text(found, system=system, everything=everything), nl=False)
