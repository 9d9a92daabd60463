"""``python -m trigmon``: the command line."""

from trigmon.cli.main import main

main()
