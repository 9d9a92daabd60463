"""The settings' layers, and what is refused."""

import re

import pytest

from trigmon import paths, settings


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Settings from a file's text, variables and the command line."""
    monkeypatch.setattr(settings, "SYSTEM_CONFIG", tmp_path / "etc.yaml")

    def make(text=None, environ=None, overrides=None, system=None):
        file = tmp_path / "ours.yaml"
        if text is not None:
            file.write_text(text)
        if system is not None:
            (tmp_path / "etc.yaml").write_text(system)
        return settings.load(overrides, file if text is not None else None, environ or {})

    return make


def refused(load, **layers):
    """Returns the problems of layers that cannot be used."""
    with pytest.raises(settings.SettingsError) as raised:
        load(**layers)
    return raised.value.problems


def test_each_layer_is_stronger_than_the_one_before_and_known_as_the_origin(load, tmp_path):
    key = "qmgr.name"
    layers = {
        "system": "qmgr: {name: A}",
        "text": "# ours\nqmgr:\n  name: B\n",
        "environ": {"TRIGMON_QMGR_NAME": "C"},
        "overrides": {key: "D", "qmgr.data": None},
    }
    collected = []
    given = {}
    for layer, value in layers.items():
        given[layer] = value
        found = load(**given)
        collected.append((found.qmgr.name, found.origin(key)))
    assert collected == [
        ("A", f"{tmp_path}/etc.yaml:1"),
        ("B", f"{tmp_path}/ours.yaml:3"),
        ("C", "environment TRIGMON_QMGR_NAME"),
        ("D", "command line"),
    ]
    assert load().origin("qmgr.data").startswith(str(paths.shipped("config")))


def test_the_shipped_file_shows_every_key_with_its_reason_and_no_other():
    lines = (paths.shipped("config") / "trigmon.yaml").read_text().splitlines()
    found, section = set(), ""
    for before, line in zip(["", *lines], lines, strict=False):
        if match := re.match(r"(\w+):$", line):
            section = match[1]
        elif match := re.match(r"  (\w+):", line):
            found.add(f"{section}.{match[1]}")
            assert before.startswith("  #"), f"{section}.{match[1]} has no reason"
    assert found == set(settings.KEYS)


def test_the_shipped_file_is_read_by_itself(load):
    assert {key for key, _, _ in load().rows()} == set(settings.KEYS)


def test_an_unknown_key_is_refused_with_file_line_and_the_nearest_known_one(load, tmp_path):
    text = "server:\n  tpc: x\nservr: {}\nqmgr:\n  name: Q\n  dta: x\n"
    assert refused(load, text=text) == [
        f"{tmp_path}/ours.yaml:2: unknown key 'tpc'; the nearest known one is 'tcp'",
        f"{tmp_path}/ours.yaml:3: unknown key 'servr'; the nearest known one is 'server'",
        f"{tmp_path}/ours.yaml:6: unknown key 'dta'; the nearest known one is 'data'",
    ]


@pytest.mark.parametrize("name", ["TRIGMON_SERVER_TPC", "TRIGMON_SERVR_TCP"])
def test_an_unknown_variable_is_refused_with_the_nearest_known_one(load, name):
    (problem,) = refused(load, environ={name: "x"})
    assert name in problem
    assert "TRIGMON_SERVER_TCP" in problem


@pytest.mark.parametrize("name", ["TRIGMON_RUN", "TRIGMON_TMC", "TRIGMON_QNAME", "TRIGMON_HOME", "PATH"])
def test_variables_that_are_no_settings_are_left_alone(load, name):
    assert load(environ={name: "x"})


def test_a_variable_with_our_name_and_no_meaning_is_left_alone(load):
    assert load(environ={"TRIGMON_PORT_1414_TCP": "x"})


def test_trigmon_qmgr_names_the_queue_manager_unless_it_is_an_address(load):
    assert load(environ={"TRIGMON_QMGR": "QM7"}).qmgr.name == "QM7"
    assert load(environ={"TRIGMON_QMGR": "unix:/x/y"}).qmgr.name == "QM1"
    assert load(environ={"TRIGMON_QMGR": "QM7", "TRIGMON_QMGR_NAME": "QM8"}).qmgr.name == "QM8"


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("server.socket_mode", "0660", 0o660),
        ("server.socket_mode", "660", 0o660),
        ("server.socket_mode", "'0600'", 0o600),
        ("store.disk_reserve", "64 MiB", 64 * 2**20),
        ("store.disk_reserve", "1GB", 10**9),
        ("store.disk_reserve", "1.5 kB", 1500),
        ("store.disk_reserve", "4096", 4096),
        ("server.administrators", "[alice, 1000, '%ops']", ["alice", "1000", "%ops"]),
        ("server.administrators", "[0100]", ["0100"]),
        ("server.tcp", "'[::1]:1414'", "[::1]:1414"),
        ("qmgr.name", "0123", "0123"),
        ("qmgr.name", "1.10", "1.10"),
        ("server.hello_timeout_s", "1", 1.0),
        (
            "monitor.environment",
            "[AWS_REGION, 'KRB5CCNAME=/a b=c', EMPTY=]",
            ["AWS_REGION", "KRB5CCNAME=/a b=c", "EMPTY="],
        ),
    ],
)
def test_a_value_is_read_as_it_is_meant(load, key, text, value):
    section, _, name = key.partition(".")
    found = load(text=f"{section}:\n  {name}: {text}\n")
    assert getattr(getattr(found, section), name) == value


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        ("server.socket_mode", "0432", "owner"),
        ("server.socket_mode", "0o660", "owner"),
        ("server.socket_mode", "0777", "execute"),
        ("server.socket_mode", "rw-rw----", "mode"),
        ("store.disk_reserve", "much", "size"),
        ("store.disk_reserve", "-1", "greater"),
        ("server.tcp", "0.0.0.0:1414", "loopback"),
        ("server.tcp", "example.org:1414", "address"),
        ("server.tcp", "127.0.0.1", "HOST:PORT"),
        ("server.max_connections", "'5'", "integer"),
        ("server.hello_timeout_s", "0", "greater"),
        ("qmgr.name", "a b", "name"),
        ("qmgr.name", "[A]", "string"),
        ("log.level", "loud", "'debug'"),
        ("log.level", "on", "'debug'"),
        ("monitor.environment", "['1A']", "NAME=value"),
        ("monitor.environment", "['A B=x']", "NAME=value"),
        ("monitor.environment", "['=x']", "NAME=value"),
    ],
)
def test_a_wrong_value_is_refused_with_its_place_and_what_is_allowed(load, tmp_path, key, text, words):
    section, _, name = key.partition(".")
    (problem,) = refused(load, text=f"\n{section}:\n  {name}: {text}\n")
    assert problem.startswith(f"{tmp_path}/ours.yaml:3: {key}: ")
    assert words in problem


def test_a_wrong_variable_is_refused_by_its_name(load):
    (problem,) = refused(load, environ={"TRIGMON_MONITOR_INSTANCES": "many"})
    assert problem.startswith("environment TRIGMON_MONITOR_INSTANCES: monitor.instances: ")


def test_a_bridge_has_a_name_of_the_users_and_stands_in_the_strongest_file_in_full(load, tmp_path):
    loaded = load(
        text="bridges:\n  PROD:\n    queue_manager: 012\n    key_repository: keys/prod\n    batch: 7\n",
        system="bridges:\n  TEST:\n    queue_manager: T\n    ccdt: https://mq.example.com/c.json\n"
        "  PROD:\n    queue_manager: P\n    wait_s: 9\n",
    )
    prod = loaded.bridges["PROD"]
    assert (prod.queue_manager, prod.key_repository, prod.batch) == ("012", str(tmp_path / "keys/prod"), 7)
    assert prod.wait_s != 9
    assert loaded.bridges["TEST"].ccdt == "https://mq.example.com/c.json"
    assert loaded.origin("bridges.TEST") == f"{tmp_path}/etc.yaml:2"
    assert {"bridges.TEST", "bridges.PROD"} < {key for key, _, _ in loaded.rows()}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("PROD:\n    bath: 3", "unknown key 'bath'; the nearest known one is 'batch'"),
        ("PROD:\n    batch: 3", "bridges.PROD.queue_manager: it is missing"),
        ("PROD:\n    queue_manager: P\n    mqserver: mq.example.com", "is no CHANNEL/TCP/host(port)"),
        ("PROD:\n    queue_manager: P\n    mqserver: A/TCP/h(1)\n    ccdt: x.json", "two ways to one queue manager"),
        ("PROD:\n    queue_manager: P\n    ccdt: x.json\n    cipher_spec: ANY_TLS12", "cipher_spec goes with mqserver"),
        ("PROD:\n    queue_manager: P\n    user: app", "user and password_secret go together"),
        ("PROD:\n    queue_manager: P\n    password_secret: ../x", "bridges.PROD.password_secret: string should match"),
        ("A B:\n    queue_manager: P", "'A B' is no name of a bridge"),
        ("PROD: P", "'PROD' is a mapping of queue_manager"),
    ],
)
def test_a_wrong_bridge_is_refused_with_its_place_and_what_is_allowed(load, tmp_path, text, words):
    problems = refused(load, text=f"bridges:\n  {text}\n")
    assert any(words in problem for problem in problems), problems
    assert all(re.match(rf"{re.escape(str(tmp_path))}/ours.yaml:[23]: ", problem) for problem in problems), problems


@pytest.mark.parametrize("text", ["- a\n", "server: 5\n", "a: b: c\n"])
def test_a_file_that_is_no_settings_is_refused_with_its_line(load, tmp_path, text):
    (problem,) = refused(load, text=text)
    assert problem.startswith(f"{tmp_path}/ours.yaml:1: ")


@pytest.mark.parametrize("expected", ["postgres: dbname=d", "postgres_schema: s", "lease_s: 9", "accept_loss: true"])
def test_a_setting_of_a_group_without_its_name_is_refused_since_nothing_would_read_it(load, tmp_path, expected):
    key = expected.partition(":")[0]
    (problem,) = refused(load, text=f"group:\n  {expected}\n")
    assert problem.startswith(f"{tmp_path}/ours.yaml:2: group.{key}: there is no group.name")
    assert "set that, or take this out" in problem
    assert load(f"group:\n  name: QSG1\n  {expected}\n").group.name == "QSG1"


def test_a_setting_of_a_group_without_its_name_is_refused_from_any_layer(load):
    (problem,) = refused(load, environ={"TRIGMON_GROUP_POSTGRES_SCHEMA": "s"})
    assert problem.startswith("environment TRIGMON_GROUP_POSTGRES_SCHEMA: group.postgres_schema: there is no group")


def test_a_copy_of_the_shipped_file_says_nothing_of_a_group(load):
    assert load((paths.shipped("config") / "trigmon.yaml").read_text()).group.name is None


def test_a_file_that_is_not_there_is_refused_by_name(load, tmp_path):
    (problem,) = refused(load, environ={"TRIGMON_CONFIG": str(tmp_path / "none.yaml")})
    assert problem == f"TRIGMON_CONFIG={tmp_path}/none.yaml: No such file or directory"


def test_relative_paths_are_meant_from_the_file_they_stand_in(load, tmp_path, monkeypatch):
    assert load(text="qmgr: {definitions: [a.yaml, /b], data: d}\n").qmgr.definitions == [f"{tmp_path}/a.yaml", "/b"]
    monkeypatch.chdir("/tmp")
    assert load(environ={"TRIGMON_QMGR_DEFINITIONS": "a.yaml, b"}).qmgr.definitions == ["/tmp/a.yaml", "/tmp/b"]

    ours = load(text="monitor: {run_as_file: users, secrets_directory: safe}\n").monitor
    assert (ours.run_as_file, ours.secrets_directory) == (f"{tmp_path}/users", f"{tmp_path}/safe")


def test_a_blank_path_is_no_path(load):
    assert load(text="qmgr: {data: ''}\n").qmgr.data == ""


def test_what_the_command_line_sets_reaches_a_child_process(load):
    ours = load(overrides={"qmgr.data": "/x", "monitor.instances": 3, "server.administrators": ["a", "b"]})
    theirs = load(environ=ours.as_environment())
    assert (theirs.qmgr.data, theirs.monitor.instances, theirs.server.administrators) == ("/x", 3, ["a", "b"])


def test_a_mode_is_shown_as_it_is_written(load):
    assert {key: value for key, value, _ in load().rows()}["server.socket_mode"] == "0660"
