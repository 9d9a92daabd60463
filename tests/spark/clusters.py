"""A real standalone cluster on this machine: a master with its REST server, and workers, each a process of its own.

In network namespaces where this user may make them: each worker is then a host of its own, with an address of its own
behind a bridge, and the master is reached at the bridge's. Else all of it is on the loopback address.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

from tests.spark.conftest import spark_environment
from trigmon.launch.spark.cold.submit import spark_home

UP_S = 120
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A JVM that is to be there soon, and not for long."""
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"


def free_port(host="127.0.0.1"):
    with socket.socket() as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]


class Network:
    """A bridge and a namespace for each worker, named after this process so that no other test's is touched.

    ``kind`` tells those of one process apart: what a removed namespace had is gone some time after the namespace.
    """

    def __init__(self, workers, net, kind="m"):
        self.address = f"{net}.1"
        self.bridge = f"t{kind}b{os.getpid()}"[:15]
        self.names = [f"t{kind}{os.getpid()}n{number}" for number in range(workers)]
        self.addresses = [f"{net}.{11 + number}" for number in range(workers)]
        self.outside = [f"t{kind}v{os.getpid()}{number}"[:15] for number in range(workers)]
        self.inside = [f"t{kind}w{os.getpid()}{number}"[:15] for number in range(workers)]

    def make(self):
        ip("link", "add", self.bridge, "type", "bridge")
        ip("addr", "add", f"{self.address}/24", "dev", self.bridge)
        ip("link", "set", self.bridge, "up")
        for number, (name, address) in enumerate(zip(self.names, self.addresses, strict=True)):
            outside, inside = self.outside[number], self.inside[number]
            ip("netns", "add", name)
            ip("link", "add", outside, "type", "veth", "peer", "name", inside)
            ip("link", "set", inside, "netns", name)
            ip("link", "set", outside, "master", self.bridge)
            ip("link", "set", outside, "up")
            ip("-n", name, "addr", "add", f"{address}/24", "dev", inside)
            ip("-n", name, "link", "set", inside, "up")
            ip("-n", name, "link", "set", "lo", "up")

    def remove(self):
        for link in (*self.outside, self.bridge):  # what a namespace has goes some time after it
            subprocess.run(["ip", "link", "del", link], capture_output=True, check=False)
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def ip(*words):
    subprocess.run(["ip", *words], capture_output=True, check=True)


def why_no_namespaces():
    """Returns why this user cannot make network namespaces here; "" where that is possible."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return "network namespaces need root and the ip command"
    probe = Network(1, "10.79.250", "p")
    try:
        probe.make()
    except subprocess.CalledProcessError as error:
        return f"no network namespaces here: {error.stderr.decode().strip()}"
    finally:
        probe.remove()
    return ""


class Cluster:
    """Its ``address`` is what spark-submit takes; ``rest`` and ``page`` are the master's ports.

    ``cores`` and ``memory`` are a worker's. As a context it is up within, and gone behind.
    """

    def __init__(self, directory, network=None, workers=2, cores=2, memory="2g", settings=()):
        self.directory = directory
        self.network = network
        self.host = network.address if network else "127.0.0.1"
        self.port, self.rest, self.page = (free_port(self.host) for _ in range(3))
        self.address = f"spark://{self.host}:{self.port}"
        self.settings = list(settings)
        self.cores, self.memory = cores, memory
        self.count = workers
        self.begun = []
        self.environment = os.environ | spark_environment(directory)
        self.environment.pop("PYTHONWARNINGS", None)
        self.environment["SPARK_DAEMON_JAVA_OPTS"] = QUICK
        self.environment["SPARK_DAEMON_MEMORY"] = "300m"

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_):
        self.close()

    def start(self):
        rest = {"rest.enabled": "true", "rest.host": self.host, "rest.port": self.rest}
        reported = [f"-Dspark.master.{name}={value}" for name, value in rest.items()] + self.settings
        ports = ["--host", self.host, "--port", str(self.port), "--webui-port", str(self.page)]
        self._begin(_MASTER, ports, {"SPARK_MASTER_OPTS": " ".join(reported), "SPARK_LOCAL_IP": self.host})
        for number in range(self.count):
            self.start_worker(number)
        self.wait_for_workers(self.count)
        return self

    def start_worker(self, number):
        host = self.network.addresses[number] if self.network else self.host
        where = ["-d", str(self.directory / f"worker{number}"), "--webui-port", str(free_port())]
        inside = ["ip", "netns", "exec", self.network.names[number]] if self.network else []
        options = ["-c", str(self.cores), "-m", self.memory, "--host", host, *where, self.address]
        self._begin(_WORKER, options, {"SPARK_LOCAL_IP": host}, inside)

    def _begin(self, what, options, more, inside=()):
        argv = [*inside, str(spark_home(os.environ) / "bin" / "spark-class"), what, *options]
        with (self.directory / f"log{len(self.begun)}").open("wb") as log:
            self.begun.append(
                subprocess.Popen(
                    argv,
                    env=self.environment | more,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=self.directory,
                    start_new_session=True,
                )
            )

    def state(self):
        """Returns the state on the master's page."""
        with urllib.request.urlopen(f"http://{self.host}:{self.page}/json/", timeout=10) as page:
            return json.load(page)

    def wait_for_workers(self, count):
        deadline = time.monotonic() + UP_S
        alive = None
        while alive != count:
            assert time.monotonic() < deadline, self.logs()
            time.sleep(0.1)
            with contextlib.suppress(OSError, json.JSONDecodeError):  # its pages come up before this one of them does
                alive = self.state()["aliveworkers"]

    def logs(self):
        return "\n".join(path.read_text()[-3000:] for path in sorted(Path(self.directory).glob("log*")))

    def kill_worker(self, number):
        """Kills the worker, and every executor and driver that it started, as a power cut does."""
        end_session(self.begun[1 + number], signal.SIGKILL)

    def close(self):
        for process in self.begun:
            end_session(process, signal.SIGKILL)
        for process in self.begun:
            process.wait(30)


def end_session(process, number):
    """Sends a signal to a process and all its descendants, whatever their process groups: executors leave theirs."""
    family, found = [], [process.pid]
    while found:
        pid = found.pop()
        family.append(pid)
        with contextlib.suppress(OSError):
            found += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    for pid in family:
        with contextlib.suppress(OSError):
            os.kill(pid, number)
