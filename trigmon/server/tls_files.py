"""The files of the TLS listener: read at the start, read anew when they change, and looked at for their expiry."""

from __future__ import annotations

import datetime
import ssl
from pathlib import Path
from typing import Any

from trigmon.server.exit_status import CannotStart
from trigmon.setting_sections import TlsSettings
from trigmon.tls import accounts
from trigmon.tls.accounts import Accounts
from trigmon.tls.contexts import TlsFileError, server_context
from trigmon.tls.tickets import TicketKey, ticket_key

AHEAD = datetime.timedelta(days=30)
"""So long before a certificate expires the status and the log say so."""
_Stamp = tuple[tuple[int, int, int], ...]


class TlsFiles:
    """What of the files is in force: context, accounts, key of tickets.

    A change that cannot be used changes nothing, and is logged.
    """

    def __init__(self, settings: TlsSettings, data: Path, log: Any, q_mgr_name: str) -> None:
        self.certificate = Path(settings.certificate or data / "tls" / "server.crt")
        self._key = Path(settings.private_key or data / "tls" / "server.key")
        own = data / "tls" / "authority.crt"
        given = settings.client_authority
        self._authority = Path(given) if given else own if own.exists() else None
        self._users = Path(settings.users or data / "tls" / "users.yaml")
        self._ticket_key = Path(settings.ticket_key or data / "tls" / "ticket.key")
        self._q_mgr_name = q_mgr_name
        self._log = log
        self._problem = ""  # why the files as they are now cannot be used
        try:
            ticket_key(self._ticket_key, q_mgr_name)  # which makes it, before it is looked at for changes
            self._stamp = self._now_on_disk()
            self.context, self.accounts, self.ticket_key = self._read()
            self._expires = self._expiry()
        except TlsFileError as error:
            raise CannotStart(f"tls.listen: {error}. trigmon tls make writes the files") from None
        except ImportError as error:
            raise CannotStart(f"tls.listen: {error}") from None

    def look(self) -> bool:
        """Reads the files anew when one has changed; returns whether others are in force now."""
        stamp = self._now_on_disk()
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        try:
            context, found, ticket_key = self._read()
            self._expires = self._expiry()
        except TlsFileError as error:
            self._problem = str(error)
            self._log.error("the files of TLS cannot be used; those from before stay in force", why=self._problem)
            return False
        self._problem = ""
        self.context, self.accounts, self.ticket_key = context, found, ticket_key
        self._log.info("the files of TLS were read anew", users=len(found.by_user), valid_until=self.valid_until)
        return True

    @property
    def valid_until(self) -> str:
        """The day on which the first certificate expires."""
        return min(self._expires.values()).date().isoformat()

    def warnings(self, now: datetime.datetime) -> list[str]:
        """Returns a sentence for each certificate that has expired or soon will, and for files that cannot be used."""
        warnings = []
        if self._problem:
            warnings.append(f"{self._problem}: those of TLS from before stay in force, until the next start")
        for path, until in self._expires.items():
            if until - now < AHEAD:
                left = "has expired" if until <= now else f"expires in {(until - now).days} days"
                warnings.append(f"{path} {left} ({until.date()}): trigmon tls make --renew makes another")
        return warnings

    def _expiry(self) -> dict[Path, datetime.datetime]:
        from trigmon.tls.certificates import not_after

        wanted = [self.certificate, *([self._authority] if self._authority else [])]
        return {path: not_after(path) for path in wanted}

    def _read(self) -> tuple[ssl.SSLContext, Accounts, TicketKey]:
        context = server_context(self.certificate, self._key, self._authority)
        return context, accounts.read(self._users), ticket_key(self._ticket_key, self._q_mgr_name)

    def _now_on_disk(self) -> _Stamp:
        stamps = []
        for path in (self.certificate, self._key, self._authority, self._users, self._ticket_key):
            try:
                found = path.stat() if path else None
            except OSError:
                found = None
            stamps.append((found.st_ino, found.st_mtime_ns, found.st_size) if found else (0, 0, 0))
        return tuple(stamps)
