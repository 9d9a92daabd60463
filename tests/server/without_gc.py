"""``python -m tests.server.without_gc``: the command line without the garbage collector, which so hides no cycle."""

import gc

from trigmon.cli.main import main

gc.disable()
main()
