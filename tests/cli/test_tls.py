"""``trigmon tls``: what it makes, and what it refuses."""

import json
import ssl
import sys

import pytest

import trigmon.tls
from tests.cli.conftest import run_cli
from trigmon.tls import accounts, passwords


@pytest.fixture
def run(daemon):
    """Runs ``trigmon tls`` beside a queue manager that has been started once; returns status, output and error."""
    one = daemon()
    one.stop()

    def do(*arguments, **more):
        ended = one.trigmon("tls", *arguments, **more)
        return ended.returncode, ended.stdout, ended.stderr

    do.directory = one.data / "tls"
    return do


def test_what_is_made_is_for_its_owner_and_made_once(run):
    status, _, why = run("make")
    assert (status, "--host" in why) == (2, True)
    assert run("make", "--host", "localhost", "--host", "::1")[0] == 0
    assert {path.name: path.stat().st_mode & 0o777 for path in run.directory.iterdir()} == {
        "authority.crt": 0o644,
        "authority.key": 0o600,
        "server.crt": 0o644,
        "server.key": 0o600,
        "users.yaml": 0o600,
    }
    assert run.directory.stat().st_mode & 0o777 == 0o700
    status, _, why = run("make", "--host", "localhost")
    assert (status, "--renew" in why) == (2, True)


def test_a_renewed_certificate_is_for_the_same_hosts_by_the_same_authority(run):
    run("make", "--host", "localhost", "--host", "10.0.0.5")
    before = (run.directory / "server.crt").read_text()
    status, said, _ = run("make", "--renew", "--days", "30", "--output", "json")
    assert status == 0
    assert json.loads(said)["hosts"] == ["localhost", "10.0.0.5"]
    assert (run.directory / "server.crt").read_text() != before == (run.directory / "server.crt.before").read_text()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(run.directory / "server.crt", run.directory / "server.key")


def test_a_user_gets_certificate_password_and_groups_and_goes(run, tmp_path):
    run("make", "--host", "localhost")
    assert run("user", "alice", "--certificate", "--directory", str(tmp_path / "a"))[0] == 0
    assert {path.name for path in (tmp_path / "a").iterdir()} == {
        "alice.crt",
        "alice.key",
        "authority.crt",
        "client.ini",
    }
    assert run("user", "alice", "--password", "--group", "ops", input="secret\n")[0] == 0
    (alice,) = accounts.read(run.directory / "users.yaml").by_user.values()
    ours = ssl.PEM_cert_to_DER_cert((tmp_path / "a" / "alice.crt").read_text())
    assert (alice.certificates, alice.groups) == ((accounts.fingerprint(ours),), ("ops",))
    assert passwords.is_right("secret", alice.password)
    _, shown, _ = run("show")
    assert "alice" in shown
    assert alice.password not in shown
    assert run("user", "alice", "--remove")[0] == 0
    assert not accounts.read(run.directory / "users.yaml").by_user


@pytest.mark.parametrize(
    ("arguments", "given", "why"),
    [
        (["user", "alice"], "", "say how the user comes"),
        (["user", "alice", "--remove"], "", "has no user alice"),
        (["user", "alice", "--password"], "\n", "an empty password is none"),
        (["user", "bob", "--subject", "bob"], "", "'bob' is neither a subject, as CN=alice, nor sha256: and 64 digits"),
        (["user", "a b", "--certificate", "--directory", "client"], "", "'a b' is no user's name"),
        (["user", "bob", "--subject", "CN=known"], "", "CN=known is there twice"),
        (
            ["make", "--renew", "--host", "b\u00e4d"],
            "",
            "nor an address: --host mq1.example.com",
        ),
        (["make", "--renew", "--host", ""], "", "is neither a host's name nor an address"),
    ],
)
def test_a_wrong_use_is_refused_with_the_remedy_and_changes_nothing(run, tmp_path, arguments, given, why):
    run("make", "--host", "localhost")
    run("user", "known", "--subject", "CN=known")
    before = {path: path.read_bytes() for path in run.directory.iterdir()}
    status, _, said = run(*arguments, input=given, cwd=tmp_path)
    assert (status in (1, 2), why in said, "Traceback" in said) == (True, True, False)
    assert {path: path.read_bytes() for path in run.directory.iterdir()} == before
    assert not list(tmp_path.glob("client/*"))


def test_the_first_certificate_too_is_made_whole_or_not_at_all(run):
    status, _, said = run("make", "--host", "a b")
    assert (status, "'a b' is neither a host's name nor an address" in said) == (1, True)
    assert run("make", "--host", f"{'a' * 60}.example.com", "--host", "*.example.com")[0] == 0
    assert "*.example.com" in run("make", "--renew", "--output", "json")[1]


def test_a_certificate_that_was_lost_stays_out_when_its_user_gets_another_one(run, tmp_path):
    run("make", "--host", "*.example.com", "--host", "localhost")
    for at in ("old", "new"):
        assert run("user", "alice", "--certificate", "--directory", str(tmp_path / at))[0] == 0
        if at == "old":
            assert run("user", "alice", "--remove")[0] == 0
    known = accounts.read(run.directory / "users.yaml")
    old, new = (ssl.PEM_cert_to_DER_cert((tmp_path / at / "alice.crt").read_text()) for at in ("old", "new"))
    certificate = {"subject": ((("commonName", "alice"),),)}
    assert known.of_certificate(certificate, old) is None
    assert known.of_certificate(certificate, new).user == "alice"
    assert "address = tls://localhost:1415" in (tmp_path / "new" / "client.ini").read_text()
    status, _, said = run("user", "alice", "--certificate", "--directory", str(tmp_path / "new"))
    assert (status, "--directory names another place" in said) == (2, True)


def test_a_user_before_the_files_are_made_is_one_sentence(run):
    status, _, said = run("user", "alice", "--password", input="x\n")
    assert status == 2
    assert "users.yaml: there is no such file yet: trigmon tls make" in said
    assert "Traceback" not in said


def test_without_the_extra_its_name_is_the_answer(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    monkeypatch.delitem(sys.modules, "trigmon.tls.certificates", raising=False)
    monkeypatch.delattr(trigmon.tls, "certificates", raising=False)
    shown = run_cli("tls", "show")
    assert (shown.exit_code, shown.stdout) == (1, "")
    assert shown.stderr == "trigmon: certificates need the package cryptography: pip install 'trigmon[tls]'\n"


def test_what_needs_what_make_makes_says_so(run, tmp_path):
    client = ("user", "alice", "--certificate", "--directory", str(tmp_path / "a"))
    for arguments, missing in (
        (("make", "--renew"), "authority.crt"),
        (client, "users.yaml"),
        (("show",), "users.yaml"),
    ):
        status, _, why = run(*arguments)
        assert status == 2
        assert f"{run.directory / missing}: there is no such file yet: trigmon tls make --host NAME makes it" in why
    run("make", "--host", "localhost")
    (run.directory / "authority.key").unlink()
    assert "authority.key: there is no such file yet" in run(*client)[2]
