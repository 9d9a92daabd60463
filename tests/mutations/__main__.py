"""``python -m tests.mutations``: plants every fault in the law of triggering, and says which scenario notices it.

One line a fault as it goes: ``caught`` with the scenario's page and title, or ``MISSED``. Exit 1 when any is missed.
``--only NAME`` plants the faults whose name begins so.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.mutations.every import FAULTS
from tests.mutations.playing import FaultError, failing, title_of, who_notices


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="NAME", default="", help="only the faults whose name begins so")
    chosen = [fault for name, fault in FAULTS.items() if name.startswith(parser.parse_args().only)]
    if not chosen:
        parser.error("no fault has a name that begins so")
    if wrong := [title_of(scenario) for scenario in failing(None)]:
        print("without any fault these do not hold:", *wrong, sep="\n  ")
        return 1
    missed, began = [], time.monotonic()
    for number, fault in enumerate(chosen, 1):
        try:
            who = who_notices(fault)
            told = f"caught  {fault.name}  <-  {who}" if who else f"MISSED  {fault.name}"
        except FaultError as error:
            who, told = None, f"MISSED  {fault.name}: it stumbles, and so proves nothing: {error}"
        if who is None:
            missed.append(fault.name)
        print(f"{number:4}/{len(chosen)}  {told}", flush=True)
    took = time.monotonic() - began
    print(f"{len(chosen) - len(missed)} caught, {len(missed)} missed, {took:.0f} s")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
