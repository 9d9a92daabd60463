"""The commands of docs/how-to/backup-and-upgrade.md, where the service is a daemon of the test."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "backup-and-upgrade.md").read_text()
BACK_UP, RESTORE = re.findall(r"<!-- executed by: \S+ -->\n\n *```bash\n(.*?) *```", PAGE, re.DOTALL)


def execute(commands, daemon, backup):
    """Executes the commands with the directories of the test; ``systemctl`` stops and starts the daemon."""
    for line in commands.splitlines():
        if "systemctl stop" in line:
            assert daemon.stop() == 0
        elif "systemctl start" in line:
            daemon.start()
        else:
            command = line.replace("/var/lib/trigmon", str(daemon.home)).replace("/srv/backup", str(backup))
            subprocess.run(["sh", "-euc", command], check=True)


def test_the_messages_of_the_backup_are_there_behind_the_restore(daemon, tmp_path):
    one = daemon()
    with one.connect() as qm:
        qm.put("SYSTEM.DEFAULT.LOCAL.QUEUE", b"before", persistence="persistent")
    execute(BACK_UP, one, tmp_path)
    with one.connect() as qm, qm.open("SYSTEM.DEFAULT.LOCAL.QUEUE", "input_shared") as queue:
        assert queue.get().data == b"before"
        qm.put("SYSTEM.DEFAULT.LOCAL.QUEUE", b"after", persistence="persistent")
    execute(RESTORE, one, tmp_path)
    assert (one.home / "QM1.damaged").is_dir()
    with one.connect() as qm, qm.open("SYSTEM.DEFAULT.LOCAL.QUEUE", "browse") as queue:
        assert [message.data for message in queue.browse()] == [b"before"]
