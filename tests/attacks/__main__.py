"""Lists the table: ``python -m tests.attacks``. With ``play`` it is played, as root, and each verdict is shown."""

from __future__ import annotations

import sys

from tests.attacks.everything import counts, play
from tests.attacks.stage import Stage
from tests.attacks.table import ATTACKS


def main() -> None:
    verdicts = {}
    if "play" in sys.argv[1:]:
        stage = Stage()
        try:
            verdicts = play(stage)
        finally:
            stage.end()
    for attack in ATTACKS:
        verdict = verdicts.get(attack.id)
        how = f"{'SUCCEEDED' if verdict.succeeded else verdict.how} {str(verdict.said)[:300]!r}" if verdict else ""
        print(f"{attack.id:<60} {attack.tries}; it would have: {attack.success}. {how}")
    print(", ".join(f"{number} as {role}" for role, number in counts().items()))


if __name__ == "__main__":
    main()
