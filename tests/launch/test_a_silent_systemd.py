"""A keeper and a systemd that sends nothing, or closes: a process without work waits idle."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time

import pytest

from tests.waiting import until
from trigmon.keeper import dbus, systemd_bus, systemd_unit, systemd_units
from trigmon.keeper.keeper import Keeper
from trigmon.keeper.systemd_units import Unit

LOOKED_S = 0.5
FEW = 10
"""Looks in that time of one that rests."""


@pytest.fixture
def silent(tmp_path, monkeypatch):
    """The connections to a systemd that greets, and answers nothing."""
    path, connections = tmp_path / "private", []
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    monkeypatch.setattr(systemd_bus, "socket_path", lambda: path)

    def greet():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.recv(1 << 16)
            connection.sendall(b"OK 12\r\n")
            connections.append(connection)

    threading.Thread(target=greet, daemon=True).start()
    yield connections
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    for connection in connections:
        connection.close()


@pytest.fixture
def kept(tmp_path):
    """Makes a keeper that counts how often it looks, and has it serve in a thread; it ends by SIGTERM's number."""
    ends, keepers = [], []

    def make(linger_s):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(tmp_path / "keeper"))
        listener.listen()
        keeper = Keeper("Q.1.keeper", listener, linger_s)
        keepers.append(keeper)
        keeper._reap = lambda: None  # the children of this process are not its own: it would end them
        keeper.looks = 0
        select = keeper._selector.select

        def look(timeout):
            keeper.looks += 1
            return select(timeout)

        keeper._selector.select = look
        return keeper

    def serve(keeper):
        signals, wake_up = os.pipe2(os.O_NONBLOCK)
        thread = threading.Thread(target=keeper.serve, args=(signals,))
        thread.start()
        ends.append((wake_up, signals, thread))
        return thread

    yield make, serve
    for wake_up, signals, thread in ends:
        os.write(wake_up, bytes([signal.SIGTERM]))
        thread.join(10)
        os.close(wake_up)
        os.close(signals)
    for keeper in keepers:
        keeper.units()._lose()
        keeper._selector.close()
        keeper._listener.close()
        keeper._starts.close()


def looks(keeper):
    """How often it looks in a while."""
    before = keeper.looks
    time.sleep(LOOKED_S)
    return keeper.looks - before


def test_one_that_has_no_unit_rests_when_systemd_has_hung_up(silent, kept, monkeypatch, capfd):
    monkeypatch.setattr(systemd_units, "_TRY_AGAIN_S", 0.0)
    make, serve = kept
    keeper = make(60)
    keeper.units()._connected()
    serve(keeper)
    until(lambda: silent)
    silent[0].close()
    until(lambda: keeper.units()._manager is None)
    assert looks(keeper) < FEW


def test_one_that_waits_for_no_more_than_systemds_answer_rests(silent, kept, tmp_path, monkeypatch):
    monkeypatch.setattr(systemd_bus, "PATIENCE_S", 3 * LOOKED_S)
    make, serve = kept
    keeper = make(0)
    keeper.units()._connected()
    run = Unit(keeper.units(), "r", tmp_path, 0)
    keeper.units()._ended["r"] = run
    keeper.units().remove("r")
    thread = serve(keeper)
    assert looks(keeper) < FEW
    assert thread.is_alive()


def test_what_systemd_sent_last_is_read_to_its_end(silent, kept, tmp_path, capfd):
    """One unit has ended, which is removed by a call that fails, and behind that another is removed."""
    make, _ = kept
    keeper = make(0)
    theirs = keeper.units()
    manager = theirs._connected()
    until(lambda: silent)
    for name in ("ended", "there"):
        run = Unit(theirs, name, tmp_path, 0)
        run.is_started = True
        theirs._runs[run.path] = keeper._runs.by_id[name] = run
    properties = {"ActiveState": "inactive", "SubState": "dead", "ExecMainCode": 1}
    wanted = [
        dbus.Message(
            dbus.SIGNAL,
            ("org.freedesktop.systemd1.Unit", properties),
            systemd_unit.object_path(systemd_unit.name_of("ended")),
            member="PropertiesChanged",
        ),
        dbus.Message(
            dbus.SIGNAL,
            (systemd_unit.name_of("there"), systemd_unit.object_path(systemd_unit.name_of("there"))),
            member="UnitRemoved",
        ),
    ]
    manager._signals += wanted
    silent[0].close()
    theirs._receive()
    assert theirs._manager is None
    assert set(keeper._runs.by_id) == {"there"}
