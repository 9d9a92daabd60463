"""``trigmon web``: the web console."""

from __future__ import annotations

import click

from trigmon.cli.command import command, invocation


@command(
    "web",
    "trigmon web\ntrigmon web --listen 127.0.0.1:8080 --allow-actions\n"
    "trigmon web --listen unix:/run/user/1000/web.sock"
    " --show-data",
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
def web(address: str, allow_actions: bool, show_data: bool, names: tuple[str, ...]) -> None:
    """Serve pages for a browser until Ctrl-C: overview, queues, runs, dead letters, rehearsal of a change.

    The address that is printed has a token: who has it sees what this user may see. The pages change nothing without
    --allow-actions, and hold no data of messages without --show-data. What programs wrote to stdout and stderr is
    shown. From another machine use ssh -L. Needs the extra web: pip install 'trigmon[web]'.
    """
    from trigmon.cli import output

    try:
        from trigmon.console.web.web_server import serve
        from trigmon.console.web.web_socket import listening_at
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn", "jinja2"):
            raise
        raise click.ClickException(f"trigmon web needs {error.name}: pip install 'trigmon[web]'") from None
    ours = invocation()
    ours.announce_config()
    try:
        listening = listening_at(address)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--listen") from None

    def announce(token: str) -> None:
        if listening.path is None:
            url = f"{listening.url}/?token={token}"
            output.done(f"Open {url}", {"url": url})
            return
        forward = f"ssh -L 8080:{listening.path} HOST"
        text = f"Forward {listening.path}, as by {forward}, then open http://127.0.0.1:8080/?token={token}"
        output.done(text, {"path": str(listening.path), "token": token})

    serve(listening, ours.qmgr, announce, allow_actions=allow_actions, show_data=show_data, names=names)
