import os

import pytest

import trigmon


@pytest.fixture(autouse=True)
def _no_run(monkeypatch):
    for name in [name for name in os.environ if name.startswith("TRIGMON_")]:
        monkeypatch.delenv(name)


def test_a_program_no_trigger_started_has_no_trigger_message():
    assert trigmon.triggered() is None


def test_naming_a_queue_manager_makes_nobody_triggered(monkeypatch):
    monkeypatch.setenv("TRIGMON_QMGR", "QM1")
    assert trigmon.triggered() is None


def test_a_triggered_program_finds_what_it_was_started_for(monkeypatch):
    said = {
        "TRIGMON_QMGR": "QM1",
        "TRIGMON_QNAME": "FLIGHTS.IN",
        "TRIGMON_PROCESS": "FLIGHTS.LOAD",
        "TRIGMON_TRIGDATA": "daily",
        "TRIGMON_USERDATA": "table=flights",
        "TRIGMON_ENVDATA": "&",
        "TRIGMON_OCCASION": "12",
        "TRIGMON_RUN": "run-1",
    }
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    assert trigmon.triggered() == trigmon.Triggered(
        q_mgr_name="QM1",
        q_name="FLIGHTS.IN",
        process_name="FLIGHTS.LOAD",
        trigger_data="daily",
        user_data="table=flights",
        env_data="&",
        occasion="12",
        run_id="run-1",
    )
