"""A real master whose REST server asks for a token, by Spark's own filter."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets

import pytest

from tests.spark.clusters import Cluster
from trigmon.launch.spark.cluster import rest_api

pytestmark = [pytest.mark.spark]
FILTER = "org.apache.spark.ui.JWSFilter"


def encoded(raw):
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def token(key):
    """A JSON web signature (RFC 7515) of nothing in particular."""
    signed = f"{encoded(json.dumps({'alg': 'HS256', 'typ': 'JWT'}).encode())}.{encoded(b'{}')}"
    return f"{signed}.{encoded(hmac.digest(key, signed.encode(), hashlib.sha256))}"


def test_a_client_that_has_the_token_is_heard_and_no_other(tmp_path):
    key = secrets.token_bytes(32)
    wanted = [f"-Dspark.master.rest.filters={FILTER}", f"-Dspark.{FILTER}.param.secretKey={encoded(key)}"]
    with Cluster(tmp_path, workers=0, settings=wanted) as cluster:
        address = [f"http://{cluster.host}:{cluster.rest}"]
        with pytest.raises(rest_api.RefusedError, match="403"):
            rest_api.Master(address, []).status("driver-1")
        with pytest.raises(rest_api.RefusedError, match="403"):
            rest_api.Master(address, [], token(secrets.token_bytes(32))).create(["x.py"], {}, {})
        assert rest_api.Master(address, [], token(key)).status("driver-1").state == ""
