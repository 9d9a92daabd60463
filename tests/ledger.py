"""The records of the ledger of runs, however many."""

from trigmon.mq.calls import Runs


def recorded_runs(qm, **where):
    """Returns the record of each run that holds every ``where`` value, newest first."""
    found = []
    while True:
        page = qm.call(Runs(where=where, before=found[-1]["run_id"] if found else ""))
        found += page.rows
        if not page.more:
            return found
