"""The key of a driver's page: made once, for its owner's eyes, and shown as a token."""

from __future__ import annotations

import base64
import json

from trigmon.launch.spark.cold import web_page


def test_a_key_is_kept_in_a_file_that_only_its_user_may_read(tmp_path):
    file = tmp_path / "spark" / "page.properties"
    assert web_page.key_in(file) == ""
    key = web_page.kept(file)
    assert web_page.kept(file) == web_page.key_in(file) == key
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert [each.name for each in file.parent.iterdir()] == [file.name]


def test_a_file_that_holds_no_key_is_made_anew(tmp_path):
    (tmp_path / "page.properties").write_text("spark.ui.filters=x\n")
    assert web_page.kept(tmp_path / "page.properties")


def test_the_token_is_a_signature_by_the_key():
    key = web_page.new_key()
    header, claims, signature = web_page.headers(key)["Authorization"].removeprefix("Bearer ").split(".")
    assert json.loads(base64.urlsafe_b64decode(header + "==")) == {"alg": "HS256"}
    assert (claims, len(signature)) == ("e30", 43)
    assert web_page.headers(web_page.new_key())["Authorization"] != web_page.headers(key)["Authorization"]
    assert web_page.headers("") == {}
