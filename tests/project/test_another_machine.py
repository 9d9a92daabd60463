"""The commands of docs/how-to/another-machine.md, and a client that has nothing but what they made for it."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import trigmon
from tests.daemons import define

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "another-machine.md").read_text()


def test_a_client_of_the_page_puts_by_the_name_of_the_queue_manager(daemon, tmp_path):
    one = daemon()
    assert one.stop() == 0
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    one.settings["tls.listen"] = f"127.0.0.1:{port}"
    (commands,) = re.findall(
        r"executed by: tests/project/test_another_machine.py -->\n\n```bash\n(.*?)```", PAGE, re.DOTALL
    )
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    script = commands.replace("mq1.example.com", "localhost")
    subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        check=True,
        cwd=tmp_path,
        env=one.env | {"PATH": path, "PASSWORD": "x"},
    )
    one.start()
    with one.connect() as qm:
        define(qm, "ORDERS")
    assert (tmp_path / "alice" / "client.ini").read_text().splitlines()[0] == "[QM1]"
    elsewhere = {key: value for key, value in one.env.items() if not key.startswith("TRIGMON_")}
    elsewhere |= {"TRIGMON_CLIENT_FILE": str(tmp_path / "alice" / "client.ini"), "TRIGMON_HOME": str(tmp_path / "none")}
    argv = [sys.executable, "-m", "trigmon", "--qmgr", "QM1", "put", "ORDERS", "hello"]
    subprocess.run(argv, check=True, env=elsewhere)
    with one.connect() as qm, qm.open("ORDERS", "input_shared") as queue:
        message = queue.get()
        assert (message.data, message.user_identifier) == (b"hello", "alice")
    (tmp_path / "password").write_text("x")
    (tmp_path / "password").chmod(0o600)
    authority = tmp_path / "alice" / "authority.crt"
    by_password = f"user=batch&password_file={tmp_path / 'password'}"
    trigmon.connect(f"tls://localhost:{port}/QM1?authority={authority}&{by_password}").disconnect()
    assert one.trigmon("connections", "list").returncode == 0
