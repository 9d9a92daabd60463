"""``trigmon rest``: messages over HTTPS, in the shape of MQ's REST interface."""

from __future__ import annotations

import socket
from pathlib import Path

import click

from trigmon.cli.command import command, invocation


@command(
    "rest",
    "trigmon --qmgr QM1 rest --listen 127.0.0.1:9443\n"
    "trigmon --qmgr 'tls://localhost:1415/QM1?authority=authority.crt' rest"
    " --listen 0.0.0.0:9443 --certificate server.crt --key server.key",
)
@click.option(
    "--listen", "address", metavar="HOST:PORT", default="127.0.0.1:9443", show_default=True, help="Port 0: any."
)
@click.option("--certificate", type=click.Path(dir_okay=False, exists=True, path_type=Path), help="Of this server.")
@click.option("--key", type=click.Path(dir_okay=False, exists=True, path_type=Path), help="Of the certificate.")
def rest(address: str, certificate: Path | None, key: Path | None) -> None:
    """Serve messages and MQSC over HTTPS until Ctrl-C, in the shape of MQ's REST interface.

    Each request is made by an account of trigmon tls user, by basic authentication with its password or by the token of
    a login, and may what the account may. So the queue manager needs its TLS listener, and --qmgr its TLS address or a
    name that the client's file has. Without --certificate it is HTTP, on a loopback address alone. Needs the extra web.
    """
    from trigmon.keeper.private_memory import keep_memory_private

    keep_memory_private()
    try:
        from trigmon.console.rest.rest_server import serve
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn", "jinja2"):
            raise
        raise click.ClickException(f"trigmon rest needs {error.name}: pip install 'trigmon[web]'") from None
    from trigmon.cli import output
    from trigmon.client.tls import tls_address

    if bool(certificate) != bool(key):
        raise click.UsageError("--certificate and --key go together")
    to = _tls(invocation().qmgr)
    q_mgr_name = tls_address(to).q_mgr_name
    if not q_mgr_name:
        raise click.UsageError(f"{to} names no queue manager: tls://host:port/NAME")
    link = _listening(address, is_safe=certificate is not None)
    host, port = link.getsockname()[:2]
    url = (
        f"{'https' if certificate else 'http'}://{f'[{host}]' if ':' in host else host}:{port}/ibmmq/rest/v3/messaging"
    )

    def announce() -> None:
        output.done(f"Serving {url}/qmgr/{q_mgr_name}/queue/QUEUE/message", {"url": url, "q_mgr_name": q_mgr_name})

    serve(link, to, q_mgr_name, announce, certificate=certificate, key=key)


def _tls(given: str | None) -> str:
    """Returns the address of TLS that is meant. Raises UsageError."""
    from trigmon.client.address import default_address
    from trigmon.client.tls import configured

    named = given or default_address()
    found = named if named.startswith("tls:") else configured(named)
    if not found:
        raise click.UsageError(
            f"{named} is no address of TLS, and the client's file has none for it: "
            "--qmgr tls://HOST:PORT/NAME?authority=FILE"
        )
    return found.split(",")[0]


def _listening(address: str, *, is_safe: bool) -> socket.socket:
    """Returns a socket that listens. Raises UsageError for an address beyond loopback where nothing is encrypted."""
    import ipaddress

    host, colon, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    try:
        is_loopback = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host).is_loopback
    except ValueError:
        is_loopback = False
    if not colon or not port.isdecimal() or int(port) > 65_535 or not host:
        raise click.UsageError(f"--listen {address} is not HOST:PORT")
    if not (is_safe or is_loopback):
        raise click.UsageError(f"--listen {address}: passwords go over it, so it needs --certificate and --key")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, int(port)), family=family)
