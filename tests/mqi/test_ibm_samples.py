"""IBM's samples of the npm package ``ibmmq``, and its examples in Python, fetched for the run and played unchanged."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.daemons import define
from tests.mqi.ibm_suite import VERSION, fetched

pytestmark = pytest.mark.slow
NODE_VERSION = "2.1.9"
NODE_SAMPLES = {
    "amqsput": "MQPUT successful",
    "amqsputp": "MQPUT successful",
    "amqsget": "message: Hello",
    "amqsgeta": "message: Hello",
    "amqsgetac": "Commit OK",
    "amqsbra": "message: Hello",
    "amqsinq": 'qmgrName = "QM1"',
    "amqsset": "MQSET of queue successful",
    "amqsprop": "MQDLTMH successful",
    "amqsdlh": "MQPUT successful",
    "amqsconn": "MQDISC successful",
    "amqsconntls": "MQDISC successful",
}
"""With what each one writes. The others are about topics, and about a server of tokens."""
OF_THE_QUEUE_MANAGER = ("amqsinq", "amqsconn", "amqsconntls")
PYTHON_EXAMPLES = {
    **dict.fromkeys(("alternate_user_id", "async_consume", "connect_client_tls", "def_queue", "dis_conns"), "Done."),
    **dict.fromkeys(("dis_queues", "dis_queues_extended", "dynamic_queues", "get_message", "inq_set"), "Done."),
    **dict.fromkeys(("message_priority", "put1_message", "put_async_message", "put_message"), "Done."),
    **dict.fromkeys(("connect_client", "connect_client_creds", "connect_simple"), "Connection succeeded"),
    **dict.fromkeys(("get_wait_multiple_messages", "get_wait_single_message"), "b'Hello'"),
    "message_properties": "",
    "is_connected": "",
    "checking_cc_and_rc": "MQRC_HOST_NOT_AVAILABLE",
    "dlq_browse": "No more messages.",
}
WITHOUT_A_MESSAGE = ("message_properties",)


@pytest.fixture(scope="module")
def node_samples(tmp_path_factory):
    """The folder of the samples in the npm package, installed without its scripts: those fetch IBM's library."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("there is no node with npm")
    place = tmp_path_factory.mktemp("npm")
    command = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", f"ibmmq@{NODE_VERSION}"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"the registry does not give ibmmq: {done.stderr[-200:]}")
    return place / "node_modules" / "ibmmq" / "samples"


@pytest.fixture(scope="module")
def python_examples(tmp_path_factory):
    """The folder of the examples in the source distribution."""
    if find_spec("ibmmq") is None:
        pytest.skip("ibmmq has no wheel for this machine")
    try:
        return fetched(tmp_path_factory.mktemp("ibmmq")).parent / "examples"
    except subprocess.CalledProcessError:
        pytest.skip(f"the index does not give the source of ibmmq {VERSION}")


@pytest.fixture(scope="module")
def queues(shared_daemon):
    """What the samples expect: DEV.QUEUE.1 to 3 and a model queue."""
    with shared_daemon.connect() as qm:
        for number in (1, 2, 3):
            define(qm, f"DEV.QUEUE.{number}")
        define(qm, "DEV.APP.MODEL.QUEUE", "QMODEL")


@pytest.fixture
def play(shared_daemon, queues, tmp_path, library_directory):
    """Runs a program on the C library; returns its exit status and all that it wrote."""

    def run(*command):
        env = shared_daemon.env | {"LD_LIBRARY_PATH": str(library_directory), "PYTHONWARNINGS": "ignore"}
        done = subprocess.run(
            [str(part) for part in command], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120
        )
        return done.returncode, done.stdout + done.stderr

    return run


@pytest.mark.parametrize("name", NODE_SAMPLES)
def test_a_sample_of_the_npm_package_ends_well(node_samples, play, q_name, qm, name):
    qm.put(q_name, b"Hello")
    arguments = ["QM1"] if name in OF_THE_QUEUE_MANAGER else [q_name, "QM1"]
    status, written = play("node", node_samples / f"{name}.js", *arguments)
    assert status == 0, written
    assert NODE_SAMPLES[name] in written
    assert "MQ call failed" not in written


def test_a_sample_of_the_npm_package_comes_by_tls(node_samples, served, site, library_directory, tmp_path):
    """Node has functions of OpenSSL in its own program: the library must not meet those."""
    keys = "authority = authority.crt\ncertificate = alice.crt\nkey = alice.key\n"
    (site.directory / "client.ini").write_text(f"[QM1]\naddress = tls://localhost:{site.port}\n{keys}")
    elsewhere = {"TRIGMON_HOME": str(tmp_path), "TRIGMON_CLIENT_FILE": str(site.directory / "client.ini")}
    env = served.env | elsewhere | {"LD_LIBRARY_PATH": str(library_directory)}
    argv = ["node", node_samples / "amqsput.js", "Q", "QM1"]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    with served.connect() as qm, qm.open("Q", "input_shared") as queue:
        assert queue.get().user_identifier == "alice"


@pytest.mark.parametrize("on", ["the C library", "trigmon.mqi"])
@pytest.mark.parametrize("name", PYTHON_EXAMPLES)
def test_an_example_in_python_ends_well(python_examples, play, qm, name, on):
    with qm.open("DEV.QUEUE.1", "input_shared") as queue:
        list(queue.drain())
    if name not in WITHOUT_A_MESSAGE:
        qm.put("DEV.QUEUE.1", b"Hello")
    instead = ["-m", "trigmon.mqi"] if on == "trigmon.mqi" else []
    status, written = play(sys.executable, *instead, python_examples / f"{name}.py")
    assert status == 0, written
    assert PYTHON_EXAMPLES[name] in written
