"""``python -m tests.benchmarks --peers``: its options, and what it prints."""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.benchmarks.peers.comparison import MOST_OF_UNIT, Comparison, Figures, cells
from tests.benchmarks.peers.found_peers import PEERS, absent, running
from tests.benchmarks.peers.server_process import ENDING
from tests.benchmarks.peers.shown import as_json, machine, picture, table
from tests.benchmarks.peers.turn_of_clients import OPERATIONS, UNIT

TERMINATED = 128 + signal.SIGTERM
DEFAULT_OPERATIONS = ("put", "get", "unit")


@dataclass
class Options:
    """What is measured, how long, and where it goes."""

    seconds: float
    clients: list[int]
    sizes: list[int]
    depths: list[int]
    only: list[str]
    operations: list[str]
    picture: Path | None
    json: Path | None


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``--peers``."""
    group = parser.add_argument_group(
        "with --peers, the first two also with --profile; a LIST has commas between its values"
    )
    group.add_argument("--seconds", type=float, default=2.0, help="how long each turn lasts (default 2)")
    group.add_argument("--clients", type=_numbers, default=[1, 16, 64], metavar="LIST", help="default 1,16,64")
    group.add_argument("--sizes", type=_numbers, default=[1024], metavar="LIST", help="bytes a message, default 1024")
    group.add_argument(
        "--depths", type=_numbers, default=[0], metavar="LIST", help="messages on the queue while it works, default 0"
    )
    group.add_argument("--only", type=_names, default=[], metavar="LIST", help=", ".join(it.name for it in PEERS))
    group.add_argument(
        "--operations",
        type=_operations,
        default=list(DEFAULT_OPERATIONS),
        metavar="LIST",
        help=f"of {', '.join(OPERATIONS)}; default {','.join(DEFAULT_OPERATIONS)}",
    )
    group.add_argument("--picture", type=Path, metavar="FILE.svg", help="draws it, where matplotlib is importable")
    group.add_argument("--json", type=Path, metavar="FILE", help="writes each round's figures")


def options_of(parsed: argparse.Namespace) -> Options:
    """Returns the options of ``--peers`` out of all."""
    return Options(**{name: getattr(parsed, name) for name in Options.__dataclass_fields__})


def _numbers(text: str) -> list[int]:
    return [int(word.replace("_", "")) for word in text.split(",")]


def _names(text: str) -> list[str]:
    known = {it.name.lower() for it in PEERS}
    if unknown := [name for name in text.split(",") if name.lower() not in known]:
        raise argparse.ArgumentTypeError(f"no such peer: {', '.join(unknown)}")
    return text.split(",")


def _operations(text: str) -> list[str]:
    if unknown := [name for name in text.split(",") if name not in OPERATIONS]:
        raise argparse.ArgumentTypeError(f"no such operation: {', '.join(unknown)}")
    return text.split(",")


@contextlib.contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Lets a SIGTERM leave the block by SystemExit, so that the servers' directories are removed.

    Python drops what a handler raises within a finalizer, a weak reference's callback or a garbage collection. So it is
    raised again each second, unless it is on its way.
    """

    def leave(*_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 1)
        if not _is_leaving():
            sys.exit(TERMINATED)

    for number in ENDING:
        signal.signal(number, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, 0)


def _is_leaving() -> bool:
    handled = sys.exception()
    while handled is not None and not isinstance(handled, SystemExit):
        handled = handled.__context__
    return handled is not None


@ended_by_sigterm()
def compare(directory: Path, rounds: int, options: Options) -> None:
    """Measures every cell and prints its table as soon as it is there."""
    away = absent(options.only)
    to_measure, too_large = cells(options.clients, options.sizes, options.depths)
    here = machine()
    measured: list[Figures] = []
    with running(directory, options.only, away) as peers:
        print(f"{here['cores']} cores, load {here['load']:.2f} before; {rounds} rounds of {options.seconds:g} s a turn")
        for name, peer in peers.items():
            print(f"  {name}: {peer.durable_by}{f' ({peer.remark})' if peer.remark else ''}")
        for name, why in away.items():
            print(f"  absent: {name}: {why}")
        for cell in too_large:
            print(f"  left out, it needs too much room: {cell}")
        if "unit" in options.operations and (long := [it for it in options.sizes if it * UNIT > MOST_OF_UNIT]):
            print(f"  left out, they are too long: units of {UNIT} messages of {', '.join(f'{it:,} B' for it in long)}")
        print(flush=True)
        for figures in Comparison(peers, options.seconds, rounds, options.operations).measured(to_measure):
            measured.append(figures)
            print(table(figures), flush=True)
    if options.json:
        how = {**here, "rounds": rounds, **{name: it for name, it in asdict(options).items() if it is not None}}
        options.json.write_text(json.dumps(as_json(measured, away, how), indent=1, default=str) + "\n")
    if options.picture:
        print(picture(measured, options.picture))
