"""``trigmon rest`` as a process by HTTPS, with accounts of the TLS listener and a monitor that starts programs."""

from __future__ import annotations

import base64
import http.client
import json
import signal
import ssl
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from tests.daemons import define, queue_managers
from tests.tls.authorities import Site
from trigmon.mq.calls import SetAuthority
from trigmon.mq.rights import record_name
from trigmon.tls.accounts import Account
from trigmon.tls.passwords import hashed

CSRF = {"ibm-mq-rest-csrf-token": ""}
TEXT = CSRF | {"Content-Type": "text/plain;charset=utf-8"}


class Rest:
    """The running interface; ``ask`` returns status, headers and body."""

    def __init__(self, site: Site, env: dict[str, str], *options: str) -> None:
        to = f"tls://localhost:{site.port}/QM1?authority={site.directory / 'authority.crt'}"
        argv = [sys.executable, "-m", "trigmon", "--output", "json", "--qmgr", to, "rest", *options]
        self.process = subprocess.Popen(argv, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        self.port = urlsplit(json.loads(line)["url"]).port
        self.context = ssl.create_default_context(cafile=site.directory / "authority.crt")

    def ask(self, method: str, path: str, body: str | bytes | None = None, *, user: str = "alice", **headers: str):
        secret = base64.b64encode(f"{user}:secret of {user}".encode()).decode()
        proof = {"Authorization": f"Basic {secret}"} if user else {}
        link = http.client.HTTPSConnection("localhost", self.port, context=self.context, timeout=60)
        sent = proof | headers
        data = body.encode() if isinstance(body, str) else body
        link.request(method, f"/ibmmq/rest{path}", data, sent)
        answer = link.getresponse()
        found = answer.status, answer.headers, answer.read().decode()
        link.close()
        return found

    def end(self) -> str:
        self.process.send_signal(signal.SIGTERM)
        return self.process.communicate(timeout=60)[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Site:
    made = Site(tmp_path_factory.mktemp("tls"))
    made.let_in(*(Account(user=name, password=hashed(f"secret of {name}")) for name in ("alice", "bob")))
    return made


@pytest.fixture(scope="module")
def one(site: Site, tmp_path_factory):
    """Yields a queue manager with a monitor and a TLS listener."""
    with queue_managers(lambda: tmp_path_factory.mktemp("qm")) as make:
        made = make(settings=site.settings, with_monitor=True)
        with made.connect() as qm:
            for name in ("R.ONE", "R.TWO", "R.TOKEN", "R.ALICE", "R/%.ODD"):
                define(qm, name)
            for profile, rights in (("**", ["put", "get", "browse"]), ("R.SHOWN.**", ["dsp", "inq"])):
                qm.call(SetAuthority(name=str(record_name("queue", profile, "user", "alice")), add=rights))
        yield made


@pytest.fixture(scope="module")
def rest(one, site: Site):
    made = Rest(
        site,
        one.env,
        *("--listen", "127.0.0.1:0", "--certificate", str(site.directory / "server.crt")),
        *("--key", str(site.directory / "server.key")),
    )
    try:
        yield made
        assert made.end() == ""
    finally:
        made.process.kill()


def queue(name: str, version: int = 2, what: str = "message") -> str:
    return f"/v{version}/messaging/qmgr/QM1/queue/{name}/{what}"
