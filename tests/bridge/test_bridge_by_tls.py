"""A bridge by TLS: a channel table, a user whose password is a file, and that user's rights there.

trigmon's C library is in the place of IBM's client: its TLS, its channel table, trigmon's authority records.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.bridge.bench import Bench
from tests.bridge.queues_elsewhere import load_library
from tests.cli.conftest import run_cli
from tests.daemons import Daemon, define
from tests.tls.authorities import Site
from tests.waiting import until
from trigmon.mq.calls import Alter
from trigmon.mq.descriptors import TriggerMessage, pack_tm, unpack_dlh
from trigmon.tls.accounts import Account

PASSWORD = "a-password-that-is-nowhere-else"
INITIATION = "TRIGMON.PLAY.INIT"
DEADQ = "DEV.DEAD.LETTER.QUEUE"
SHIPPED = Path(__file__).resolve().parents[2] / "config" / "ibm-mq"
GETS = """\
import json
import os
import pathlib
import sys

import ibmmq as mq

there = mq.TMC2().unpack(os.environ["TRIGMON_TMC"].encode())
secret = pathlib.Path(os.environ["CREDENTIALS_DIRECTORY"], "prod_password").read_text().strip()
qmgr = mq.QueueManager(None)
qmgr.connect_with_options(there["QMgrName"].strip(b" \\0").decode(), user="app", password=secret, cno=mq.CNO())
queue = mq.Queue(qmgr, there["QName"].strip(b" \\0").decode(), mq.CMQC.MQOO_INPUT_SHARED)
data = queue.get(None, mq.MD(), mq.GMO(Options=mq.CMQC.MQGMO_NO_SYNCPOINT)).decode()
queue.close()
qmgr.disconnect()
shown = {name: value for name, value in os.environ.items() if name.startswith(("MQ", "TRIGMON_Q"))}
shown |= {"data": data, "told": secret in "".join(os.environ.values())}
pathlib.Path(sys.argv[1]).write_text(json.dumps(shown))
"""


class ByTls(Bench):
    """A bench whose far queue manager is in another home, so that a bridge has the channel table's way alone."""

    def __init__(self, home, library_directory):
        self.site = Site(home / "tls")
        self.site.let_in(Account("app", self.site.password(PASSWORD)))
        self.secrets = home / "secrets"
        self.secrets.mkdir()
        self.table = home / "ccdt.json"
        for name in ("here", "there"):
            (home / name).mkdir()
        here = Daemon(home / "here", "QM1", settings={"monitor.secrets_directory": self.secrets})
        there = Daemon(home / "there", "PROD", settings=self.site.settings)
        bridge = {"mqserver": None, "ccdt": str(self.table), "user": "app", "password_secret": "prod_password"}
        super().__init__(home, library_directory, here=here, there=there, initiation_queues=[INITIATION], **bridge)
        self.far.call(Alter(object_type="QMGR", name="PROD", attributes={"dead_letter_q_name": DEADQ}))
        define(self.far, DEADQ)
        self.variables["TRIGMON_CLIENT_FILE"] = str(home / "client.ini")
        for name in ("play.mqsc", "play-rights.mqsc"):
            self.mqsc((SHIPPED / name).read_text())

    def reset(self):
        """Makes everything right: the way, its name, its authority, the password."""
        self.way()
        self.channels()
        self.password()

    def way(self, host="localhost", authority="authority", port=None):
        """Writes where the library finds PROD, and whose certificate it takes."""
        address = f"tls://{host}:{port or self.site.port}"
        lines = ["[PROD]", f"address = {address}", f"authority = {self.site.directory / authority}.crt"]
        (self.home / "client.ini").write_text("\n".join(lines) + "\n")

    def channels(self, queue_manager="PROD"):
        """Writes the channel table."""
        client = {"connection": [{"host": "mq.example.com", "port": 1414}], "queueManager": queue_manager}
        channel = {"name": "TRIGMON.SVRCONN", "type": "clientConnection", "clientConnection": client}
        security = {"transmissionSecurity": {"cipherSpecification": "ANY_TLS13"}}
        self.table.write_text(json.dumps({"channel": [channel | security]}))

    def password(self, text=PASSWORD, mode=0o600):
        """Writes the secret."""
        (self.secrets / "prod_password").write_text(f"{text}\n")
        (self.secrets / "prod_password").chmod(mode)

    def mqsc(self, text):
        """Executes MQSC there."""
        done = self.there.trigmon("mqsc", input=text)
        assert done.returncode == 0, done.stdout + done.stderr

    def may(self, name, rights):
        """Gives the bridge's user rights on a queue there."""
        self.mqsc(f"SET AUTHREC PROFILE('{name}') OBJTYPE(QUEUE) PRINCIPAL('app') AUTHADD({rights})")

    def ran(self, *words):
        """Returns ``trigmon bridge ...``, ended."""
        ours = {name: value for name, value in self.here.env.items() if name.startswith("TRIGMON_")}
        done = run_cli("bridge", *words, "--config", self.config(), "--output", "json", env=ours | self.variables)
        assert PASSWORD not in done.output
        return done

    def copy(self):
        """Returns the copy of COPIED, ended."""
        return self.ran("copy", "COPIED@PROD", "--until-empty")

    def check(self, *more):
        """Returns the rows of ``trigmon bridge check``, and its exit status."""
        done = self.ran("check", "FAR", *more)
        return [json.loads(line) for line in done.stdout.splitlines()], done.exit_code

    def first_failed(self):
        """Returns the first check that fails."""
        return next(row for row in self.check()[0] if row["outcome"] == "failed")


@pytest.fixture(scope="module")
def served(tmp_path_factory, library_directory):
    if find_spec("ibmmq") is None:
        pytest.skip("ibmmq has no wheel for this machine")
    load_library(library_directory)
    one = ByTls(tmp_path_factory.mktemp("qm"), library_directory)
    yield one
    one.end()


@pytest.fixture
def bridge(served):
    """A bridge that works, and that has no monitor behind its test."""
    served.reset()
    yield served
    for monitor in served.monitors:
        if monitor.poll() is None:
            served.stop(monitor)


def test_the_play_passes_with_the_shipped_rights(bridge):
    bridge.process("TRIGMON.PLAY", appl_id="/bin/true")
    bridge.monitored()
    for more in ((), ("--play",)):
        rows, status = bridge.check(*more)
        assert {row["outcome"] for row in rows} == {"ok"}, rows
        assert status == 0
    assert bridge.depth(INITIATION) == bridge.depth(DEADQ) == 0


@pytest.mark.slow
def test_the_script_starts_a_program_for_each_of_twenty_messages_and_finds_bad_triggers_as_dead_letters(bridge):
    env = {name: value for name, value in os.environ.items() if not name.startswith("TRIGMON_")} | bridge.variables
    env |= {"PATH": f"{Path(sys.executable).parent}:{env['PATH']}", "LD_LIBRARY_PATH": bridge.library}
    env |= {"TRIGMON_HOME": str(bridge.home), "PYTHONWARNINGS": "ignore"}
    env |= {"BRIDGE_USER": "app", "BRIDGE_PASSWORD": PASSWORD}
    argv = ["sh", str(SHIPPED / "play.sh"), "--queue-manager", "PROD"]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "PASS"), done.stdout + done.stderr
    steps = [line for line in done.stdout.splitlines() if line.startswith("ok        ")][-6:]
    assert [step.partition(":")[0].removeprefix("ok        ") for step in steps] == [
        "TRIGMON.PLAY there",
        "20 messages are put",
        "each starts TRIGMON.PLAY here once",
        "the messages are still there, each once",
        "a message that is no trigger message is a dead letter",
        "a trigger message for an unknown process is a dead letter",
    ]
    assert bridge.depth("TRIGMON.PLAY") == bridge.depth(INITIATION) == bridge.depth(DEADQ) == 0


def test_a_program_comes_there_by_the_channel_table_and_a_secret_of_its_own(bridge):
    file, shown = bridge.home / "gets.py", bridge.home / "shown.json"
    file.write_text(GETS)
    program = f"{shlex.quote(sys.executable)} {file} {shown}"
    bridge.process("GETS", appl_id=program, secrets="prod_password")
    bridge.queue("PAY", process="GETS", initiation_q_name=INITIATION)
    bridge.may("PAY", "GET")
    bridge.monitored()
    bridge.far.put("PAY", b"work")
    (run,) = bridge.ended(1, q_name="PAY@PROD")
    assert (run["state"], run["exit_status"]) == ("exited", 0), run
    assert run["remote_before"] is None, "app may not inquire PAY"
    assert json.loads(shown.read_text()) == {
        "MQCCDTURL": bridge.table.as_uri(),
        "TRIGMON_QMGR": "PROD",
        "TRIGMON_QNAME": "PAY",
        "data": "work",
        "told": False,
    }
    assert PASSWORD not in bridge.log.read_text()


def test_a_channel_with_a_cipher_and_a_key_repository_is_a_way_too(bridge):
    before = bridge.settings
    channel = {"mqserver": "TRIGMON.SVRCONN/TCP/mq.example.com(1414)", "cipher_spec": "ANY_TLS13"}
    bridge.settings = before | channel | {"ccdt": None, "key_repository": str(bridge.home / "key.kdb")}
    rows, _ = bridge.check()
    bridge.settings = before
    assert {row["outcome"] for row in rows} == {"ok"}, rows


def test_what_is_wrong_with_the_way_is_named_with_what_helps(bridge):
    def is_named(check, seen, remedy):
        row = bridge.first_failed()
        assert row["check"] == check
        assert seen in row["seen"]
        assert remedy in row["remedy"] + row["seen"]
        bridge.reset()

    bridge.password("guess")
    is_named("connection", "MQCONNX to PROD: 2035", "see user and password_secret of the bridge")
    bridge.password(mode=0o644)
    is_named("connection", "password_secret: SECRETS(prod_password)", "chmod")
    bridge.way(host="127.0.0.1")
    is_named("connection", "2393", "the certificate there is for the host")
    bridge.way(authority="foreign")
    is_named("connection", "2393", "holds its authority")
    bridge.way(port=1)
    is_named("connection", "2538", "the listener runs")
    bridge.channels("OTHER")
    is_named("connection", "2058", "channel table (ccdt)")


def test_the_right_that_lacks_is_named_by_the_command_that_gives_it(bridge):
    """The commands that the check names are done until nothing fails: they are enough."""
    shipped = (SHIPPED / "play-rights.mqsc").read_text()
    bridge.mqsc(shipped.replace("AUTHADD(", "AUTHRMV("))
    named = []
    while failed := [row for row in bridge.check()[0] if row["outcome"] == "failed"]:
        assert all("2035" in row["seen"] for row in failed), failed
        assert not {(row["check"], row["remedy"]) for row in failed} & set(named), failed
        named += [(row["check"], row["remedy"]) for row in failed]
        for row in failed:
            bridge.mqsc("\n".join(row["remedy"].split("; ")))
    assert {f"initiation queue {INITIATION}", "dead-letter queue", "command server"} <= {check for check, _ in named}
    bridge.mqsc(shipped)


def test_a_wrong_password_is_a_finding_and_the_right_one_serves_without_a_new_start(bridge):
    bridge.password("guess")
    bridge.monitor()
    until(lambda: "2035" in bridge.problem(), 60)
    bridge.password()
    until(bridge.serves, 60)
    assert "guess" not in bridge.log.read_text()


@pytest.fixture
def with_documented_rights(bridge):
    """A bridge whose user has what docs/how-to/ibm-mq-triggers.md lists, but for the dead-letter queue."""
    shipped = (SHIPPED / "play-rights.mqsc").read_text()
    bridge.mqsc(shipped.replace("AUTHADD(", "AUTHRMV("))
    bridge.mqsc(f"CLEAR QLOCAL({INITIATION})")  # what came for the test before when its monitor had gone
    bridge.mqsc("SET AUTHREC OBJTYPE(QMGR) PRINCIPAL('app') AUTHADD(CONNECT,INQ)")
    bridge.may(INITIATION, "GET")
    bridge.may("SEEN", "INQ,BROWSE,DSP")
    bridge.may("SYSTEM.ADMIN.COMMAND.QUEUE", "PUT")
    bridge.may("SYSTEM.DEFAULT.MODEL.QUEUE", "GET,DSP")
    yield bridge
    bridge.mqsc(shipped)


def test_the_documented_rights_are_enough_to_judge_a_queue(with_documented_rights):
    bridge = with_documented_rights
    bridge.process("SLEEPS", appl_id=bridge.program("sleep 600"), open_wait_s=1, retry=0)
    bridge.queue("SEEN", process="SLEEPS", initiation_q_name=INITIATION)
    bridge.monitored()
    with bridge.far.open("SEEN", "input_shared") as queue:
        bridge.far.put("SEEN", b"work")
        (run,) = bridge.ended(1, q_name="SEEN@PROD")
        queue.get()  # or the next monitor that opens the initiation queue would have a trigger message of it
    assert "had not opened its queue in 1 s" in run["why"], "PCF tells that the open handle is another's"
    before = run["remote_before"]
    assert (before["trigger_type"], before["depth"], before["readers"], len(before["first"])) == ("every", 1, 1, 48)


def test_without_the_right_to_put_dead_letters_a_bad_message_waits_with_those_behind_it(with_documented_rights):
    bridge = with_documented_rights
    bridge.process("P")
    bridge.monitored()
    for data in (b"bad", pack_tm(TriggerMessage(q_name="Q", process_name="P"))):
        bridge.far.put(INITIATION, data, format="MQTRIG")
    until(lambda: f"MQPUT1 to {DEADQ}: 2035" in bridge.problem(), 60)
    assert (bridge.depth(INITIATION), bridge.runs(q_name="Q@PROD")) == (2, [])
    bridge.may(DEADQ, "PUT")
    bridge.ended(1, q_name="Q@PROD")
    with bridge.far.open(DEADQ, "input_shared") as queue:
        ((header, data),) = [unpack_dlh(message.data) for message in queue.drain()]
    assert (header.reason, header.dest_q_name, data) == (266, INITIATION, b"bad")


def test_without_mqinq_of_the_queue_manager_pcf_names_the_dead_letter_queue(with_documented_rights):
    bridge = with_documented_rights
    bridge.may(DEADQ, "PUT")
    bridge.mqsc("SET AUTHREC OBJTYPE(QMGR) PRINCIPAL('app') AUTHRMV(INQ)")
    bridge.monitored()
    bridge.far.put(INITIATION, b"bad", format="MQTRIG")
    refused = "INQUIRE_Q_MGR: 2035 MQRC_NOT_AUTHORIZED; MQINQ of the queue manager: 2035 MQRC_NOT_AUTHORIZED"
    until(lambda: refused in bridge.problem(), 60)
    (row,) = [row for row in bridge.check()[0] if row["check"] == "dead-letter queue"]
    assert (row["outcome"], row["seen"]) == ("failed", refused)
    assert "OBJTYPE(QMGR)" in row["remedy"]
    assert bridge.depth(INITIATION) == 1
    bridge.mqsc("SET AUTHREC OBJTYPE(QMGR) PRINCIPAL('app') AUTHADD(DSP)")
    with bridge.far.open(DEADQ, "input_shared") as queue:
        assert unpack_dlh(queue.get(wait_interval_ms=60_000).data)[1] == b"bad"
    (row,) = [row for row in bridge.check()[0] if row["check"] == "dead-letter queue"]
    assert (row["outcome"], row["seen"]) == ("ok", f"{DEADQ}, opened for output")


def test_a_queue_manager_that_was_killed_is_served_again(bridge):
    bridge.monitored()
    bridge.there.kill()
    bridge.far.drop()
    until(bridge.problem, 60)
    bridge.there.start()
    bridge.far = bridge.there.connect()
    until(bridge.serves, 60)
    until(lambda: not bridge.problem(), 60)


def test_a_queue_is_copied_with_the_documented_rights(bridge):
    define(bridge.qm, "COPIED")
    define(bridge.far, "COPIED")
    bridge.far.put_many("COPIED", [b"1", b"2"])
    refused = bridge.copy()
    assert refused.exit_code != 0
    assert "MQOPEN of COPIED" in refused.stderr
    assert "2035" in refused.stderr
    bridge.may("COPIED", "GET,BROWSE")
    done = bridge.copy()
    assert done.exit_code == 0, done.stderr
    bridge.may("COPIED", "INQ")
    bridge.far.put("COPIED", b"3")
    assert bridge.copy().exit_code == 0
    with bridge.qm.open("COPIED", "input_shared") as queue:
        assert [message.data for message in queue.drain()] == [b"1", b"2", b"3"]
