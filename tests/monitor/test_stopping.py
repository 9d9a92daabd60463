"""A monitor is stopped by a signal at any moment."""

from __future__ import annotations

import os
import signal

import pytest

from trigmon.monitor.monitor import _stopping


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_in_the_middle_of_a_wait_stops_it_and_locks_nothing(number):
    with _stopping(None) as stopped:
        with stopped._cond:  # as a wait has it that the signal interrupts
            os.kill(os.getpid(), number)
        assert stopped.wait(10)
