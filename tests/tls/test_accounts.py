"""The file of accounts: what is written is read, and what is not understood is refused by file and entry."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trigmon.tls import accounts, passwords
from trigmon.tls.accounts import Account
from trigmon.tls.contexts import TlsFileError

HASH = passwords.hashed("x")
NAMES = st.text(string.ascii_letters, min_size=1, max_size=12)
SUBJECTS = st.text(st.characters(exclude_categories=["C"]), min_size=1, max_size=30).map(lambda text: f"CN={text}")


@given(
    st.lists(
        st.builds(
            Account,
            user=NAMES,
            password=st.sampled_from(["", HASH]),
            certificates=st.lists(SUBJECTS, max_size=3, unique=True).map(tuple),
            groups=st.lists(NAMES, max_size=3).map(tuple),
        ),
        unique_by=lambda account: account.user,
        max_size=5,
    )
)
def test_what_is_written_is_read(tmp_path_factory, known):
    names = [name for account in known for name in account.certificates]
    path = tmp_path_factory.mktemp("tls") / "users.yaml"
    if len(set(names)) < len(names):
        with pytest.raises(TlsFileError, match="twice"):
            accounts.write(path, known)
        assert not path.exists()
    else:
        accounts.write(path, known)
        assert list(accounts.read(path).by_user.values()) == known


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("- user: a b", "no user's name"),
        ("- name: a", "and nothing else"),
        ("user: a", "list of users"),
        ("- user: a\n  password: secret", "is no hash"),
        ("- user: a\n  password: 'scrypt:1073741824:8:1:AAAA:AAAA'", "is no hash"),
        ("- user: a\n  certificates: CN=a", "lists of texts"),
        ("- user: a\n  certificates: [a]", "neither a subject"),
        ("- user: a\n- user: a", "a is there twice"),
        ("- user: [", "users.yaml"),
        ("", "it is empty"),
        ("# Users who may come by TLS", "it is empty"),
    ],
)
def test_a_wrong_file_is_refused_with_the_reason(tmp_path, text, why):
    path = tmp_path / "users.yaml"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(TlsFileError, match=why):
        accounts.read(path)


def test_a_subject_is_written_in_its_order_with_what_divides_it_escaped():
    certificate = {"subject": ((("organizationName", "A, B"),), (("commonName", "x=y"),))}
    assert accounts.subject(certificate) == r"O=A\, B,CN=x\=y"


def test_a_fingerprint_comes_before_a_subject():
    known = accounts.Accounts(
        [Account("one", certificates=("CN=a",)), Account("two", certificates=(accounts.fingerprint(b"der"),))]
    )
    certificate = {"subject": ((("commonName", "a"),),)}
    assert known.of_certificate(certificate, b"der").user == "two"
    assert known.of_certificate(certificate, b"other").user == "one"
    assert known.of_certificate({}, b"other") is None


def test_a_password_is_right_for_its_own_hash_alone():
    assert passwords.is_right("x", HASH)
    assert not passwords.is_right("y", HASH)
    assert not passwords.is_right("", HASH)
    assert not passwords.is_right("x", "")
    assert passwords.hashed("x") != HASH
    assert not passwords.is_right("x", passwords.of_nobody())
