"""``runmqtrm``: a trigger monitor for one initiation queue, as ``trigmon monitor`` runs it."""

from __future__ import annotations

from collections.abc import Sequence

import click

from trigmon.cli.mq_commands.mq_options import MqUsageError, address_of, connected, read
from trigmon.mq.errors import MQError

ENDED, INTERRUPTED, NOT_RUN = 0, 10, 20
DEFAULT_INITIATION_Q = "SYSTEM.DEFAULT.INITIATION.QUEUE"


def runmqtrm(arguments: Sequence[str]) -> int:
    """Runs the monitor until it is asked to stop; 0 then, 10 after an error, 20 where it did not begin.

    Raises MqUsageError.
    """
    given = read(arguments, "m:q:r")
    if given.has("r"):
        raise MqUsageError("-r is not taken: the monitor connects again by itself")
    q_name = given.value("q", DEFAULT_INITIATION_Q)
    name = given.value("m")
    try:
        # The monitor itself waits for a queue manager that is not there; MQ's ends.
        with connected(name, "runmqtrm") as qm, qm.open(q_name, "inquire"):
            name = qm.q_mgr_name
    except MQError as error:
        from trigmon.console.error_text import sentence

        click.echo(f"runmqtrm: {sentence(error)}", err=True)
        return NOT_RUN
    click.echo(f"trigmon trigger monitor started: queue manager {name}, initiation queue {q_name}.")
    from trigmon.cli.main import cli

    try:
        cli.main(["--qmgr", address_of(name) or name, "monitor", "--initq", q_name], prog_name="trigmon")
    except SystemExit as ended:
        return INTERRUPTED if ended.code else ENDED
    return ENDED
