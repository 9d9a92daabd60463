"""Who may come in, and who may change objects: as the kernel names the peer."""

import contextlib
import grp
import io
import os
import pwd
import re
import socket
import struct

import pytest

import trigmon
from tests.daemons import define
from tests.strangers import NOBODY, as_nobody
from trigmon import paths, settings
from trigmon.cli.main import cli
from trigmon.mq.calls import CancelRun, ChangeRun, Pause, Pauses, RecordRun, Resume, RetryRun, Runs
from trigmon.server import peer_identity as by_system
from trigmon.server.peer_identity import Authority
from trigmon.tls.accounts import Account


def test_a_user_that_is_not_in_the_sockets_group_does_not_come_in(passable):
    one = passable()
    with pytest.raises(trigmon.NotAuthorized):
        as_nobody(lambda: one.connect().drop())


@pytest.mark.parametrize("address", ["QM1", "unix"])
def test_a_refused_user_gets_the_group_to_join(passable, monkeypatch, address):
    group = next(group for group in grp.getgrall() if group.gr_gid not in (0, NOBODY))
    one = passable(settings={"server.socket_group": group.gr_name})
    address = one.address if address == "unix" else address

    monkeypatch.setenv("TRIGMON_HOME", str(one.home))

    def status():
        with contextlib.redirect_stderr(io.StringIO()) as output, contextlib.redirect_stdout(io.StringIO()):
            try:
                cli(["--qmgr", address, "status"])
            except SystemExit as ended:
                return ended.code, output.getvalue()

    assert status()[0] == 0  # and all that it imports is there, also where nobody can read the files
    code, reported = as_nobody(status)
    assert (code, f"usermod -aG {group.gr_name} nobody" in reported) == (4, True), reported
    assert "administration" not in reported


def test_a_user_that_only_root_keeps_out_gets_no_group_to_join(passable):
    one = passable()
    with pytest.raises(trigmon.NotAuthorized, match=r"server\.socket_group"):
        as_nobody(lambda: one.connect().drop())


@pytest.mark.parametrize(("named", "expected"), [("nosuch.user", "user 'nosuch.user'"), ("%nosuch", "group 'nosuch'")])
def test_an_administrator_nobody_knows_is_refused_at_the_start(daemon, named, expected):
    one = daemon(start=False, settings={"server.administrators": named})
    assert one.launch().wait() == 2
    why = one.events("the queue manager cannot start")[0]["why"]
    assert why == f"server.administrators: there is no {expected} on this machine"


def test_a_client_that_comes_in_may_put_and_get_but_not_define_and_the_denial_is_logged(passable):
    one = passable(settings={"server.socket_mode": "0666"})
    with one.connect() as qm:
        assert qm.administrator
        define(qm, "Q")

    def work():
        with one.connect() as qm:
            assert not qm.administrator
            qm.put("Q", b"x")
            got = qm.open("Q", "input_shared").get().data
            try:
                define(qm, "MINE")
            except trigmon.NotAuthorized as error:
                return got, int(error.reason)

    assert as_nobody(work) == (b"x", 2035)
    (denial,) = one.events("not authorized")
    assert (denial["user"], denial["uid"], denial["call"], denial["level"]) == ("nobody", NOBODY, "Define", "warning")


def test_a_configured_administrator_may_define(passable):
    one = passable(settings={"server.socket_mode": "0666", "server.administrators": "nobody"})

    def work():
        with one.connect() as qm:
            define(qm, "MINE")
            return qm.administrator

    assert as_nobody(work)


def test_the_accounts_of_monitors_may_keep_the_ledger_of_runs_and_nobody_else(passable):
    runs = (RecordRun(run_id="1", record={"state": "failed"}), ChangeRun(run_id="1", fields={"state": "unknown"}))

    def refused(one):
        with one.connect() as qm:
            collected = []
            for call in runs:
                try:
                    qm.call(call)
                except trigmon.NotAuthorized as error:
                    collected.append(error.about)
            return qm.monitor, collected

    stranger = passable(settings={"server.socket_mode": "0666"})
    assert refused(stranger) == (True, [])
    needs = "needs a monitor (server.monitors), which nobody is not"
    assert as_nobody(lambda: refused(stranger)) == (False, [f"record_run {needs}", f"change_run {needs}"])
    named = passable(settings={"server.socket_mode": "0666", "server.monitors": "nobody"})
    assert as_nobody(lambda: refused(named)) == (True, [])
    with named.connect() as qm:
        assert qm.call(Runs()).rows[0]["state"] == "unknown"


def test_a_client_that_comes_in_sees_what_is_paused_and_may_neither_pause_nor_end_nor_repeat_anything(passable):
    one = passable(settings={"server.socket_mode": "0666", "server.monitors": "nobody"})
    with one.connect() as qm:
        qm.call(Pause(what="everything", reason="upkeep"))
        qm.call(RecordRun(run_id="1", record={"state": "held"}))
    calls = [Resume(what="everything"), Pause(what="everything"), CancelRun(run_id="1"), RetryRun(run_id="1")]

    def work():
        collected = []
        with one.connect() as qm:
            for call in calls:
                try:
                    qm.call(call)
                except trigmon.NotAuthorized as error:
                    collected.append(error.about)
            return collected, [row["reason"] for row in qm.call(Pauses()).rows]

    names = ("resume", "pause", "cancel_run", "retry_run")
    refused, pauses = as_nobody(work)
    needs = "needs an administrator, or the right pause on the queue manager, which nobody has not"
    assert [about.partition(" (")[0] for about in refused] == [f"{name} {needs}" for name in names]
    assert pauses == ["upkeep"]


def test_the_account_of_the_shipped_unit_is_a_monitor_by_default():
    unit = (paths.shipped("systemd") / "trigmon-monitor@.service").read_text()
    account = re.search(r"^User=(.*)$", unit, re.MULTILINE)[1]
    assert settings.load(environ={}).server.monitors == [account]
    assert f"u {account} " in (paths.shipped("systemd") / "trigmon.sysusers.conf").read_text()
    authority = Authority([], [account])
    assert authority.monitors(5001, account, ())
    assert not authority.administers(5001, account, ())
    assert not authority.monitors(5001, "bob", ())


def test_root_the_daemons_user_and_those_named_administer_and_nobody_else():
    alice = pwd.getpwall()[-1].pw_name
    authority = Authority([alice, "1234", f"%{grp.getgrgid(0).gr_name}"])
    assert authority.administers(0, "root", ())
    assert authority.administers(os.geteuid(), "a user", ())
    assert authority.administers(5001, alice, ())
    assert authority.administers(1234, "bob", ())
    assert authority.administers(5001, "in-group-root", by_system.group_names("in-group-root", 0))
    assert not authority.administers(5001, "bob", ("bob",))
    assert not authority.administers(-1, "", ())


class Accepted:
    """An accepted connection of this user."""

    family = socket.AF_UNIX

    def __init__(self, uid):
        self.credentials = struct.pack("3i", os.getpid(), uid, uid)

    def getsockopt(self, *_):
        return self.credentials


def test_an_answer_of_the_user_database_holds_for_a_while_and_is_for_one_user(monkeypatch):
    asked = []
    monkeypatch.setattr(by_system.os, "getgrouplist", lambda user, gid: asked.append(user) or [gid])
    authority = Authority([f"%{grp.getgrgid(0).gr_name}"])
    first, other = (authority.credentials(Accepted(uid)) for uid in (5001, 5002))
    assert authority.known(first) is None
    peer = authority.look_up(first)
    assert (peer.user, peer.administrator, peer.pid) == ("5001", False, os.getpid())
    assert authority.known(first) == peer
    assert authority.known(other) is None
    once = len(asked)
    assert once
    authority.look_up(other)
    assert len(asked) == 2 * once
    monkeypatch.setattr(by_system, "REMEMBERED_S", -1.0)
    assert authority.known(first) is None


def test_nobody_is_asked_about_root_and_the_daemons_own_user(monkeypatch):
    authority = Authority([f"%{grp.getgrgid(0).gr_name}"])
    monkeypatch.delattr(by_system.os, "getgrouplist")
    monkeypatch.delattr(by_system.pwd, "getpwuid")
    for uid in {0, os.geteuid()}:
        peer = authority.known(authority.credentials(Accepted(uid)))
        assert (peer.administrator, peer.monitor, peer.setter) == (True, True, True)


def test_the_name_of_root_alone_makes_no_administrator_where_an_account_of_tls_has_it():
    authority = Authority([], has_accounts=True)
    assert authority.known_user("root", ()).is_administrator
    authority.accounts = lambda: {"root": Account("root")}
    assert not authority.known_user("root", ()).is_administrator
