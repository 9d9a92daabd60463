"""The main job on real input: a day's flights through a queue, a trigger and a Spark job, with nothing left running."""

from trigmon.demo.house import DemoFailed
from trigmon.demo.play import Report, run
from trigmon.demo.screen import Screen

__all__ = ["DemoFailed", "Report", "Screen", "run"]
