"""``trigmon web``: the web console."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from trigmon.cli.command import command, invocation


@command(
    "web",
    "trigmon web\ntrigmon web --listen 127.0.0.1:8080 --allow-actions\n"
    "trigmon web --listen unix:/run/user/1000/web.sock"
    " --show-data\n"
    "trigmon web --listen 127.0.0.1:8080 --token-file /run/trigmon-web/token",
)
@click.option(
    "--listen",
    "address",
    metavar="ADDRESS",
    default="127.0.0.1:0",
    show_default=True,
    help="A loopback address (port 0: any), or unix:PATH.",
)
@click.option("--allow-actions", is_flag=True, help="Forms may change something, as far as this user may.")
@click.option("--show-data", is_flag=True, help="Show the data of messages.")
@click.option("--host", "names", multiple=True, metavar="NAME", help="A further name browsers use, as behind a proxy.")
@click.option(
    "--token-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Take the token from this file, or write a new one there; it is not printed.",
)
def web(address: str, allow_actions: bool, show_data: bool, names: tuple[str, ...], token_file: Path | None) -> None:
    """Serve pages for a browser until Ctrl-C: overview, queues, runs, dead letters, rehearsal of a change.

    The address that is printed has a token: who has it sees what this user may see. Where standard output is no
    terminal, it is printed with --output json alone. The pages change nothing without --allow-actions, and hold no data
    of messages without --show-data. What programs wrote to stdout and stderr is shown always. From another machine use
    ssh -t -L. Needs the extra web: pip install 'trigmon[web]'.
    """
    from trigmon.cli import output
    from trigmon.keeper.private_memory import keep_memory_private

    keep_memory_private()
    try:
        from trigmon.console.web.web_server import serve
        from trigmon.console.web.web_socket import listening_at
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn", "jinja2"):
            raise
        raise click.ClickException(f"trigmon web needs {error.name}: pip install 'trigmon[web]'") from None
    ours = invocation()
    ours.announce_config()
    token = _token(token_file)
    try:
        listening = listening_at(address)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--listen") from None

    def announce(token: str) -> None:
        shown = f"the token in {token_file}" if token_file else token
        if listening.path is not None:
            forward = f"ssh -L 8080:{listening.path} HOST"
            text = f"Forward {listening.path}, as by {forward}, then open http://127.0.0.1:8080/?token={shown}"
            where = {"path": str(listening.path)} | ({} if token_file else {"token": token})
        else:
            url = f"{listening.url}/" if token_file else f"{listening.url}/?token={token}"
            text = f"Open {listening.url}/?token={shown}"
            where = {"url": url}
        output.done(text, where | ({"token_file": str(token_file)} if token_file else {}))

    options = {"allow_actions": allow_actions, "show_data": show_data}
    serve(listening, ours.qmgr, announce, token=token, names=names, **options)


def _token(file: Path | None) -> str:
    """Returns the token of a file; blank for one that is made anew and printed. Raises UsageError, BadParameter.

    What is no terminal may be a journal, which others read.
    """
    from trigmon.console.web.token_file import token_of

    if file is None:
        if not (sys.stdout.isatty() or invocation().is_json):
            raise click.UsageError("standard output is no terminal: give --token-file FILE, or --output json")
        return ""
    try:
        return token_of(file)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--token-file") from None
