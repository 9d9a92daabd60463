"""Who may come in, and who may change objects: as the kernel names the peer."""

import contextlib
import grp
import io
import os
import pickle
import pwd
import shutil
import tempfile
import traceback
from pathlib import Path

import pytest

import trigmon
from tests.daemons import define, queue_managers
from trigmon.cli.main import cli
from trigmon.server.authority import Authority

NOBODY = 65534


@pytest.fixture
def passable():
    """Makes daemons in homes that another user may pass through."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    homes = []

    def make_home():
        homes.append(tempfile.mkdtemp(prefix="trigmon-"))
        Path(homes[-1]).chmod(0o755)
        return homes[-1]

    with queue_managers(make_home) as make:
        yield make
    for home in homes:
        shutil.rmtree(home)


def as_nobody(work):
    """What ``work()`` returns or raises in a process of the user nobody."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            try:
                said = (work(), None)
            except Exception as error:
                said = (None, error)
            os.write(writer, pickle.dumps(said))
        except BaseException:
            traceback.print_exc()
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        value, error = pickle.load(pipe)
    os.waitpid(child, 0)
    if error:
        raise error
    return value


def test_who_is_not_in_the_sockets_group_does_not_come_in(passable):
    one = passable()
    with pytest.raises(trigmon.NotAuthorized):
        as_nobody(lambda: one.connect().drop())


@pytest.mark.parametrize("address", ["QM1", "unix"])
def test_who_is_kept_out_is_told_the_group_he_has_to_join(passable, monkeypatch, address):
    group = next(group for group in grp.getgrall() if group.gr_gid not in (0, NOBODY))
    one = passable(settings={"server.socket_group": group.gr_name})
    address = one.address if address == "unix" else address

    monkeypatch.setenv("TRIGMON_HOME", str(one.home))

    def status():
        with contextlib.redirect_stderr(io.StringIO()) as told, contextlib.redirect_stdout(io.StringIO()):
            try:
                cli(["--qmgr", address, "status"])
            except SystemExit as ended:
                return ended.code, told.getvalue()

    assert status()[0] == 0  # and all that it imports is there, also where nobody can read the files
    code, said = as_nobody(status)
    assert (code, f"usermod -aG {group.gr_name} nobody" in said) == (4, True), said
    assert "administration" not in said


def test_who_is_kept_out_by_root_alone_is_not_told_to_join_roots_group(passable):
    one = passable()
    with pytest.raises(trigmon.NotAuthorized, match=r"server\.socket_group"):
        as_nobody(lambda: one.connect().drop())


@pytest.mark.parametrize(("named", "said"), [("nosuch.user", "user 'nosuch.user'"), ("%nosuch", "group 'nosuch'")])
def test_an_administrator_nobody_knows_is_refused_at_the_start(daemon, named, said):
    one = daemon(start=False, settings={"server.administrators": named})
    assert one.launch().wait() == 2
    why = one.events("the queue manager cannot start")[0]["why"]
    assert why == f"server.administrators: there is no {said} on this machine"


def test_who_comes_in_may_put_and_get_but_not_define_and_the_denial_is_logged(passable):
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


def test_root_the_daemons_user_and_those_named_administer_and_nobody_else():
    alice = pwd.getpwall()[-1].pw_name
    authority = Authority([alice, "1234", f"%{grp.getgrgid(0).gr_name}"])
    assert authority.administers(0, 0, "root")
    assert authority.administers(os.geteuid(), 0, "whoever")
    assert authority.administers(5001, 5001, alice)
    assert authority.administers(1234, 5001, "bob")
    assert authority.administers(5001, 0, "in-group-root")
    assert not authority.administers(5001, 5001, "bob")
    assert not authority.administers(-1, -1, "")
