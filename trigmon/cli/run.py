"""``trigmon run`` and ``trigmon monitor``: the queue manager and the trigger monitor, in the foreground."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from trigmon.cli.command import command, invocation

if TYPE_CHECKING:
    from trigmon.settings import Settings


@command("run", "trigmon run\ntrigmon --qmgr QM2 run --no-monitor --data /srv/trigmon/QM2")
@click.option("--monitor/--no-monitor", default=True, help="Start a trigger monitor as its child (default), or not.")
@click.option("--data", type=click.Path(file_okay=False), help="The directory of its store.")
@click.option("--accept-loss", is_flag=True, help="Start although acknowledged messages are missing (see exit 6).")
@click.pass_context
def run(ctx: click.Context, monitor: bool, data: str | None, accept_loss: bool) -> None:
    """Run a queue manager in the foreground, as systemd starts it; SIGTERM or Ctrl-C ends it in order.

    Exit 6 when the data directory holds less than was acknowledged; the log names what is missing.
    """
    from trigmon.keeper.private_memory import keep_memory_private
    from trigmon.server import daemon

    keep_memory_private()
    ours = invocation()
    ours.announce_config()
    settings = ours.settings(qmgr__data=data)
    if accept_loss and settings.store.postgres:
        raise click.UsageError("--accept-loss is for a data directory; for store.postgres there is store.accept_loss")
    ctx.exit(daemon.run(settings, with_monitor=monitor, accept_loss=accept_loss))


@command("monitor", "trigmon monitor\ntrigmon monitor --initq ORDERS.INITQ")
@click.option("--initq", metavar="QUEUE", help="The initiation queue (default: the configured one).")
@click.option("--data", type=click.Path(file_okay=False), help="The queue manager's data directory.")
@click.option("--stop-runs/--leave-runs", default=None, help="At its end, end its programs, or leave them (default).")
def monitor(initq: str | None, data: str | None, stop_runs: bool | None) -> None:
    """Run a trigger monitor alone: it starts what the trigger messages on its initiation queue ask for.

    Several monitors may serve one queue manager, and one initiation queue.
    """
    from trigmon import log
    from trigmon.keeper.private_memory import keep_memory_private
    from trigmon.launch.permissions import Grants
    from trigmon.launch.spark.warm.connect_server import Serving
    from trigmon.monitor.child_process import Limits
    from trigmon.monitor.monitor import MonitorOptions
    from trigmon.monitor.monitor import run as run_monitor
    from trigmon.monitor.remote_looks import Bridges

    keep_memory_private()
    ours = invocation()
    ours.announce_config()
    settings = ours.settings(qmgr__data=data, monitor__initiation_q=initq, monitor__stop_runs=stop_runs)
    log.configure(settings.log.level, settings.log.format)
    given = settings.monitor
    options = MonitorOptions(
        initiation_q=given.initiation_q,
        limits=Limits(given.instances, given.time_limit_s, given.grace_s, given.max_runs),
        grants=Grants.of(given.run_as_file, given.secrets_directory, _variables(settings)),
        data=settings.qmgr.data,
        stop_runs=given.stop_runs,
        class_archives=given.class_archives,
        launcher=given.launcher,
        connect=Serving(
            runs=settings.connect.runs,
            master=settings.connect.master,
            memory=settings.connect.memory,
            conf=tuple(settings.connect.conf),
            rss_limit=settings.connect.rss_limit,
            max_age_s=settings.connect.max_age_s,
            deadline_s=settings.connect.deadline_s,
        ),
        traces=settings.traces.endpoint or "",
        bridges=Bridges(by_name=settings.bridges, secrets=given.secrets_directory),
    )
    run_monitor(ours.qmgr, options)


def _variables(settings: Settings) -> list[str]:
    """Returns the variables that programs are given beside their own: those of the settings, and where spans go."""
    from trigmon.mq.traceparent import ENDPOINT

    endpoint = settings.traces.endpoint
    return [*([f"{ENDPOINT}={endpoint}"] if endpoint else []), *settings.monitor.environment]
