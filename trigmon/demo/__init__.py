"""The main job on real input: a day's flights through a queue, a trigger and a Spark job, with nothing left running."""

from trigmon.demo.demo_queue_manager import DemoFailed
from trigmon.demo.screen import Screen
from trigmon.demo.stations import Report, run

__all__ = ["DemoFailed", "Report", "Screen", "run"]
