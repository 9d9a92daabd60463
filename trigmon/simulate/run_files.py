"""``trigmon simulate``: reads the files, plays every scenario on its own fresh stage, tells how it went."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trigmon.bridge.seen_queue import SeenQueue
from trigmon.simulate.in_process import InProcess
from trigmon.simulate.player import play
from trigmon.simulate.report import Report
from trigmon.simulate.scenario_files import read_files
from trigmon.simulate.scenario_stores import STORES
from trigmon.simulate.start_state import CannotStartError, beginning_with
from trigmon.store.port import StoreBroken
from trigmon.yaml12 import YamlError

HELD, DID_NOT_HOLD, NO_SCENARIO = 0, 1, 2


def play_files(
    files: Sequence[str],
    store: str,
    output: str,
    echo_out: Callable[[str], None],
    echo_err: Callable[[str], None],
    postgres: str = "",
    state: Sequence[SeenQueue] = (),
) -> int:
    """Plays the scenarios of all files, which are read before the first is played.

    ``store`` is ``memory``, ``sqlite`` or ``postgres``, a database that ``postgres`` leads to; ``output`` is ``table``
    or ``json``; the echoes take a line each. ``state`` are real queues: each scenario begins as they are.
    Returns 0 when every expectation held, 1 when some did not, 2 when a file is no scenario or the store cannot be had.
    """
    if store not in STORES:
        echo_err(f"--store is {' or '.join(STORES)}, not {store}")
        return NO_SCENARIO
    try:
        scenarios = [beginning_with(each, state) if state else each for each in read_files(list(files))]
    except (YamlError, CannotStartError) as error:
        echo_err(str(error))
        return NO_SCENARIO
    report = Report(output == "json", echo_out, echo_err)
    try:
        stores = [STORES[store](postgres) for _ in range(max((len(s.q_mgrs) for s in scenarios), default=0))]
        for scenario in scenarios:
            report.tell(play(scenario, InProcess(scenario.q_mgrs, stores[: len(scenario.q_mgrs)])))
        for each in stores:
            each.end()
    except (ImportError, StoreBroken) as error:
        echo_err(f"--store {store}: {error}")
        return NO_SCENARIO
    return HELD if report.end() else DID_NOT_HOLD
