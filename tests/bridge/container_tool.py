"""In the place of docker, for the script that plays against IBM's image: it notes its calls and runs a queue manager.

The queue manager is trigmon's, with the objects and the user of IBM's image for developers, reached by TLS. ``state``
is a directory; ``state/settings.json`` are its settings, ``state/fails`` names what fails.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from pathlib import Path

from tests.daemons import Daemon
from tests.waiting import until
from trigmon.tls import accounts
from trigmon.tls.accounts import Account
from trigmon.tls.passwords import hashed

OF_THE_IMAGE = """\
DEFINE QLOCAL(DEV.DEAD.LETTER.QUEUE) REPLACE
ALTER QMGR DEADQ(DEV.DEAD.LETTER.QUEUE)
SET AUTHREC OBJTYPE(QMGR) GROUP('mqclient') AUTHADD(CONNECT,INQ)
SET AUTHREC PROFILE('DEV.**') GROUP('mqclient') OBJTYPE(QUEUE) AUTHADD(BROWSE,GET,INQ,PUT)
"""


def main(state, command, *words):
    """Does a command of docker's; its exit status."""
    with (state / "calls").open("a") as calls:
        calls.write(json.dumps([command, *words]) + "\n")
    fails = (state / "fails").read_text() if (state / "fails").exists() else ""
    if command == fails:
        print(f"{command} failed", file=sys.stderr)
        return 125
    if command == "run":
        return _run(state, *words, fails=fails)
    return {"info": _info, "exec": _ready, "inspect": _inspect, "logs": _logs, "rm": _remove}[command](state, *words)


def _info(state, *_):
    return 0


def _run(state, *words, fails):
    parser = argparse.ArgumentParser()
    parser.add_argument("-d", action="store_true", required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("-p", required=True)
    for more in "ev":
        parser.add_argument(f"-{more}", action="append", required=True)
    parser.add_argument("image")
    given = parser.parse_args(words)
    files = {target: Path(source) for source, target, _ in (each.split(":") for each in given.v)}
    variables = dict(each.partition("=")[::2] for each in given.e)
    password = files["/run/secrets/mqAppPassword"].read_text()
    assert os.environ["MQ_APP_PASSWORD"] == password
    assert variables == {"LICENSE": "accept", "MQ_QMGR_NAME": "QM1", "MQ_APP_PASSWORD": ""}
    print("0123456789abcdef")
    if fails == "start":
        return 0
    settings = json.loads((state / "settings.json").read_text())
    accounts.write(Path(settings["tls.users"]), [Account("app", hashed(password), groups=("mqclient",))])
    daemon = Daemon(state, "QM1", settings=settings)
    daemon.start(start_new_session=True)
    (state / "pid").write_text(str(daemon.process.pid))
    mounted = [path.read_text() for target, path in sorted(files.items()) if target.endswith(".mqsc")]
    done = daemon.trigmon("mqsc", input=OF_THE_IMAGE + "".join(mounted))
    assert done.returncode == 0, done.stdout
    return 0


def _ready(state, name, program):
    """Says that it is ready when it is asked again."""
    assert program == "chkmqready"
    asked = state / "asked"
    was_asked = asked.exists()
    asked.touch()
    return 0 if was_asked else 1


def _inspect(state, *_):
    print("true" if (state / "pid").exists() else "false")
    return 0


def _logs(state, *_):
    print("the container's log")
    return 0


def _remove(state, *_):
    pid = state / "pid"
    if not pid.exists():
        return 1
    number = int(pid.read_text())
    os.kill(number, signal.SIGTERM)
    until(lambda: not Path(f"/proc/{number}").exists(), 30)
    pid.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
