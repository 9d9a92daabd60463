"""Runs a Python program that uses ``ibmmq`` on trigmon: ``python -m trigmon.mqi PROGRAM [ARGUMENTS]``.

``-m MODULE`` runs a module. The program is unchanged: it has its own name in argv, and its own __main__.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from trigmon.mqi.replace_ibmmqc import replace


def main(arguments: list[str]) -> int:
    """Runs the program that the arguments name. Returns 2 where they name none; else the program's end is the end."""
    if not arguments or (arguments[0] == "-m" and len(arguments) < 2) or arguments[0] in ("-h", "--help"):
        sys.stderr.write(f"{(__doc__ or '').strip()}\n")
        return 2
    replace()
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        sys.path[0] = str(Path.cwd())
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return 0
    sys.argv = arguments
    sys.path[0] = str(Path(arguments[0]).resolve().parent)
    runpy.run_path(arguments[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
