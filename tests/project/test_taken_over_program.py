"""What a program that was taken over can do under the shipped units, on a real systemd: it tries each thing."""

from __future__ import annotations

import json

import pytest

from tests.project.test_install import installed

PROGRAM = """
import ctypes, errno, json, os, pathlib, platform, socket
libc = ctypes.CDLL(None, use_errno=True)
numbers = {"x86_64": dict(ptrace=101, process_vm_readv=310, perf_event_open=298, bpf=321, add_key=248, keyctl=250,
    mount=165, pivot_root=155, chroot=161, unshare=272, swapon=167, finit_module=313, clock_settime=227, iopl=172,
    userfaultfd=323, open_by_handle_at=304, kcmp=312, acct=163, setns=308, syslog=103)}.get(platform.machine(), {})

def call(name, *words):
    ctypes.set_errno(0)
    if libc.syscall(numbers[name], *words) < 0:
        raise OSError(ctypes.get_errno(), name)

parent = os.getppid()
monitor = next(int(p.name) for p in pathlib.Path("/proc").iterdir() if p.name.isdecimal()
    and (p / "cmdline").read_bytes().endswith(b"\\0monitor\\0") and p.stat().st_uid in (0, os.getuid()))
room = ctypes.create_string_buffer(4096)
tries = {
    "ptrace the monitor": lambda: call("ptrace", 0x4206, monitor, 0, 0),
    "ptrace the keeper": lambda: call("ptrace", 0x4206, parent, 0, 0),
    "read the monitor's variables": lambda: open(f"/proc/{monitor}/environ").read(),
    "read the keeper's memory": lambda: open(f"/proc/{parent}/mem", "rb").close(),
    "process_vm_readv": lambda: call("process_vm_readv", os.getpid(), 0, 0, 0, 0, 0),
    "perf_event_open": lambda: call("perf_event_open", room, 0, -1, -1, 0),
    "bpf": lambda: call("bpf", 0, room, 64),
    "add_key": lambda: call("add_key", b"user", b"x", b"y", 1, -3),
    "keyctl": lambda: call("keyctl", 0, -3, 0, 0, 0),
    "mount": lambda: call("mount", b"none", b"/tmp", b"tmpfs", 0, 0),
    "chroot": lambda: call("chroot", b"/tmp"),
    "a user namespace": lambda: call("unshare", 0x10000000),
    "a mount namespace": lambda: call("unshare", 0x00020000),
    "swapon": lambda: call("swapon", b"/tmp/x", 0),
    "load a module": lambda: call("finit_module", -1, b"", 0),
    "set the clock": lambda: call("clock_settime", 0, room),
    "iopl": lambda: call("iopl", 3),
    "userfaultfd": lambda: call("userfaultfd", 1),
    "kcmp": lambda: call("kcmp", os.getpid(), os.getpid(), 0, 0, 0),
    "the kernel's log": lambda: call("syslog", 3, room, 4096),
    "setuid 0": lambda: os.setuid(0),
    "a set-uid program": lambda: os.chmod("/tmp/suid", 0o4755),
    "a raw socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1),
    "a packet socket": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW),
    "a socket of VSOCK": lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM),
    "real-time scheduling": lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)),
    "read the queue manager's data": lambda: os.listdir("/var/lib/trigmon/QM1"),
    "read root's home": lambda: os.listdir("/root"),
    "read the shadow file": lambda: open("/etc/shadow").read(),
    "read /dev/mem": lambda: open("/dev/mem", "rb"),
    "read a disk": lambda: os.listdir("/dev/disk"),
    "write /etc": lambda: open("/etc/planted", "w"),
    "write /usr": lambda: open("/usr/bin/planted", "w"),
    "write its own unit": lambda: open("/etc/systemd/system/trigmon-monitor@.service", "a"),
    "write the program that it is": lambda: open(__file__, "a"),
    "write /home": lambda: open("/home/planted", "w"),
    "write /proc/sys": lambda: open("/proc/sys/kernel/core_pattern", "w"),
    "write /sys": lambda: open("/sys/kernel/uevent_helper", "w"),
    "make a cgroup": lambda: os.mkdir("/sys/fs/cgroup/planted"),
    "another's /tmp": lambda: open("/tmp/of-another"),
    "write the monitor's directory": lambda: open("/var/lib/trigmon-monitor/planted", "w"),
    "signal the monitor": lambda: os.kill(monitor, 0),
    "read another's command line": lambda: open("/proc/1/cmdline").read(),
    "netlink": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0),
    "any address": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM),
}
open("/tmp/suid", "w").close()
came = {}
for name, attempt in tries.items():
    try:
        attempt()
        came[name] = "done"
    except OSError as error:
        came[name] = errno.errorcode.get(error.errno, str(error))
print(json.dumps(came))
"""

LEFT = {
    "write the monitor's directory",
    "signal the monitor",
    "read another's command line",
    "netlink",
    "any address",
}
"""What docs/explanation/security.md says that it still has."""


@pytest.fixture(scope="module")
def tried(tmp_path_factory):
    """Returns what came of each try of a program that the monitor started."""
    with installed(tmp_path_factory.mktemp("machine")) as machine:
        machine.do(
            f"""cat > /usr/local/bin/taken.py <<'END'
{PROGRAM}
END
echo of another > /tmp/of-another; chmod 644 /tmp/of-another
trigmon process define TAKEN appl_type=unix appl_id='/opt/trigmon/python/bin/python3 /usr/local/bin/taken.py'
trigmon queue define TAKEN.IN TRIGGER trigger_type=every process_name=TAKEN \\
    initiation_q_name=SYSTEM.DEFAULT.INITIATION.QUEUE
trigmon put TAKEN.IN go"""
        )
        (run,) = machine.wait_for_runs(1)
        output = machine.do(f"trigmon runs logs {run['run_id']}")
        assert run["exit_status"] == 0, output
        yield json.loads(output.splitlines()[-1])


def test_it_has_what_the_documentation_says_and_nothing_more(tried):
    assert {name for name, came in tried.items() if came == "done"} == LEFT, tried


def test_system_calls_that_a_program_has_no_use_for_are_refused_before_they_do_anything(tried):
    names = (
        "process_vm_readv",
        "perf_event_open",
        "bpf",
        "add_key",
        "keyctl",
        "mount",
        "chroot",
        "swapon",
        "userfaultfd",
    )
    assert {name: tried[name] for name in (*names, "kcmp", "load a module", "set the clock")} == dict.fromkeys(
        (*names, "kcmp", "load a module", "set the clock"), "EPERM"
    )
