"""The sections of the settings: which keys exist, and what a value may be.

Defaults and reasons stand in the shipped ``config/trigmon.yaml`` alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from trigmon import paths
from trigmon.setting_values import (
    Address,
    AnyAddress,
    Bytes,
    ChannelText,
    ConnectionString,
    GroupName,
    HttpAddress,
    Mode,
    ObjectName,
    QmgrName,
    Schema,
    Seconds,
    SecretName,
    User,
    Variable,
    host_and_port,
)


class Section(BaseModel):
    """Is what the sections have in common."""

    # A value is what its layer wrote: "5" for a number would hide a slip of the pen.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class QmgrSettings(Section):
    """Section ``qmgr``: which queue manager it is."""

    name: QmgrName
    data: str | None
    definitions: list[str]

    @property
    def directory(self) -> Path:
        """The data directory, by the rule of :mod:`trigmon.paths`."""
        return paths.data_directory(self.name, self.data)


class ServerSettings(Section):
    """Section ``server``: sockets, limits, and who may do what."""

    socket_group: User | None
    socket_mode: Mode
    administrators: list[User]
    monitors: list[User]
    setters: list[User]
    audit_file: str | None
    watches: bool
    tcp: Address | None
    max_connections: Annotated[int, Field(ge=1, le=100_000)]
    max_connections_per_user: Annotated[int, Field(ge=1, le=100_000)] | None
    max_connections_over_tcp: Annotated[int, Field(ge=1, le=100_000)] | None
    max_handles_per_user: Annotated[int, Field(ge=0, le=100_000_000)]
    max_dynamic_queues_per_user: Annotated[int, Field(ge=0, le=100_000_000)]
    max_reservations_per_user: Annotated[int, Field(ge=0, le=100_000_000)]
    hello_timeout_s: Seconds
    frame_timeout_s: Seconds
    reply_timeout_s: Seconds
    stop_timeout_s: Seconds
    busy_poll_us: Annotated[int, Field(ge=0, le=1000)]

    @property
    def tcp_address(self) -> tuple[str, int] | None:
        """Host and port of ``tcp``."""
        return host_and_port(self.tcp)


class TlsSettings(Section):
    """Section ``tls``: the listener for other machines, and its files."""

    listen: AnyAddress | None
    certificate: str | None
    private_key: str | None
    client_authority: str | None
    users: str | None
    ticket_key: str | None

    @property
    def address(self) -> tuple[str, int] | None:
        """Host and port of ``listen``."""
        return host_and_port(self.listen)


class StoreSettings(Section):
    """Section ``store``: where messages lie, and what the disk must keep free."""

    disk_reserve: Bytes
    journal_archive: str | None
    journal_archive_days: Annotated[float, Field(gt=0, le=36_500)] | None
    postgres: ConnectionString | None
    postgres_schema: Schema | None
    accept_loss: bool
    lease_s: Annotated[float, Field(ge=0.2, le=3600)]


class GroupSettings(Section):
    """Section ``group``: the queue-sharing group the queue manager is a member of, if any."""

    name: GroupName | None
    postgres: ConnectionString | None
    postgres_schema: Schema | None
    accept_loss: bool
    lease_s: Annotated[float, Field(ge=0.2, le=3600)]


class MonitorSettings(Section):
    """Section ``monitor``: the trigger monitor."""

    initiation_q: str
    instances: Annotated[int, Field(ge=1, le=10_000)]
    max_runs: Annotated[int, Field(ge=0, le=100_000)]
    time_limit_s: Annotated[int, Field(ge=0, le=999_999_999)]
    grace_s: Seconds
    stop_runs: bool
    launcher: Literal["process", "systemd"]
    class_archives: bool
    run_as_file: str | None
    secrets_directory: str | None
    environment: list[Variable]


class ConnectSettings(Section):
    """Section ``connect``: the Spark Connect servers that a monitor keeps."""

    runs: Annotated[int, Field(ge=1, le=10_000)]
    master: Annotated[str, Field(pattern=r"^local(\[(\*|[0-9]+)\])?$")]
    memory: Annotated[str, Field(pattern=r"^[1-9][0-9]*[kmgKMG]$")]
    conf: list[Annotated[str, Field(pattern=r"^[^=\s]+=.*$")]]
    rss_limit: Bytes
    max_age_s: Annotated[int, Field(ge=0, le=999_999_999)]
    deadline_s: Seconds


class RunsSettings(Section):
    """Section ``runs``: how long the ledger keeps runs that have ended."""

    keep_count: Annotated[int, Field(ge=0, le=100_000_000)] | None
    keep_days: Annotated[float, Field(gt=0, le=36_500)] | None

    @property
    def keep_ms(self) -> int | None:
        """``keep_days`` in milliseconds."""
        return None if self.keep_days is None else round(self.keep_days * 86_400_000)


class MetricsSettings(Section):
    """Section ``metrics``: where metrics and health are to be read, and of which queues."""

    listen: Address | None
    textfile: str | None
    interval_s: Seconds
    queues: list[str]
    max_queues: Annotated[int, Field(ge=0, le=1_000_000)]


class TracesSettings(Section):
    """Section ``traces``: where spans are sent."""

    endpoint: HttpAddress | None


class LogSettings(Section):
    """Section ``log``: level and format."""

    level: Literal["debug", "info", "warning", "error"]
    format: Literal["auto", "json", "text", "journal"]


class BridgeSettings(Section):
    """One bridge of section ``bridges``: a queue manager elsewhere, reached by IBM's MQI.

    What a bridge leaves out has the default here; the shipped file explains each key.
    """

    queue_manager: QmgrName
    mqserver: ChannelText | None = None
    ccdt: str | None = None
    key_repository: str | None = None
    cipher_spec: Annotated[str, Field(pattern=r"^[A-Za-z0-9_*]{1,32}$")] | None = None
    user: User | None = None
    password_secret: SecretName | None = None
    initiation_queues: list[ObjectName] = []
    copy_queues: list[ObjectName] = []
    applicid_of_message: bool = False
    batch: Annotated[int, Field(ge=1, le=64)] = 32
    wait_s: Annotated[float, Field(ge=0.1, le=60)] = 1.0

    @model_validator(mode="after")
    def _is_one_way(self) -> BridgeSettings:
        if self.mqserver and self.ccdt:
            raise ValueError("mqserver and ccdt are two ways to one queue manager: take one of them out")
        if self.cipher_spec and not self.mqserver:
            raise ValueError("cipher_spec goes with mqserver: a channel table (CCDT) holds its own")
        if bool(self.user) != bool(self.password_secret):
            raise ValueError("user and password_secret go together: password_secret names a file, never the password")
        return self
