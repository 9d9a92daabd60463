"""``trigmon tls``: a private authority, certificates, and the users who may come by TLS."""

from __future__ import annotations

import datetime
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trigmon.cli.command import command, group, invocation

if TYPE_CHECKING:
    from trigmon.settings import Settings
    from trigmon.tls.accounts import Account, Accounts
    from trigmon.tls.certificates import Pair

SERVER, AUTHORITY = "server", "authority"


@group("tls", example="trigmon tls make --host mq1.example.com")
def tls() -> None:
    """TLS for clients on other machines: make, user, show."""


@command(
    "make", "trigmon tls make --host mq1.example.com --host 10.0.0.5\ntrigmon tls make --renew --days 90", group=tls
)
@click.option("--host", "hosts", multiple=True, help="A name or an address by which clients call this machine.")
@click.option("--days", type=click.IntRange(1, 3650), default=397, show_default=True, help="Days it is valid.")
@click.option("--renew", is_flag=True, help="Another certificate for the listener, by the same authority.")
def make(hosts: tuple[str, ...], days: int, renew: bool) -> None:
    """Make a private authority and a certificate for the listener, in tls/ of the data directory.

    A queue manager that serves takes a renewed certificate within seconds. With certificates of your own authority
    nothing needs to be made: name them in tls.certificate, tls.private_key and tls.client_authority.
    """
    from trigmon.cli import output
    from trigmon.keeper.private_memory import keep_memory_private
    from trigmon.tls import accounts, certificates

    keep_memory_private()
    settings = invocation().settings_of_meant()
    directory = _directory(settings)
    now = datetime.datetime.now(datetime.UTC)
    if renew:
        authority = _authority(directory)
        hosts = hosts or _hosts_of(directory / "server.crt")
    else:
        if not hosts:
            raise click.UsageError("--host: the name or the address by which clients call this machine")
        if (directory / "server.crt").exists():
            raise click.UsageError(f"{directory} has a certificate already: --renew makes another")
        authority = certificates.make_authority(f"trigmon {settings.qmgr.name}", now)
    made = certificates.make_certificate(authority, hosts[0], hosts, now, days)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not renew:
        authority.save(*_of_authority(directory))
    _put_in_place(made, directory)
    users = directory / "users.yaml"
    if not users.exists():
        accounts.write(users, [])
    _give_to_daemon(directory)
    until = made.certificate.not_valid_after_utc
    output.done(
        f"{directory / 'server.crt'} is for {', '.join(hosts)} until {until.date()}; "
        "set tls.listen, and let users come: trigmon tls user NAME --certificate",
        {"certificate": str(directory / "server.crt"), "hosts": list(hosts), "valid_until": until.isoformat()},
    )


@command(
    "user",
    "trigmon tls user alice --certificate --directory alice\ntrigmon tls user batch --password\n"
    'trigmon tls user bob --subject "CN=bob,O=Example"\ntrigmon tls user alice --remove',
    group=tls,
)
@click.argument("name")
@click.option("--certificate", is_flag=True, help="Make a certificate and a client's file for this user.")
@click.option("--directory", type=click.Path(path_type=Path), help="Where those go (default: ./NAME).")
@click.option("--days", type=click.IntRange(1, 3650), default=397, show_default=True, help="Days it is valid.")
@click.option(
    "--password", is_flag=True, help="Ask for a password; its hash is kept. Without a terminal: a line of input."
)
@click.option("--subject", multiple=True, help="A certificate of your own authority, CN=alice,O=..., or sha256:DIGITS.")
@click.option("--group", "groups", multiple=True, help="A group of the user, for the lists in the section server.")
@click.option("--remove", is_flag=True, help="Let the user in no more; connections that are open go on.")
def user(
    name: str,
    certificate: bool,
    directory: Path | None,
    days: int,
    password: bool,
    subject: tuple[str, ...],
    groups: tuple[str, ...],
    remove: bool,
) -> None:
    """Let a user come by TLS, by a certificate or a password, or no more."""
    from trigmon.cli import output
    from trigmon.keeper.private_memory import keep_memory_private
    from trigmon.tls import accounts, passwords
    from trigmon.tls.accounts import Account

    keep_memory_private()
    if not (certificate or password or subject or groups or remove):
        raise click.UsageError("say how the user comes: --certificate, --password or --subject; or --remove")
    settings = invocation().settings_of_meant()
    path = _users(settings)
    known = accounts.read(path)
    before = known.by_user.get(name, Account(name))
    if remove:
        if name not in known.by_user:
            raise click.UsageError(f"{path} has no user {name}")
        _write(path, known, before, None)
        output.done(f"{name} comes in no more; connections that are open go on", {"user": name, "removed": True})
        return
    names = [*before.certificates, *subject]
    where = directory or Path(name)
    _check(path, known, before._replace(certificates=tuple(names), groups=(*before.groups, *groups)))
    if certificate:
        # Not by its subject: a certificate that was lost stays out when the user gets another one.
        names.append(_make_client(settings, name, where, days))
    now = before._replace(
        password=passwords.hashed(_asked()) if password else before.password,
        certificates=tuple(dict.fromkeys(names)),
        groups=tuple(dict.fromkeys([*before.groups, *groups])),
    )
    _write(path, known, before, now)
    made = f"; {where} has what {name} needs: copy it there as ~/.config/trigmon" if certificate else ""
    shown = {"user": name, "certificates": list(now.certificates), "has_password": bool(now.password)}
    output.done(f"{name} may come by TLS{made}", shown | {"groups": list(now.groups)})


@command("show", "trigmon tls show\ntrigmon tls show --output json", group=tls)
def show() -> None:
    """Show the certificates, until when they are valid, and the users."""
    from trigmon.cli import output
    from trigmon.tls import accounts, certificates

    settings = invocation().settings_of_meant()
    directory, users = _directory(settings), _users(settings)
    for what, given in ((SERVER, settings.tls.certificate), (AUTHORITY, settings.tls.client_authority)):
        path = Path(given) if given else directory / f"{what}.crt"
        if given or path.exists():
            until = certificates.not_after(path).isoformat(timespec="seconds")
            output.one({"certificate": what, "file": str(path), "valid_until": until})
    rows = (
        {
            "user": account.user,
            "certificates": ", ".join(account.certificates),
            "password": "yes" if account.password else "",
            "groups": ", ".join(account.groups),
        }
        for account in accounts.read(users).by_user.values()
    )
    output.listing(rows, ["user", "certificates", "password", "groups"])


def _directory(settings: Settings) -> Path:
    data = settings.qmgr.directory
    if not data.exists():
        raise click.UsageError(f"{data}: there is no queue manager yet: start it once, or name its --data")
    return data / "tls"


def _of_authority(directory: Path) -> tuple[Path, Path]:
    return directory / "authority.crt", directory / "authority.key"


def _authority(directory: Path) -> Pair:
    """Returns the authority that ``make`` has made."""
    from trigmon.tls import certificates

    _check_made(*_of_authority(directory))
    return certificates.load(*_of_authority(directory))


def _check_made(*paths: Path) -> None:
    """Raises UsageError for a file that ``make`` makes, and that is not there."""
    if missing := [path for path in paths if not path.exists()]:
        raise click.UsageError(f"{missing[0]}: there is no such file yet: trigmon tls make --host NAME makes it")


def _put_in_place(made: Pair, directory: Path) -> None:
    """Writes the listener's certificate and key. Those from before stay beside them, and in place until then."""
    names = ("server.crt", "server.key")
    new = [directory / f"{name}.new" for name in names]
    for path in new:
        path.unlink(missing_ok=True)
    made.save(*new)
    for name, path in zip(names, new, strict=True):
        if (directory / name).exists():
            (directory / f"{name}.before").unlink(missing_ok=True)
            (directory / f"{name}.before").hardlink_to(directory / name)
        path.replace(directory / name)


def _give_to_daemon(directory: Path) -> None:
    """Gives what root has made to the daemon's user, but not the authority's key, which the daemon never needs."""
    if os.geteuid() != 0:
        return
    owner = directory.parent.stat()
    for path in (directory, *directory.iterdir()):
        if path.name != "authority.key":
            os.chown(path, owner.st_uid, owner.st_gid)


def _users(settings: Settings) -> Path:
    directory = _directory(settings)
    if settings.tls.users:
        return Path(settings.tls.users)
    _check_made(directory / "users.yaml")
    return directory / "users.yaml"


def _check(path: Path, known: Accounts, now: Account) -> None:
    """Raises TlsFileError for an account that there cannot be, before anything is made for it."""
    from trigmon.tls import accounts

    accounts.check(path, list({**known.by_user, now.user: now}.values()))


def _write(path: Path, known: Accounts, before: Account, now: Account | None) -> None:
    from trigmon.tls import accounts

    after = {**known.by_user, before.user: now}
    accounts.write(path, [account for account in after.values() if account is not None])


def _asked() -> str:
    """Returns a password that was typed twice, or a line of standard input. An empty one is refused."""
    if sys.stdin.isatty():
        text = str(click.prompt("password", hide_input=True, confirmation_prompt=True))
    else:
        text = sys.stdin.readline().rstrip("\n")
    if not text:
        raise click.UsageError("--password: an empty password is none")
    return text


def _make_client(settings: Settings, name: str, where: Path, days: int) -> str:
    """Writes a certificate for a user, and the client's file; returns the certificate's fingerprint."""
    from trigmon.tls import certificates
    from trigmon.tls.accounts import fingerprint

    for path in (where / f"{name}.crt", where / f"{name}.key"):
        if path.exists():
            raise click.UsageError(f"{path} is there already: --directory names another place, or move it away")
    directory = _directory(settings)
    authority = _authority(directory)
    made = certificates.make_certificate(authority, name, (), datetime.datetime.now(datetime.UTC), days)
    hosts, port = _hosts_of(directory / "server.crt"), (settings.tls.address or ("", 1415))[1]
    where.mkdir(mode=0o700, parents=True, exist_ok=True)
    made.save(where / f"{name}.crt", where / f"{name}.key")
    (where / "authority.crt").write_bytes((directory / "authority.crt").read_bytes())
    lines = [
        f"[{settings.qmgr.name}]",
        f"address = tls://{_in_url(next((host for host in hosts if '*' not in host), hosts[0]))}:{port}",
        "authority = authority.crt",
        f"certificate = {name}.crt",
        f"key = {name}.key",
    ]
    (where / "client.ini").write_text("\n".join(lines) + "\n")
    return fingerprint(made.der)


def _hosts_of(certificate: Path) -> tuple[str, ...]:
    from trigmon.tls import certificates

    return certificates.hosts(certificate)


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
