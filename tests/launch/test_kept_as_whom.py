"""What a real keeper makes of a user, of limits and of secrets, seen by real programs."""

from __future__ import annotations

import errno
import json
import os
import pwd
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.launch.keeper_machine import KeeperMachine, is_gone
from tests.waiting import until
from trigmon.keeper import credentials, protocol, run_directory
from trigmon.keeper.process import may_change_users

NOBODY = {"user": "nobody"}
VALUE = "5ecret value"
BUSY = "import time\nwhile True: pass"


def secret(directory, name="db", value=VALUE):
    (directory / name).write_text(value)
    (directory / name).chmod(0o600)
    return str(directory / name)


def output_of(machine, run_id, text, asks=None, **environment):
    """Runs a shell script and returns its output; it must end with 0."""
    machine.start(run_id, "/bin/sh", "-c", text, asks=asks, working_directory="/", **environment)
    ended = machine.wait_for("ended", run_id)
    assert ended["status"] == 0, machine.output(run_id, "stderr")
    return machine.output(run_id)


def test_every_program_makes_files_for_its_user_alone(machine):
    assert output_of(machine, "r", "umask") == "0077\n"
    assert (machine.run("r") / "stdout").stat().st_mode & 0o777 == 0o600


class TestAsAnotherUser:
    def test_it_has_that_users_id_and_groups_and_none_of_ours(self, open_machine):
        nobody = pwd.getpwnam("nobody")
        status = output_of(open_machine, "r", "cat /proc/self/status; umask; pwd", NOBODY)
        fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        assert fields["Uid"].split() == [str(nobody.pw_uid)] * 4
        assert fields["Gid"].split() == [str(nobody.pw_gid)] * 4
        assert sorted(map(int, fields["Groups"].split())) == sorted(os.getgrouplist("nobody", nobody.pw_gid))
        assert {int(fields[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb", "CapBnd")} == {0}
        assert "0077" in status

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
    def test_it_keeps_no_right_of_a_monitor_that_may_bound_nothing(self, tmp_path):
        """A monitor in its unit has four rights, also inheritable and ambient ones."""
        rights = "+setuid,+setgid,+kill,+chown"
        starts = (
            "import os, sys\n"
            "from pathlib import Path\n"
            "from trigmon.keeper import spawn\n"
            "user = {'name': 'nobody', 'uid': 65534, 'gid': 65534, 'groups': [65534]}\n"
            "argv = ['/bin/cat', '/proc/self/status']\n"
            f"options = dict(user=user, limits={{}}, credentials='', mark=Path({str(tmp_path / 'begun')!r}))\n"
            "pid = spawn.start(argv, {}, '/', (0, 1, 2), **options)\n"
            "sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
        )
        kept = [f"--{of}=-all,{rights}" for of in ("inh-caps", "ambient-caps", "bounding-set")]
        dropped = ["setpriv", *kept, sys.executable, "-c", starts]
        ran = subprocess.run(dropped, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        fields = dict(line.split(":", 1) for line in ran.stdout.splitlines() if ":" in line)
        assert fields["Uid"].split()[0] == "65534"
        assert {int(fields[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {0}

    def test_it_leads_its_session_has_three_descriptors_and_is_deaf_to_no_signal(self, open_machine):
        text = "awk '{print $6}' /proc/$$/stat; ls /proc/$$/fd; grep SigIgn /proc/$$/status | cut -f2"
        session, *descriptors, ignored = output_of(open_machine, "r", text, NOBODY).split()
        assert session == str(open_machine.wait_for("started", "r")["pid"])
        assert descriptors == ["0", "1", "2"]
        assert int(ignored, 16) & ((1 << 31) - 1) == 0

    def test_its_output_can_be_opened_anew_and_is_read_by_the_monitor(self, open_machine):
        assert output_of(open_machine, "r", "echo one; echo two >> /dev/stdout", NOBODY) == "one\ntwo\n"

    def test_it_can_be_stopped(self, open_machine):
        open_machine.start("r", "/bin/sleep", "60", asks=NOBODY, working_directory="/")
        open_machine.wait_for("started", "r")
        open_machine.keeper.stop("r", protocol.STOPPED, 5)
        ended = open_machine.wait_for("ended", "r")
        assert (ended["status"], ended["why"]) == (-signal.SIGTERM, protocol.STOPPED)

    def test_what_the_kernel_will_not_execute_as_that_user_is_reported(self, open_machine):
        job = open_machine.directory / "job"
        job.write_text("#!/bin/sh\n")
        job.chmod(0o700)
        open_machine.start("r", job, asks=NOBODY, working_directory="/")
        assert open_machine.wait_for("failed", "r")["errno"] == errno.EACCES
        job.chmod(0o755)
        job.write_text("echo no script\n")
        open_machine.start("r2", job, asks=NOBODY, working_directory="/")
        assert open_machine.wait_for("failed", "r2")["errno"] == errno.ENOEXEC

    def test_a_working_directory_that_user_may_not_enter_is_reported(self, open_machine):
        closed = open_machine.directory / "closed"
        closed.mkdir(mode=0o700)
        open_machine.start("r", "/bin/true", asks=NOBODY, working_directory=closed)
        wanted = f"nobody cannot enter the working directory {closed}: Permission denied"
        assert open_machine.wait_for("failed", "r")["error"] == wanted

    def test_user_0_is_refused_by_the_keeper_itself(self, open_machine):
        frame = {"name": "root", "uid": 0, "gid": 0, "groups": []}
        directory = str(open_machine.run("r"))
        start = {"argv": ["/bin/true"], "environment": {}, "working_directory": "/", "directory": directory}
        open_machine.keeper._send("start", run="r", **start, time_limit_s=0, grace_s=1, user=frame)
        assert "ever started as user 0" in open_machine.wait_for("failed", "r")["error"]

    def test_a_keepers_right_is_not_lent_to_a_program_without_it(self, open_machine):
        """A program of the monitor's own user may reach the socket, and gets no further than it is."""
        asks = (
            "import json, os, sys\n"
            "from trigmon.keeper import protocol\n"
            "from pathlib import Path\n"
            "directory, name, run = sys.argv[1:]\n"
            "link = protocol.connected(Path(directory), name)\n"
            "user = {'name': 'nobody', 'uid': 65534, 'gid': 65534, 'groups': []}\n"
            "order = dict(argv=['/usr/bin/id'], environment={}, working_directory='/', directory=run, user=user)\n"
            "link.sendall(protocol.line('start', run='r', time_limit_s=0, grace_s=1, may_change_users=True, **order))\n"
            "link.recv(1)\n"
        )
        assert open_machine.pid
        dropped = ["setpriv", "--bounding-set=-setuid", "--inh-caps=-setuid", sys.executable, "-c", asks]
        arguments = [open_machine.monitors, open_machine.keepers.name, open_machine.run("r")]
        subprocess.run([*dropped, *map(str, arguments)], check=True)
        assert "must itself have the right to become that user" in open_machine.wait_for("failed", "r")["error"]

    def test_rights_a_unit_gives_the_monitor_reach_no_program(self, open_machine):
        """AmbientCapabilities=CAP_SETUID passes to whatever a process executes: the keeper's programs get none."""
        code = (
            "import os, sys\n"
            "from pathlib import Path\n"
            "from tests.launch.keeper_machine import KeeperMachine\n"
            "machine = KeeperMachine(Path(sys.argv[1]))\n"
            "machine.shell('own', 'grep Cap /proc/self/status')\n"
            "machine.start('theirs', '/bin/sh', '-c', 'id -u', working_directory='/', asks={'user': 'nobody'})\n"
            "for run in 'own', 'theirs':\n"
            "    print(machine.wait_for('ended', run)['status'], machine.output(run).split())\n"
            "machine.end()\n"
        )
        place = open_machine.directory / "place"
        place.mkdir()
        os.chown(place, 1, 1)
        # The last one lets it read this checkout and its Python wherever they lie.
        rights = "+setuid,+setgid,+kill,+dac_read_search"
        as_monitor = ["setpriv", "--reuid=1", "--regid=1", "--clear-groups", f"--inh-caps={rights}"]
        argv = [*as_monitor, f"--ambient-caps={rights}", sys.executable, "-c", code, place]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False, cwd="/")
        assert done.returncode == 0, done.stderr
        own, theirs = done.stdout.splitlines()[-2:]
        assert theirs == f"0 ['{pwd.getpwnam('nobody').pw_uid}']", done.stderr
        words = json.loads(own.partition(" ")[2].replace("'", '"'))
        held = dict(zip(words[::2], words[1::2], strict=True))
        assert [int(held[name], 16) for name in ("CapPrm:", "CapEff:", "CapAmb:")] == [0, 0, 0]


class TestLimits:
    def test_they_bind_the_program_and_what_it_starts_and_cannot_be_raised(self, machine):
        code = (
            "import resource as r\n"
            "print([r.getrlimit(which) for which in (r.RLIMIT_DATA, r.RLIMIT_CPU, r.RLIMIT_NOFILE)])\n"
        )
        asks = {"memory_limit_mib": 512, "cpu_limit_s": 7, "open_files_limit": 64}
        machine.start("r", "/bin/sh", "-c", '"$0" -c "$1"; :', sys.executable, code, asks=asks)
        assert machine.wait_for("ended", "r")["status"] == 0
        assert machine.output("r") == f"[({512 << 20}, {512 << 20}), (7, 12), (64, 64)]\n"

    def test_without_any_a_program_has_the_keepers_own(self, machine):
        code = "import resource as r; print(r.getrlimit(r.RLIMIT_NOFILE), r.getrlimit(r.RLIMIT_DATA))"
        machine.start("r", sys.executable, "-c", code)
        machine.wait_for("ended", "r")
        ours = [resource.getrlimit(which) for which in (resource.RLIMIT_NOFILE, resource.RLIMIT_DATA)]
        assert machine.output("r") == f"{ours[0]} {ours[1]}\n"

    def test_a_program_that_wants_more_memory_is_refused_it(self, machine):
        code = "bytearray(300 << 20)"
        machine.start("r", sys.executable, "-c", code, asks={"memory_limit_mib": 200})
        assert machine.wait_for("ended", "r")["status"] == 1
        assert machine.output("r", "stderr").endswith("MemoryError\n")
        machine.start("r2", sys.executable, "-c", code, asks={"memory_limit_mib": 400})
        assert machine.wait_for("ended", "r2")["status"] == 0

    @pytest.mark.skipif(shutil.which("java") is None, reason="there is no Java on PATH")
    def test_a_java_machine_starts_in_less_memory_than_it_reserves_addresses(self, machine):
        """By the limit of addresses (RLIMIT_AS) it would not: it reserves gigabytes, and uses few of them."""
        machine.start("r", shutil.which("java"), "-Xmx64m", "-version", asks={"memory_limit_mib": 512})
        assert machine.wait_for("ended", "r")["status"] == 0, machine.output("r", "stderr")

    def test_one_that_uses_too_much_processor_time_is_ended_and_that_is_reported(self, machine):
        machine.start("r", sys.executable, "-c", BUSY, asks={"cpu_limit_s": 1})
        ended = machine.wait_for("ended", "r")
        assert (ended["status"], ended["why"]) == (-signal.SIGXCPU, "its limit of 1 s of processor time")
        assert run_directory.read_exit(machine.run("r"))["why"] == ended["why"]

    def test_it_is_reported_too_where_a_shell_hands_it_on(self, machine):
        text = f"{sys.executable} -c '{BUSY}'; exit $?"
        machine.shell("r", text, asks={"cpu_limit_s": 1})
        ended = machine.wait_for("ended", "r")
        assert (ended["status"], ended["why"]) == (128 + signal.SIGXCPU, "its limit of 1 s of processor time")

    def test_a_program_that_was_killed_before_its_limit_was_not_ended_by_it(self, machine):
        machine.shell("r", "kill -9 $$", asks={"cpu_limit_s": 1})
        ended = machine.wait_for("ended", "r")
        assert (ended["status"], ended["why"]) == (-signal.SIGKILL, "")

    def test_what_the_kernel_will_not_execute_is_reported_with_limits_as_without(self, machine):
        machine.start("r", machine.directory / "missing", asks={"open_files_limit": 64})
        assert machine.wait_for("failed", "r")["errno"] == errno.ENOENT

    def test_text_without_an_interpreter_is_run_by_no_shell(self, machine):
        (machine.directory / "text").write_text("touch made\n")
        (machine.directory / "text").chmod(0o755)
        machine.start("r", machine.directory / "text", asks={"cpu_limit_s": 5}, working_directory=machine.directory)
        assert machine.wait_for("failed", "r")["errno"] == errno.ENOEXEC
        assert not (machine.directory / "made").exists()

    def test_a_hundred_limited_programs_leave_neither_zombie_nor_descriptor(self, machine):
        machine.shell("first", "exit 0", asks={"cpu_limit_s": 5})
        machine.wait_for("ended", "first")
        before = machine.descriptors()
        for number in range(100):
            machine.start(f"r{number}", "/bin/sh", "-c", f"exit {number}", asks={"cpu_limit_s": 5})
        assert [machine.wait_for("ended", f"r{number}")["status"] for number in range(100)] == list(range(100))
        until(lambda: (machine.children(), machine.descriptors()) == (set(), before))


class TestSecrets:
    LOOK = 'echo "$CREDENTIALS_DIRECTORY"; stat -c "%a %U" "$CREDENTIALS_DIRECTORY" "$CREDENTIALS_DIRECTORY/db"; '

    def test_a_program_finds_its_own_copies_and_they_go_with_it(self, machine):
        out = output_of(
            machine, "r", self.LOOK + 'cat "$CREDENTIALS_DIRECTORY/db"', {"secrets": {"db": secret(machine.directory)}}
        )
        me = pwd.getpwuid(os.geteuid()).pw_name
        directory = machine.run("r") / "credentials"
        assert out == f"{directory}\n500 {me}\n400 {me}\n{VALUE}"
        assert not directory.exists()
        assert Path(machine.directory / "db").read_text() == VALUE

    def test_another_user_reads_them_and_nobody_else(self, open_machine):
        out = output_of(open_machine, "r", self.LOOK, NOBODY | {"secrets": {"db": secret(open_machine.directory)}})
        assert out.splitlines()[1:] == ["500 nobody", "400 nobody"]
        assert not (open_machine.run("r") / "credentials").exists()
        runs = stat.S_IMODE(open_machine.run("r").parent.stat().st_mode)
        assert runs == 0o711

    def test_a_user_that_cannot_reach_them_gets_the_place_and_the_remedy(self, open_machine):
        open_machine.directory.chmod(0o700)
        asks = NOBODY | {"secrets": {"db": secret(open_machine.directory)}}
        open_machine.start("r", "/bin/true", asks=asks, working_directory="/")
        failed = open_machine.wait_for("failed", "r")["error"]
        assert failed.startswith(
            f"nobody may not pass through {open_machine.directory}, below which its secrets lie (chmod"
        )
        assert not (open_machine.run("r") / "credentials").exists()

    def test_their_values_are_in_no_frame_no_argument_no_variable_and_no_file_of_the_run(self, machine):
        text = "tr '\\0' '\\n' < /proc/$$/environ; tr '\\0' ' ' < /proc/$$/cmdline"
        assert VALUE not in output_of(machine, "r", text, {"secrets": {"db": secret(machine.directory)}})
        assert VALUE not in json.dumps(machine.heard)
        assert not any(VALUE in file.read_text() for file in machine.run("r").iterdir())
        log = machine.monitors / f"{machine.keepers.name}.log"
        assert VALUE not in log.read_text()

    def test_a_source_that_has_become_a_link_or_too_large_starts_nothing_and_leaves_nothing(self, machine):
        (machine.directory / "link").symlink_to("/etc/passwd")
        (machine.directory / "large").write_bytes(b"x" * (credentials.LARGEST + 1))
        for run_id, name in (("r", "link"), ("r2", "large")):
            machine.start(run_id, "/bin/true", asks={"secrets": {"db": str(machine.directory / name)}})
            assert machine.wait_for("failed", run_id)["errno"] == 0
            assert not (machine.run(run_id) / "credentials").exists()

    def test_what_a_program_adds_to_them_goes_as_well(self, machine):
        text = 'cd "$CREDENTIALS_DIRECTORY" && chmod 700 . && mkdir -p deep/er && touch deep/er/file'
        output_of(machine, "r", text, {"secrets": {"db": secret(machine.directory)}})
        assert not (machine.run("r") / "credentials").exists()

    def test_they_can_be_removed_when_the_keeper_died_with_them(self, machine):
        machine.start("r", "/bin/sleep", "60", asks={"secrets": {"db": secret(machine.directory)}})
        pid = machine.wait_for("started", "r")["pid"]
        machine.keeper_is_killed()
        assert (machine.run("r") / "credentials" / "db").exists()
        os.kill(pid, signal.SIGKILL)
        until(lambda: is_gone(pid))
        credentials.remove(machine.run("r"))
        credentials.remove(machine.run("r"))
        assert not (machine.run("r") / "credentials").exists()


def test_all_of_it_together(open_machine: KeeperMachine):
    asks = NOBODY | {"open_files_limit": 64, "secrets": {"db": secret(open_machine.directory)}}
    out = output_of(open_machine, "r", 'id -un; ulimit -n; cat "$CREDENTIALS_DIRECTORY/db"', asks)
    assert out == f"nobody\n64\n{VALUE}"


def test_a_keeper_that_needs_none_of_it_does_not_import_it():
    code = "import sys, trigmon.keeper.main; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"trigmon.keeper.spawn", "trigmon.keeper.credentials", "resource", "shutil"} & set(loaded)


def test_the_right_to_change_users_is_the_peers_own():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert may_change_users(ours) is (os.geteuid() == 0)


class TestWhatTakesThePlaceOfSecrets:
    """The run's directory is our own user's, and so any of its programs may change what lies there."""

    def test_a_link_there_gives_away_nothing(self, tmp_path):
        run, victim = tmp_path / "run", tmp_path / "victim"
        run.mkdir()
        victim.mkdir(mode=0o755)
        before = victim.stat()
        (run / credentials.DIRECTORY).symlink_to(victim)
        with pytest.raises(OSError, match=r"File exists|symbolic link"):
            credentials.put(run, {"db": secret(tmp_path)}, 65534, 65534)
        credentials.remove(run)
        assert not (run / credentials.DIRECTORY).is_symlink()
        after = victim.stat()
        assert (after.st_uid, after.st_mode) == (before.st_uid, before.st_mode)

    def test_a_file_that_is_linked_there_stays_its_owners(self, tmp_path):
        run, victim = tmp_path / "run", tmp_path / "victim"
        run.mkdir()
        victim.write_text("theirs")
        victim.chmod(0o640)
        os.chown(victim, 65534, 65534)
        (run / credentials.DIRECTORY).hardlink_to(victim)
        credentials.remove(run)
        assert not (run / credentials.DIRECTORY).exists()
        assert (victim.stat().st_uid, stat.S_IMODE(victim.stat().st_mode)) == (65534, 0o640)
