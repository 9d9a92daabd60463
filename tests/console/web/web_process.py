"""``trigmon web`` as a process of its own, and a browser's part of HTTP: a cookie, an origin, forms."""

from __future__ import annotations

import html
import http.client
import json
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlencode, urlsplit

ENDED_S = 60


class Answer:
    """What came back: its status, headers and text."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.text = response.read().decode()

    @property
    def plain(self) -> str:
        """The text that a person sees, in one line."""
        without = re.sub(r"<(script|style)\b.*?</\1>", " ", self.text, flags=re.DOTALL)
        return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", without)).split())

    def fields(self, action: str) -> dict[str, str]:
        """Returns the hidden fields of the first form that goes there."""
        form = re.search(rf'<form[^>]*action="{re.escape(action)}".*?</form>', self.text, re.DOTALL)
        assert form, f"no form to {action}"
        found = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', form.group())
        return {name: html.unescape(value) for name, value in found}


class Web:
    """A running ``trigmon web``, with the cookie that its address gives. ``where`` is what it printed, as an object."""

    def __init__(self, env: dict[str, str], *options: str) -> None:
        argv = [sys.executable, "-m", "trigmon", "--output", "json", "web", *options]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen(argv, env=env, text=True, **pipes)
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        self.where = json.loads(line)
        self.cookie = ""
        if "url" in self.where:
            parts = urlsplit(self.where["url"])
            self.host, self.token = parts.netloc, parts.query.removeprefix("token=")
        else:
            self.host, self.token = "localhost", self.where.get("token")
        if "token_file" in self.where:
            self.token = Path(self.where["token_file"]).read_text().strip()

    def ask(self, method: str, path: str, body: str | None = None, **headers: str) -> Answer:
        """Sends a request as it is; names of headers have underscores."""
        if "path" in self.where:
            link = http.client.HTTPConnection("localhost", timeout=60)
            link.sock = socket.socket(socket.AF_UNIX)
            link.sock.connect(self.where["path"])
        else:
            link = http.client.HTTPConnection(self.host, timeout=60)
        given = {"Host": self.host} | {name.replace("_", "-"): value for name, value in headers.items()}
        link.putrequest(method, path, skip_host=True)
        for name, value in given.items():
            link.putheader(name, value)
        if body is not None:
            link.putheader("Content-Length", str(len(body.encode())))
        link.endheaders(body.encode() if body is not None else None)
        answer = Answer(link.getresponse())
        link.close()
        return answer

    def enter(self) -> Answer:
        """Opens the printed address, and keeps the cookie."""
        answer = self.ask("GET", f"/?token={self.token}")
        self.cookie = answer.headers["set-cookie"].partition(";")[0]
        return answer

    def get(self, path: str, **headers: str) -> Answer:
        """Asks for a page with the cookie."""
        if not self.cookie:
            self.enter()
        return self.ask("GET", path, Cookie=self.cookie, **headers)

    def post(self, path: str, fields: dict[str, str], **headers: str) -> Answer:
        """Sends a form as a browser does that has the page open."""
        given = {"Cookie": self.cookie, "Origin": f"http://{self.host}"} | headers
        given["Content-Type"] = "application/x-www-form-urlencoded"
        return self.ask("POST", path, urlencode(fields), **given)

    def end(self) -> str:
        """Ends it as Ctrl-C does; what it wrote to its standard error."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        errors = self.process.communicate(timeout=ENDED_S)[1]
        assert self.process.returncode in (0, -signal.SIGINT, 130), (self.process.returncode, errors)
        return errors
