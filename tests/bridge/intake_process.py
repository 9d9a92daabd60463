"""An intake in a process of its own, which has trigmon's C library as its MQI: calls come and answers go, pickled."""

from __future__ import annotations

import pickle
import sys

from trigmon.bridge.connection import RemoteConnection
from trigmon.bridge.intake import RemoteIntake
from trigmon.setting_sections import BridgeSettings


def main():
    """Serves calls until the input ends."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    settings, initiation_q = pickle.load(source)
    intake = RemoteIntake(RemoteConnection("FAR", BridgeSettings(**settings)), initiation_q)
    while True:
        try:
            name, arguments = pickle.load(source)
        except EOFError:
            return
        try:
            found = getattr(intake, name)
            answer = True, found(*arguments) if callable(found) else found
        except Exception as error:
            answer = False, (type(error).__name__, getattr(error, "reason", 0), str(error))
        pickle.dump(answer, sink)
        sink.flush()


if __name__ == "__main__":
    main()
