"""The peers that are known, and which of them are here."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import SubprocessError

from tests.benchmarks.peers.on_beanstalkd import Beanstalkd
from tests.benchmarks.peers.on_huey import Huey
from tests.benchmarks.peers.on_litequeue import Litequeue
from tests.benchmarks.peers.on_nats import Nats
from tests.benchmarks.peers.on_postgres_server import Postgres
from tests.benchmarks.peers.on_procrastinate import Procrastinate
from tests.benchmarks.peers.on_rabbitmq import Rabbitmq
from tests.benchmarks.peers.on_redis import Redis
from tests.benchmarks.peers.on_trigmon import Trigmon
from tests.benchmarks.peers.peer import Peer

PEERS: tuple[type[Peer], ...] = (
    Trigmon,
    Beanstalkd,
    Redis,
    Postgres,
    Rabbitmq,
    Nats,
    Huey,
    Litequeue,
    Procrastinate,
)


def absent(only: Collection[str] = ()) -> dict[str, str]:
    """Returns by name why peers cannot be measured here; of those that are wanted, all when none is named."""
    wanted = {name.lower() for name in only}
    reasons = {each.name: each.why_absent() for each in PEERS if not wanted or each.name.lower() in wanted}
    return {name: reason for name, reason in reasons.items() if reason}


@contextmanager
def running(directory: Path, only: Collection[str], away: dict[str, str]) -> Iterator[dict[str, Peer]]:
    """Yields the peers that are wanted and not ``away``, each started; ends all of them.

    Trigmon is always there. A peer that does not start is away from then on, with the reason. Each has a directory of
    its own that others may pass through: PostgreSQL runs as another user where this one is root.
    """
    wanted = {name.lower() for name in only}
    directory.chmod(0o755)
    with ExitStack() as stack:
        peers: dict[str, Peer] = {}
        for make in PEERS:
            is_wanted = not wanted or make is Trigmon or make.name.lower() in wanted
            if is_wanted and make.name not in away:
                home = directory / make.name.lower().replace(" ", "-")
                home.mkdir(mode=0o755)
                try:
                    peer = make(home)
                except (RuntimeError, OSError, AssertionError, SubprocessError) as error:
                    if make is Trigmon:
                        raise
                    away[make.name] = f"it is here, but does not start: {error}"
                else:
                    peers[make.name] = peer
                    stack.callback(peer.end)
        yield peers
