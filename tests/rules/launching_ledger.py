"""A queue manager of tests whose monitor records runs, on a store of one's choice."""

from tests.worlds import World
from trigmon.mq.calls import (
    Alter,
    Caps,
    ChangeRun,
    Put,
    RecordRun,
    Runs,
    StartRuns,
)
from trigmon.mq.enums import GetOption, OpenOption

INITQ = "SYSTEM.DEFAULT.INITIATION.QUEUE"
TRIGGER = {"q_name": "Q", "process_name": "P", "trigger_data": "t", "appl_type": 6, "appl_id": "/bin/true"}
TRIGGER |= {"env_data": "", "user_data": "u", "occasion": "1", "initiation_q": INITQ, "monitor": "m:1"}
SPAN = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SYNCPOINT = int(GetOption.SYNCPOINT)


class Ledger(World):
    """A queue Q of type FIRST and another, their process P, and the runs a monitor records."""

    def __init__(self, kind, directory):
        super().__init__(kind, directory)
        self.define("P", "PROCESS", appl_id="/bin/true")
        common = {"process_name": "P", "initiation_q_name": INITQ, "def_persistence": "persistent"}
        self.define("Q", trigger_control="on", trigger_type="first", **common)
        self.define("Q2", trigger_control="on", trigger_type="every", **common)
        self._named = iter(f"{number:016x}" for number in range(1, 1000))

    def process(self, **attributes):
        self.did(Alter(object_type="PROCESS", name="P", attributes=attributes))

    def come(self, caps=None, **fields):
        """A trigger message has come: its run's id, and how it stands."""
        run_id = next(self._named)
        record = {**TRIGGER, "state": "due", **fields}
        stands = self.did(RecordRun(run_id=run_id, record=record, caps=caps or Caps()), "monitor")
        return run_id, stands

    def run(self, run_id):
        (found,) = self.did(Runs(where={"run_id": run_id})).rows
        return found

    def states(self):
        return {run["run_id"]: run["state"] for run in self.did(Runs()).rows}

    def start(self, monitor="m:1", caps=None, limit=16):
        """The ids of the runs that may start now, and the whole answer."""
        answer = self.did(StartRuns(initiation_q=INITQ, monitor=monitor, caps=caps or Caps(), limit=limit), "monitor")
        return [record["run_id"] for record in answer.records], answer

    def change(self, run_id, **fields):
        return self.did(ChangeRun(run_id=run_id, fields=fields), "monitor")

    def exit(self, run_id, status=0, **fields):
        fields = {"why": f"ended with status {status}"} | fields
        return self.change(run_id, state="exited", exit_status=status, **fields)

    def program(self, run_id, q_name="Q"):
        """A connection of the run's program, with its queue open for input; the handle."""
        self.runs[f"of {run_id}"] = run_id
        return self.open(q_name, OpenOption.INPUT_SHARED, as_=f"of {run_id}")

    def put(self, q_name="Q", count=1):
        for _ in range(count):
            self.did(Put(q_name=q_name, data=b"x"), "loader")

    def next(self):
        """The one further try that waits."""
        (found,) = self.did(Runs(where={"state": "held"})).rows
        return found
