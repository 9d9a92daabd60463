"""``trigmon metrics``: the metrics of a queue manager, once or served."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from trigmon.cli.command import command, invocation

if TYPE_CHECKING:
    from trigmon.console.metrics.exporter import Reader


@command(
    "metrics",
    "trigmon metrics\n"
    "trigmon metrics --listen 127.0.0.1:9157\n"
    "trigmon metrics --textfile /var/lib/node_exporter/trigmon.prom",
)
@click.option("--serve", is_flag=True, help="Serve or write them until Ctrl-C, as the settings metrics say.")
@click.option("--listen", metavar="HOST:PORT", help="Serve them there: a loopback address.")
@click.option("--textfile", type=click.Path(dir_okay=False), help="Write them into this file.")
@click.option("--data", type=click.Path(file_okay=False), help="The queue manager's data directory.")
def metrics(serve: bool, listen: str | None, textfile: str | None, data: str | None) -> None:
    """Print the metrics of the queue manager for Prometheus, or serve them with its health.

    A queue manager that does not answer has the status 0. trigmon run serves them itself where the setting
    metrics.listen or metrics.textfile says so. /healthz answers 200 while the exporter lives; /readyz answers 200 while
    the queue manager answers, takes puts, and a monitor reads the initiation queues, and 503 with the reason otherwise.
    """
    from trigmon import log
    from trigmon.console.metrics.exporter import ExporterOptions, Reader, run
    from trigmon.console.metrics.snapshot import QueueSelection
    from trigmon.setting_values import host_and_port

    ours = invocation()
    settings = ours.settings_of_meant(qmgr__data=data, metrics__listen=listen, metrics__textfile=textfile)
    given = settings.metrics
    options = ExporterOptions(
        listen=host_and_port(given.listen),
        textfile=given.textfile,
        interval_s=given.interval_s,
        selection=QueueSelection(given.queues, given.max_queues),
        directory=settings.qmgr.directory,
    )
    reader = Reader(ours.qmgr, settings.qmgr.name, options)
    if not (serve or listen or textfile):
        _print(reader)
    elif options.listen or options.textfile:
        log.configure(settings.log.level, settings.log.format)
        log.say_always(qmgr=settings.qmgr.name)
        run(reader, options)
    else:
        raise click.UsageError("--serve needs the setting metrics.listen or metrics.textfile")


def _print(reader: Reader) -> None:
    from trigmon.cli import output
    from trigmon.console.metrics.exposition import families, text

    found = families(reader.snapshot())
    if invocation().is_json:
        for family in found:
            for sample in family.samples:
                output.one({"name": sample.name, "labels": sample.labels, "value": sample.value})
    else:
        click.echo(text(found), nl=False)
