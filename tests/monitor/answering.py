"""In an attendant's place: answers at once what it is asked, but nothing of what the file ``silent`` names.

What the file ``refused`` names is answered with an error. What it is asked it writes down in the file ``asked``; all
lie in the directory of ``TRIGMON_TEST_ANSWERS``.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

HERE = Path(os.environ["TRIGMON_TEST_ANSWERS"])


def named(file):
    return (HERE / file).read_text().split() if (HERE / file).exists() else []


for line in sys.stdin:
    asked = json.loads(line)
    with (HERE / "asked").open("a") as file:
        print(json.dumps(asked), file=file, flush=True)
    error = {"error": "refused"} if asked["do"] in named("refused") else {}
    if asked["do"] not in named("silent"):
        print(json.dumps({"id": asked["id"], "missed": [], "took_ms": {}} | error), flush=True)
