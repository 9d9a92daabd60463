"""A machine whose keeper keeps warm interpreters, for the tests of forked runs."""

from __future__ import annotations

import os
import re
import sys

from tests.waiting import until
from trigmon.keeper import run_directory


def environment(**more):
    return {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"} | more


class Warm:
    """A machine whose keeper keeps warm interpreters; :meth:`both` runs a program executed and forked."""

    def __init__(self, machine):
        self.machine = machine
        self.count = 0
        self.kept = set()

    def start(self, *words, options=(), modules=(), is_warm=True, **more):
        """Starts Python with these words and returns the run's id."""
        self.count += 1
        run_id = f"r{self.count}"
        words = [str(word) for word in words]
        python = [sys.executable, *options]
        warm = {"interpreter": python, "fork": words, "modules": list(modules)} if is_warm else {}
        asks = warm | more.pop("asks", {})
        self.machine.start(run_id, *python, *words, asks=asks, **environment(**{"TRIGMON_RUN": run_id} | more))
        return run_id

    def warmed(self, *words, **more):
        """Starts it once, so that its interpreter is kept. Returns that one's process id, 0 where it was there."""
        self.forget()
        run_id = self.start(*words, **more)
        self.ended(run_id)
        key = repr({**more, "asks": ""})
        if key in self.kept or self.is_forked(run_id):
            return 0
        self.kept.add(key)
        return self.machine.wait_for("warm", None)["pid"]

    def forget(self):
        self.machine.heard = [frame for frame in self.machine.heard if frame["say"] == "hello"]

    def ended(self, run_id):
        return self.machine.wait_for("ended", run_id)

    def both(self, *words, **more):
        """Returns status, output and errors of a program, executed and forked."""
        cold = self.end_of(self.start(*words, is_warm=False, **more))
        self.warmed(*words, **more)
        warm = self.start(*words, **more)
        seen = self.end_of(warm)
        assert self.is_forked(warm) or cold[2], seen  # what Python says of a text is said by Python itself
        return cold, seen

    def end_of(self, run_id):
        """Returns exit status, output and errors of a run when it has ended."""
        return self.ended(run_id)["status"], self.output(run_id), self.output(run_id, "stderr")

    def is_forked(self, run_id):
        self.machine.wait_for("started", run_id)
        until(lambda: "argv" in run_directory.read(self.machine.run(run_id)))
        log = (self.machine.monitors / "Q.1.keeper.log").read_text()
        claim = run_directory.read(self.machine.run(run_id))
        return claim.get("forked", False) and f"run {run_id} is executed, not forked" not in log

    def output(self, run_id, name="stdout"):
        text = self.machine.output(run_id, name).replace(run_id, "RUN")
        return re.sub("0x[0-9a-f]+", "ADDRESS", text)
