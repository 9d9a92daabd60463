"""The records of the ledger of runs, however many."""

from trigmon.mq.calls import Runs
from trigmon.mq.run import OPEN


def recorded_runs(qm, **where):
    """Returns the record of each run that holds every ``where`` value, newest first."""
    found = []
    while True:
        page = qm.call(Runs(where=where, before=found[-1]["run_id"] if found else ""))
        found += page.rows
        if not page.more:
            return found


def have_all_ended(qm):
    """Returns whether every run has ended.

    To ask for one state after the other would miss a run that changes its state in between, or the next try of one that
    has just ended. So all are listed; and none may have come while they were.
    """
    if any(qm.call(Runs(where={"state": state}, limit=1)).rows for state in OPEN):
        return False
    runs = recorded_runs(qm)
    return all(run["state"] not in OPEN for run in runs) and len(recorded_runs(qm)) == len(runs)
