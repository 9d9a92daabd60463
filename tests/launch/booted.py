"""A real systemd for tests on a machine that runs none: process 1 of namespaces of its own, over this machine's files.

The root directory is an overlay, so nothing that is written there lasts; /run and /tmp are empty; of the network there
is nothing but a loopback. It takes root, overlayfs, and a cgroup file system that may be written to; :func:`why_not`
says which of them is missing. Run as a program it is the inside's first process before it becomes systemd.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parents[2]
SYSTEMD = Path("/lib/systemd/systemd")
CGROUPS = Path("/sys/fs/cgroup")
TARGET = "trigmon-test.target"
WAIT_S = 600.0
COMMAND_S = 600.0
"""How long a command inside may take: the tests there took half a minute, and minutes on a busy machine."""
_KINDS = ["--mount", "--pid", "--cgroup", "--uts", "--ipc", "--net"]


def why_not() -> str:
    """Returns why no systemd can be started here; "" when it can be tried."""
    needed = [name for name in ("unshare", "nsenter", "systemctl") if shutil.which(name) is None]
    if os.geteuid() != 0:
        return "only root may make the namespaces"
    if needed or not SYSTEMD.exists():
        return f"not installed: {' '.join(needed) or SYSTEMD}"
    if "overlay" not in Path("/proc/filesystems").read_text():
        return "this kernel has no overlayfs"
    if not any(os.access(path / "cgroup.procs", os.W_OK) for path in _hierarchies()):
        return f"{CGROUPS} may not be written to"
    return ""


class Machine:
    """What was booted. ``pid`` is its systemd as this machine sees it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def argv(self, *argv: str) -> list[str]:
        """Returns the command line that runs a command inside."""
        return ["nsenter", f"--target={self.pid}", *_KINDS, "--", *argv]

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """Runs a command inside to its end."""
        return subprocess.run(self.argv(*argv), capture_output=True, text=True, check=False, timeout=COMMAND_S)


@contextmanager
def booted(scratch: Path, target: str = TARGET) -> Iterator[Machine]:
    """Boots a machine until the end of the block. Raises RuntimeError with its log when it does not come up."""
    groups = [path / f"trigmon-test-{os.getpid()}" for path in _hierarchies()]
    for group in groups:
        _make_group(group)
    log = scratch / "boot.log"
    with log.open("wb") as output:
        outside = subprocess.Popen(
            ["unshare", "--fork", *_KINDS, "--kill-child", sys.executable, __file__, str(scratch), target],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=lambda: [group.joinpath("cgroup.procs").write_text("0") for group in groups],
        )
    try:
        yield _up(outside.pid, log)
    finally:
        for pid in _children(outside.pid):
            os.kill(pid, signal.SIGKILL)  # all of its process namespace goes with it
        outside.kill()
        outside.wait()
        for group in groups:
            _remove_group(group)


def _up(unshare: int, log: Path) -> Machine:
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until:
        for pid in _children(unshare):
            machine = Machine(pid)
            if Path(f"/proc/{pid}/comm").read_text() == "systemd\n":
                state = machine.run("systemctl", "is-system-running").stdout.strip()
                if state in ("running", "degraded"):
                    return machine
        time.sleep(0.1)
    raise RuntimeError(f"no systemd came up: {log.read_text(errors='replace')[-2000:]}")


def _children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _hierarchies() -> list[Path]:
    """Returns the mounts of the cgroup hierarchies: one, or with controllers of version 1 several."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    return [Path(at) for _, at, kind, *_ in mounts if kind in ("cgroup", "cgroup2")]


def _make_group(group: Path) -> None:
    group.mkdir()
    for name in ("cpuset.cpus", "cpuset.mems"):  # of version 1: empty in a new group, and nothing could run in it
        if (group / name).exists():
            (group / name).write_text((group.parent / name).read_text())


def _remove_group(group: Path) -> None:
    until = time.monotonic() + WAIT_S
    for directory, _, _ in os.walk(group, topdown=False):
        while True:
            try:
                Path(directory).rmdir()
                break
            except OSError:  # its processes are on their way out
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)


# -- inside -------------------------------------------------------------------------------------------------


def _mount(*argv: str) -> None:
    subprocess.run(["mount", *argv], check=True)


def _become_systemd(scratch: Path, target: str) -> None:
    root, layers = scratch / "root", scratch / "layers"
    cgroups = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    cgroups = [fields for fields in cgroups if fields[2] in ("cgroup", "cgroup2")]
    _mount("--make-rprivate", "/")
    for directory in (root, layers):
        directory.mkdir()
    _mount("-t", "tmpfs", "tmpfs", str(layers))
    (layers / "upper").mkdir()
    (layers / "work").mkdir()
    _mount("-t", "overlay", "overlay", "-o", f"lowerdir=/,upperdir={layers}/upper,workdir={layers}/work", str(root))
    _mount("-t", "proc", "proc", f"{root}/proc")
    _mount("-t", "sysfs", "sysfs", f"{root}/sys")
    for name in ("run", "tmp", "dev"):
        _mount("-t", "tmpfs", "tmpfs", f"{root}/{name}")
    for needed in {HERE, Path(sys.prefix)}:  # a checkout below /tmp would be gone with it
        if any(needed.is_relative_to(hidden) for hidden in ("/run", "/tmp")):
            Path(f"{root}{needed}").mkdir(parents=True, exist_ok=True)
            _mount("--bind", str(needed), f"{root}{needed}")
    for name in ("null", "zero", "full", "random", "urandom", "tty"):
        (root / "dev" / name).touch()
        _mount("--bind", f"/dev/{name}", f"{root}/dev/{name}")
    (root / "dev" / "shm").mkdir()
    _mount("-t", "tmpfs", "tmpfs", f"{root}/dev/shm")
    (root / "dev" / "pts").mkdir()
    _mount("-t", "devpts", "devpts", f"{root}/dev/pts", "-o", "newinstance,ptmxmode=666")
    (root / "dev" / "ptmx").symlink_to("pts/ptmx")
    if cgroups[0][1] != str(CGROUPS):
        _mount("-t", "tmpfs", "tmpfs", f"{root}{CGROUPS}")
    for _, at, kind, options, *_ in cgroups:
        wanted = [
            word for word in options.split(",") if word not in ("rw", "ro", "relatime", "nosuid", "nodev", "noexec")
        ]
        Path(f"{root}{at}").mkdir(exist_ok=True)
        named = [f"none,{word}" if word.startswith("name=") else word for word in wanted]
        more = ["-o", ",".join(named)] if kind == "cgroup" else []
        _mount("-t", kind, *more, kind, f"{root}{at}")
    (root / "run/systemd/system").mkdir(parents=True)
    (root / "run/systemd/system" / TARGET).write_text(
        "[Unit]\nRequires=basic.target\nAfter=basic.target\nAllowIsolate=yes\n"
    )
    (root / "etc/machine-id").write_text(f"{os.urandom(16).hex()}\n")
    old = root / "run" / "old"
    old.mkdir()
    subprocess.run(["pivot_root", str(root), str(old)], check=True)
    os.chdir("/")
    subprocess.run(["umount", "-l", "/run/old"], check=True)
    Path("/run/old").rmdir()
    _mount("--make-rshared", "/")  # as systemd itself does where it is not in a container: credentials need it
    os.execve(
        SYSTEMD,
        [str(SYSTEMD), "--system", "--log-target=journal", f"--unit={target}"],
        {"container": "trigmon-test", "PATH": os.environ["PATH"]},
    )


if __name__ == "__main__":
    _become_systemd(Path(sys.argv[1]), sys.argv[2])
