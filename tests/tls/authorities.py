"""Files of TLS for tests: an authority, the listener's certificate, and clients of every kind."""

from __future__ import annotations

import datetime
import socket
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from trigmon.tls import accounts
from trigmon.tls.accounts import Account
from trigmon.tls.certificates import Pair, make_authority, make_certificate
from trigmon.tls.passwords import hashed

NOW = datetime.datetime.now(datetime.UTC)


class Site:
    """A directory with the listener's files, and with clients that its authority knows, or a foreign one."""

    def __init__(self, directory: Path, hosts: tuple[str, ...] = ("localhost",)) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.authority, self.foreign = (make_authority(name, NOW) for name in ("ours", "theirs"))
        self.save(self.authority, "authority")
        self.save(self.foreign, "foreign")
        self.save(make_certificate(self.authority, hosts[0], hosts, NOW), "server")
        accounts.write(self.users, [])
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]

    @property
    def users(self) -> Path:
        return self.directory / "users.yaml"

    @property
    def settings(self) -> dict[str, object]:
        return {
            "tls.listen": f"127.0.0.1:{self.port}",
            "tls.certificate": self.directory / "server.crt",
            "tls.private_key": self.directory / "server.key",
            "tls.client_authority": self.directory / "authority.crt",
            "tls.users": self.users,
            "tls.ticket_key": self.directory / "ticket.key",
        }

    def save(self, pair: Pair, name: str) -> None:
        for end in ("crt", "key"):
            (self.directory / f"{name}.{end}").unlink(missing_ok=True)
        pair.save(self.directory / f"{name}.crt", self.directory / f"{name}.key")

    def let_in(self, *known: Account) -> None:
        accounts.write(self.users, known)

    def client(self, name: str, *, by: Pair | None = None, days: int = 10, now: datetime.datetime = NOW) -> None:
        """Makes a client's certificate."""
        self.save(make_certificate(by or self.authority, name, (), now, days), name)

    def self_signed(self, name: str) -> Pair:
        """Makes a client's certificate with CA:TRUE, as ``openssl req -x509`` does, and has the listener trust it."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
        builder = builder.not_valid_before(NOW).not_valid_after(NOW + datetime.timedelta(days=10))
        builder = builder.serial_number(x509.random_serial_number())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        pair = Pair(builder.sign(key, hashes.SHA256()), key)
        self.save(pair, name)
        authority = self.directory / "authority.crt"
        authority.write_bytes(authority.read_bytes() + (self.directory / f"{name}.crt").read_bytes())
        return pair

    def address(self, name: str = "", *, user: str = "", host: str = "localhost", authority: str = "authority") -> str:
        """Returns the address by which a client comes: with the certificate ``name``, or as ``user`` by password."""
        parts = [f"authority={self.directory / f'{authority}.crt'}"]
        if name:
            parts += [f"certificate={self.directory / f'{name}.crt'}", f"key={self.directory / f'{name}.key'}"]
        if user:
            parts += [f"user={user}", f"password_file={self.directory / 'password'}"]
        return f"tls://{host}:{self.port}/QM1?{'&'.join(parts)}"

    def password(self, text: str) -> str:
        """Writes the password that clients send; returns its hash."""
        path = self.directory / "password"
        path.write_text(text)
        path.chmod(0o600)
        return hashed(text)

    def play_false_server(self, listening: socket.socket, taken: list[bytes], links: int) -> None:
        """Accepts so many links as a server of another authority's; notes of each all that it could decrypt."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.save(make_certificate(self.foreign, "localhost", ("localhost",), NOW), "false")
        context.load_cert_chain(self.directory / "false.crt", self.directory / "false.key")
        for _ in range(links):
            link, _ = listening.accept()
            try:
                with context.wrap_socket(link, server_side=True) as spoken:
                    taken.append(spoken.recv(65_536))
            except OSError:
                taken.append(b"")
