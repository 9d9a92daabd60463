"""``python -m tests.benchmarks``: speed as ratios, everything that is compared measured in turns within one run.

``--quick`` measures little, to see that it works; its figures mean nothing.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median

from tests.benchmarks import (
    arriving,
    call_stages,
    copying,
    first_row,
    full_year,
    large_units,
    mq_programs,
    on_shared,
    over_tls,
    reserving,
    spark_peers,
)
from tests.benchmarks.backing_up import BackingUp
from tests.benchmarks.deciding import microseconds
from tests.benchmarks.definitions import Definitions
from tests.benchmarks.depths import Depths
from tests.benchmarks.draining import draining, ways
from tests.benchmarks.heads import WAYS, Heads
from tests.benchmarks.measuring import in_turns, told
from tests.benchmarks.on_postgres import SkipLocked, TrigmonThere
from tests.benchmarks.on_postgres import per_second as per_second_there
from tests.benchmarks.peers import peers_command
from tests.benchmarks.restarting import Restarting
from tests.benchmarks.scheduling import Scheduling
from tests.benchmarks.scraping import Scraping
from tests.benchmarks.servers import Beanstalkd, Sqlite, Trigmon, per_second
from tests.benchmarks.starting import WARM, Starting
from tests.benchmarks.watched import VIEWERS, Watched
from tests.postgres import Server

WORKS = {
    "put": ("put, each durable when answered", ("trigmon", "beanstalkd -f0", "SQLite, a row a commit")),
    "get": ("get, each durable when answered", ("trigmon", "beanstalkd -f0")),
    "put_units": ("put, 100 a unit of work, a call each", ("trigmon", "SQLite, 100 rows a commit")),
    "put_frames": ("put, 100 a unit of work, one frame", ("trigmon", "SQLite, 100 rows a commit")),
}
MAKE = {
    "trigmon": Trigmon,
    "beanstalkd -f0": Beanstalkd,
    "SQLite, a row a commit": Sqlite,
    "SQLite, 100 rows a commit": Sqlite,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="measure little, to see that it works")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is measured (default 5)")
    parser.add_argument("--directory", type=Path, help="where the data lies, for the disk to be measured")
    parser.add_argument("--spark", action="store_true", help="only draining by Spark, which needs Java")
    parser.add_argument("--reserving", action="store_true", help="only the CPU of a row in a reservation, by stage")
    parser.add_argument("--first-row", action="store_true", help="only ways to start a Spark job, which need Java")
    parser.add_argument("--spark-peers", action="store_true", help="--spark and --first-row in one run, with --picture")
    parser.add_argument("--year", action="store_true", help="only the flights of a year, put and drained by Spark")
    parser.add_argument("--until", default="2013-12-31", metavar="DAY", help="the last day with --year")
    parser.add_argument("--starts", action="store_true", help="only from a put to a program, and launches a second")
    parser.add_argument("--heads", action="store_true", help="only gets from queues of 1,000 to 1,000,000 messages")
    parser.add_argument("--restarting", action="store_true", help="only starts with 1,000,000 messages")
    parser.add_argument("--postgres", action="store_true", help="only messages on PostgreSQL")
    parser.add_argument("--shared", action="store_true", help="only a shared queue of a queue-sharing group")
    parser.add_argument("--scrapes", action="store_true", help="only scrapes of the metrics, and clients beside them")
    parser.add_argument("--files", action="store_true", help="only files that become messages, and a watch at rest")
    parser.add_argument("--console", action="store_true", help="only what the web console costs clients at work")
    parser.add_argument("--mqi", action="store_true", help="only programs on the MQI's C library beside Python's")
    parser.add_argument("--copying", action="store_true", help="only copies of a queue elsewhere, by ibmmq")
    parser.add_argument("--tls", action="store_true", help="only clients by TLS beside those by the socket")
    parser.add_argument("--large-units", action="store_true", help="only what others wait while a large unit ends")
    parser.add_argument(
        "--held", type=float, metavar="SECONDS", help="how long a unit of work stays open with --shared"
    )
    parser.add_argument("--peers", action="store_true", help="only put, get and units of work beside every peer found")
    stages = "only the daemon's CPU of a message by stage; put where none is named"
    parser.add_argument("--profile", nargs="?", const="put", choices=tuple(call_stages.MESSAGE_OF), help=stages)
    peers_command.add_options(parser)
    options = parser.parse_args()
    rounds, scale = (1, 20) if options.quick else (options.rounds, 1)
    with tempfile.TemporaryDirectory(prefix="trigmon-bench-", dir=options.directory) as directory:
        if options.peers or options.profile:
            options.seconds /= scale
            if options.peers:
                peers_command.compare(Path(directory), rounds, peers_command.options_of(options))
            if options.profile:
                call_stages.profile(Path(directory), rounds, options.seconds, options.clients, options.profile)
            return
        if chosen(options, Path(directory), rounds, scale):
            return
        deciding(rounds, 20_000 // scale)
        depths(Path(directory), rounds, 20_000 // scale, 1_000_000 // scale)
        heads(Path(directory), rounds, scale)
        messages(Path(directory), rounds, scale)
        restarting(Path(directory), rounds, 1_000_000 // scale)
        backing_up(Path(directory), rounds, 1_000_000 // scale, 8.0 / scale)
        starting(Path(directory), rounds, scale)
        definitions(Path(directory), rounds, 10_000 // scale)
        schedules(Path(directory), rounds, 1_000 // scale, 2_000 // scale)


def chosen(options: argparse.Namespace, directory: Path, rounds: int, scale: int) -> bool:
    """Whether one of those was asked for that are measured alone, and has been measured."""
    alone: dict[str, Callable[[], object]] = {
        "mqi": partial(mq_programs.measured, directory, rounds, 3_000 // scale),
        "copying": partial(copying.measured, directory, rounds, 20_000 // scale),
        "tls": partial(over_tls.measured, directory, rounds, 1_000 // scale),
        "spark": partial(spark, directory, rounds, 100_000 // scale),
        "reserving": partial(reserving.measured, directory, rounds, 100_000 // scale),
        "first_row": partial(first_row.measured, directory, rounds, quick=options.quick),
        "spark_peers": partial(
            spark_peers.measured, directory, rounds, 100_000 // scale, options.picture, quick=options.quick
        ),
        "year": partial(full_year.measured, directory, options.until),
        "heads": partial(heads, directory, rounds, scale),
        "restarting": partial(restarting, directory, rounds, 1_000_000 // scale),
    }
    for name in filter(partial(getattr, options), alone):
        alone[name]()
        return True
    if options.postgres:
        postgres(directory, rounds, scale)
    elif options.large_units:
        large_units.measured(directory, 1_000_000 // scale)
    elif options.console:
        watched(directory, rounds * 12 // scale or 1, 2.0)
    elif options.starts:
        starting(directory, rounds, scale)
    elif options.files:
        arriving.measured(directory, rounds, 100_000 // scale, 60.0 / scale)
    elif options.scrapes:
        scraping(directory, rounds, 1_000 // scale, 1_000_000 // scale, 10.0 / scale)
    elif options.shared:
        held_s = options.held if options.held is not None else 60 / scale
        on_shared.measured(directory, rounds, 100 // scale, held_s)
    else:
        return False
    return True


def spark(directory: Path, rounds: int, count: int) -> None:
    with draining(directory, count) as it:
        figures = in_turns(rounds, ways(it), "rows/s")
    title = f"{count:,} messages of 1 KiB into Parquet"
    print(told(title, figures, against="single gets and pyarrow", note="us of daemon"), flush=True)


def deciding(rounds: int, count: int) -> None:
    def case(fires: bool) -> Callable[[], tuple[float, float]]:
        return lambda: (microseconds(count, fires=fires), 0.0)

    figures = in_turns(rounds, {"a put that does not fire": case(False), "a put that fires": case(True)}, "us")
    print(told("deciding one put, all evidence, no store", figures, against="a put that does not fire"), flush=True)


def depths(directory: Path, rounds: int, count: int, many: int) -> None:
    it = Depths(directory / "depths", many)
    try:
        few, deep = "with 10 messages there", f"with {many:,} messages there"
        for title, measure, each in (
            ("deciding one put, facts of the store on SQLite and decision", it.decide, count),
            ("one put, decided and stored on SQLite", it.put, count // 10),
        ):
            subjects = {few: partial(measure, "SHALLOW", each), deep: partial(measure, "DEEP", each)}
            print("\n" + told(title, in_turns(rounds, subjects, "us"), against=few), flush=True)
    finally:
        it.end()


def heads(directory: Path, rounds: int, scale: int) -> None:
    lengths = tuple(length // scale for length in (1_000, 100_000, 1_000_000))
    it = Heads(directory / "heads", lengths)
    try:
        for way in WAYS:
            subjects = {f"{length:,} messages": partial(it.get, length, way, lengths[0] // 5) for length in lengths}
            figures = in_turns(rounds, subjects, "us")
            print("\n" + told(f"one get {way}, SQLite", figures, against=f"{lengths[0]:,} messages"), flush=True)
    finally:
        it.end()


def messages(directory: Path, rounds: int, scale: int) -> None:
    with ExitStack() as stack:
        servers = {}
        for name, make in MAKE.items():
            if make is Beanstalkd and not Beanstalkd.program:
                print("\n(beanstalkd is not installed: it is left out)")
                continue
            home = directory / name.replace(" ", "-")
            home.mkdir()
            servers[name] = make(home)
            stack.callback(servers[name].end)
        for clients, each in ((1, 2000 // scale), (16, 400 // scale)):
            for work, (title, names) in WORKS.items():
                # A single writer is what SQLite has, however many clients stand before it.
                subjects = {
                    name: partial(per_second, servers[name], work, 1 if "SQLite" in name else clients, each)
                    for name in names
                    if name in servers
                }
                figures = in_turns(rounds, subjects, "msg/s")
                who = "1 client" if clients == 1 else f"{clients} clients"
                peer = next((name for name in names[1:] if name in figures), "")
                print("\n" + told(f"{title}, {who}", figures, against=peer, note="server CPU us/msg"), flush=True)


def postgres(directory: Path, rounds: int, scale: int) -> None:
    server = Server()
    home = directory / "there"
    home.mkdir()
    servers = {"trigmon": TrigmonThere(home, server), "SKIP LOCKED": SkipLocked(server)}

    def figures(title: str, work: str, clients: int, each: int) -> None:
        subjects = {name: partial(per_second_there, it, server, work, clients, each) for name, it in servers.items()}
        found = in_turns(rounds, subjects, "msg/s")
        print(
            "\n" + told(f"{title}, {clients} clients", found, against="SKIP LOCKED", note="server CPU us/msg"),
            flush=True,
        )

    try:
        for clients, each in ((1, 1000 // scale), (16, 400 // scale)):
            figures("put on PostgreSQL", "put", clients, each)
            figures("get on PostgreSQL", "get", clients, each)
        figures("put and get on PostgreSQL", "both", 16, 1000 // scale)
        with ExitStack() as stack:
            for it in servers.values():
                stack.enter_context(it.held_open())
            figures("put and get while a unit of work stays open", "both", 16, 1000 // scale)
    finally:
        servers["trigmon"].end()
        server.end()


def restarting(directory: Path, rounds: int, many: int) -> None:
    it = Restarting(directory / "restarting", many)
    figures = in_turns(rounds, {name: partial(it.start, name) for name in it.daemons}, "ms")
    title = "from a start to the first answer, messages of 1 KiB"
    print("\n" + told(title, figures, against="no messages", note="resident MB"), flush=True)


def backing_up(directory: Path, rounds: int, many: int, seconds: float) -> None:
    it = BackingUp(directory / "backing-up", many, seconds)
    try:
        figures = in_turns(rounds, {"without a backup": it.alone, "while backups are made": it.beside}, "ms")
    finally:
        it.end()
    title = f"99 of 100 puts of 16 clients take at most, {many:,} messages there"
    print("\n" + told(title, figures, against="without a backup", note="longest, ms"), flush=True)


def scraping(directory: Path, rounds: int, queues: int, messages: int, seconds: float) -> None:
    few, many = "10 queues, 10 messages", f"{queues:,} queues, {messages:,} messages"
    with ExitStack() as stack:
        there = {few: Scraping(directory / "few", 10, 10, seconds)}
        stack.callback(there[few].end)
        there[many] = Scraping(directory / "many", queues, messages, seconds)
        stack.callback(there[many].end)
        figures = in_turns(rounds, {name: it.scrape for name, it in there.items()}, "ms")
        print(told("a scrape of the metrics", figures, against=few, note="CPU of both processes, ms"), flush=True)
        subjects = {"without scrapes": there[many].puts_alone, "a scrape a second": there[many].puts_beside}
        figures = in_turns(rounds, subjects, "puts/s")
    title = f"puts of one client, {many}"
    print("\n" + told(title, figures, against="without scrapes", note="99 of 100 take at most, ms"), flush=True)


def watched(directory: Path, rounds: int, seconds: float) -> None:
    it = Watched(directory / "watched", seconds)
    alone, beside = "nobody looks at a page", f"{VIEWERS} live pages looked at"
    try:
        figures = in_turns(rounds, {alone: it.alone, beside: it.beside}, "msg/s")
    finally:
        it.end()
    title = "persistent messages put and got by 16 clients"
    print("\n" + told(title, figures, against=alone, note="console CPU %"), flush=True)
    pairs = [one / other for other, one in zip(figures[alone].values, figures[beside].values, strict=True) if other]
    print(f"  median of the {len(pairs)} ratios of neighbours: {median(pairs):.3f}", flush=True)


def starting(directory: Path, rounds: int, scale: int) -> None:
    home = directory / "starting"
    home.mkdir()
    it = Starting(home)
    try:
        it.by_put("sh")  # by the first the keeper is started
        for language in it.argv:
            spawn, put = f"bare spawn of {language}", f"put to {language}'s first word"
            subjects = {spawn: partial(it.by_spawn, language), put: partial(it.by_put, language)}
            if language in WARM:
                for _ in range(2):  # by the first its interpreter is started
                    it.by_put(language, "yes")
                    time.sleep(1)
                subjects[f"{put}, warm"] = partial(it.by_put, language, "yes")
            print(
                "\n"
                + told(f"a program starts: {language}", in_turns(rounds * 20 // scale, subjects, "ms"), against=spawn),
                flush=True,
            )
        count = 2000 // scale
        subjects = {
            "bare spawns, one after the other": partial(it.spawns, count),
            "launches by trigger, on record": partial(it.launches, count),
        }
        title = f"{count:,} programs that end at once"
        figures = in_turns(rounds, subjects, "a second")
        print("\n" + told(title, figures, against="bare spawns, one after the other"), flush=True)
        print("CPU of a launch by process, in the last round", flush=True)
        for name, spent_us in (it.cpu_us | {"all": sum(it.cpu_us.values())}).items():
            print(f"  {name:<34}{spent_us:>12,.0f} us", flush=True)
    finally:
        it.end()


def definitions(directory: Path, rounds: int, count: int) -> None:
    home = directory / "definitions"
    home.mkdir()
    it = Definitions(home, count)
    try:
        again = "apply, nothing to do"
        subjects = {"apply, everything new": it.new, again: it.again, "lint": it.lint}
        figures = in_turns(rounds, subjects, "s")
        print("\n" + told(f"{count:,} queues with a process each", figures, against=again, note="CPU s"), flush=True)
    finally:
        it.end()


def schedules(directory: Path, rounds: int, count: int, puts: int) -> None:
    none, many = Scheduling(directory / "unscheduled", 0), Scheduling(directory / "scheduled", count)
    beside = f"with {count:,} schedules"
    try:
        for title, subjects, unit in (
            (
                "a put in a turn of its own",
                {"without schedules": partial(none.puts, puts), beside: partial(many.puts, puts)},
                "us",
            ),
            (
                "a look at schedules, none of them due",
                {"without schedules": partial(none.looks, puts), beside: partial(many.looks, puts)},
                "us",
            ),
            (
                f"{count:,} moments at one time",
                {"puts that fire": partial(many.firing_puts, count), "moments": many.moments},
                "ms",
            ),
        ):
            print("\n" + told(title, in_turns(rounds, subjects, unit), against=next(iter(subjects))), flush=True)
    finally:
        none.end()
        many.end()


if __name__ == "__main__":
    main()
