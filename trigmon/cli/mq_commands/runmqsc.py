"""``runmqsc``: MQSC commands from standard input or a file, as ``trigmon mqsc`` runs them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from io import TextIOWrapper
from typing import TextIO

import click

from trigmon.cli.mq_commands.mq_options import MqUsageError, connected, read

LONGEST_WAIT_S = 999_999


def runmqsc(arguments: Sequence[str]) -> int:
    """Runs MQSC commands; 0 all processed, 10 some not, 20 none. Raises MqUsageError."""
    from trigmon.cli.mqsc import script_lines
    from trigmon.client.address import default_address
    from trigmon.mq.errors import MQError
    from trigmon.mqsc.script import COULD_NOT_RUN, run

    given = read(arguments, "ef:vw:cu:n", words=1)
    for letter, why in (("u", "the socket's mode or TLS proves the user"), ("n", "there are no channels here")):
        if given.has(letter):
            raise MqUsageError(f"-{letter} is not taken: {why}")
    timeout_s = given.number("w", 10, LONGEST_WAIT_S) or 1
    name, echoes = given.word(0), not given.has("e")
    with _opened(given.value("f")) as script:
        if given.has("v"):
            meant = name or default_address()
            return run(script_lines(script, meant), None, click.echo, meant, echoes=echoes)
        try:
            with connected(name, "runmqsc", timeout_s) as qm:
                return run(script_lines(script, qm.q_mgr_name), qm.call, click.echo, qm.q_mgr_name, echoes=echoes)
        except MQError as error:
            for line in _not_available(name, error):
                click.echo(line)
            return COULD_NOT_RUN


def _not_available(name: str, error: Exception) -> Iterator[str]:
    """Yields the lines of a queue manager that cannot be reached; the reason stands behind MQ's message."""
    from trigmon.console.error_text import sentence
    from trigmon.mqsc.reply_text import counts

    yield from ("trigmon, MQ's commands.", f"Starting MQSC for queue manager {name}.")
    yield from ("AMQ8146E: trigmon queue manager not available.", f"   {sentence(error)}", "")
    yield from counts(0, 0, 0)


@contextmanager
def _opened(file: str) -> Iterator[TextIO | None]:
    """Yields the file of commands, None where standard input is meant. Raises MqUsageError where it cannot be read."""
    from trigmon import files

    try:
        script = TextIOWrapper(files.opened(file), encoding="utf-8", errors="surrogateescape") if file else None
    except OSError as error:
        raise MqUsageError(f"-f {file}: {error.strerror}") from None
    with script or nullcontext() as opened:
        yield opened
