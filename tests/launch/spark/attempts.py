"""What a stranger achieves at all ports of a session, each attacked at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import product

from tests.launch.spark.attacks import hears, listeners, page, uploads_a_block
from tests.strangers import as_nobody

ATTACKS = {each.__name__: each for each in (uploads_a_block, hears)}
PAGES = ("/", "/environment/", "/connect/", "/executors/threadDump/?executorId=driver", "/api/v1/applications")


def all_at_once(attack, *lists):
    """What each attack achieved, in the order of :func:`itertools.product`: a mute port is waited for by all."""
    tries = list(product(*lists))
    with ThreadPoolExecutor(len(tries)) as threads:
        return list(zip(tries, threads.map(lambda one: attack(*one), tries), strict=True))


def broken_into(session):
    """What a stranger achieved at any port."""
    addresses = [("127.0.0.1", port) for _, port in listeners(session)]
    assert len(addresses) >= 2, "Spark listens for RPC and for blocks at least"
    tried = as_nobody(lambda: all_at_once(lambda name, to: ATTACKS[name](to), ATTACKS, addresses))
    return {name for (name, _), is_in in tried if is_in}


def read(session):
    """The pages that a stranger may read at any port."""
    addresses = [("127.0.0.1", port) for _, port in listeners(session)]
    tried = as_nobody(lambda: all_at_once(lambda path, to: page(to, path), PAGES, addresses))
    return {path for (path, _), status in tried if status in (200, 302)}
