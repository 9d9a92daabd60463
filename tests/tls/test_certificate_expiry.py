"""Until when a client's own certificate is valid, as the standard library alone reads it."""

import datetime

import pytest

from trigmon.tls.certificate_expiry import expiry
from trigmon.tls.certificates import make_authority, make_certificate, not_after

NOW = datetime.datetime(2026, 5, 6, 7, 8, 9, tzinfo=datetime.UTC)


@pytest.mark.parametrize("days", [1, 397, 8_500, 20_000])  # of one that ends behind 2049 the year has four digits
def test_it_is_the_day_and_second_that_the_certificate_names(tmp_path, days):
    authority = make_authority("ours", NOW, days)
    for name, pair in {"ca": authority, "alice": make_certificate(authority, "alice", (), NOW, days)}.items():
        certificate = tmp_path / f"{name}.crt"
        pair.save(certificate, tmp_path / f"{name}.key")
        assert expiry(certificate) == not_after(certificate) == NOW + datetime.timedelta(days=days)
        certificate.write_text(f"what stands before it\n{certificate.read_text()}{(tmp_path / 'ca.crt').read_text()}")
        assert expiry(certificate) == NOW + datetime.timedelta(days=days)


@pytest.mark.parametrize(
    "text", ["", "no certificate", "BEGIN\nMAUwAwIBAQ==\nEND", "BEGIN\nMA==\nEND", "BEGIN\nx\nEND"]
)
def test_what_is_no_certificate_has_none(tmp_path, text):
    file = tmp_path / "alice.crt"
    file.write_text(text.replace("BEGIN", "-----BEGIN CERTIFICATE-----").replace("END", "-----END CERTIFICATE-----"))
    assert expiry(file) is None
    assert expiry(tmp_path / "nowhere.crt") is None
