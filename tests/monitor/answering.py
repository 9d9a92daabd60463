"""In an attendant's place: answers at once what it is asked, but nothing of what the file ``silent`` names.

What it is asked it writes down in the file ``asked``; both lie in the directory of ``TRIGMON_TEST_ANSWERS``.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

HERE = Path(os.environ["TRIGMON_TEST_ANSWERS"])

for line in sys.stdin:
    asked = json.loads(line)
    with (HERE / "asked").open("a") as file:
        print(json.dumps(asked), file=file, flush=True)
    silent = (HERE / "silent").read_text().split() if (HERE / "silent").exists() else []
    if asked["do"] not in silent:
        print(json.dumps({"id": asked["id"], "missed": [], "took_ms": {}}), flush=True)
