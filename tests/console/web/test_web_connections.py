"""Connections that come without the cookie: few, and not for long; the owner is served beside them."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack

import pytest

from tests.daemons import define
from tests.waiting import until
from trigmon.console.web.web_connections import MANY_STRANGERS, MOST_STRANGERS, REQUEST_S, SHORT_S, Places

HALF = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.fixture
def link_to():
    """Connects to a console, with something sent; closed at the end of the test."""
    with ExitStack() as stack:

        def link(web, sent=b""):
            made = stack.enter_context(socket.create_connection(web.host.rsplit(":", 1), 60))
            made.sendall(sent)
            return made

        yield link


def live(web, link_to):
    """Opens the live overview, and returns its lines."""
    request = f"GET /events/overview HTTP/1.1\r\nHost: {web.host}\r\nCookie: {web.cookie}\r\n\r\n"
    return link_to(web, request.encode()).makefile("r", encoding="utf-8")


@pytest.mark.parametrize("sent", [b"", HALF], ids=["idle", "half a request"])
def test_520_connections_of_others_do_not_keep_the_owner_out(reader, link_to, sent):
    reader.enter()
    others = [link_to(reader, sent) for _ in range(520)]
    assert reader.get("/runs").status == 200
    for other in others[: -MOST_STRANGERS - 1]:
        assert is_cut(other)
    assert reader.get("/").status == 200


def is_cut(link):
    try:
        return link.recv(1) == b""
    except ConnectionResetError:
        return True


def test_a_request_has_a_deadline_as_a_whole_and_a_live_page_has_none(reader, populated, link_to):
    reader.enter()
    lines = live(reader, link_to)
    began = time.monotonic()
    for slow in [link_to(reader, sent) for sent in (b"", HALF, HALF + b"Content-Length: 99\r\n\r\n")]:
        until(lambda slow=slow: not takes_a_byte(slow), timeout_s=10 * REQUEST_S)
    until(lambda: time.monotonic() > began + 1.2 * REQUEST_S)
    with populated.daemon.connect() as qm:
        define(qm, "LATECOMER")
    assert any("LATECOMER" in line for line in lines)


def takes_a_byte(link):
    """Sends a byte, which is to begin no new deadline; returns whether the connection is still there."""
    try:
        link.send(b"x")
    except OSError:
        return False
    return True


def test_a_form_whose_body_does_not_come_has_a_deadline_too(actor, link_to):
    actor.get("/")
    head = f"POST /actions/pause-queue HTTP/1.1\r\nHost: {actor.host}\r\nOrigin: http://{actor.host}\r\n"
    link = link_to(actor, f"{head}Cookie: {actor.cookie}\r\nContent-Length: 20\r\n\r\ncsrf=".encode())
    assert b" 408 " in link.recv(64)


def test_who_has_shown_the_cookie_is_not_cut_for_others(reader, populated, link_to):
    reader.enter()
    pages = [live(reader, link_to) for _ in range(20)]
    assert all("200 OK" in page.readline() for page in pages)
    for _ in range(2 * MOST_STRANGERS):
        link_to(reader)
    assert reader.get("/").status == 200
    with populated.daemon.connect() as qm:
        define(qm, "NEWCOMER")
    assert all(any("NEWCOMER" in line for line in page) for page in pages)


class Link:
    """A connection that only knows whether it was cut."""

    is_cut = False

    def cut(self):
        self.is_cut = True


def test_the_oldest_are_cut_which_had_time_to_show_the_cookie_or_where_very_many_come():
    places = Places()
    links = [Link() for _ in range(MOST_STRANGERS + 1)]
    for link in links[:MANY_STRANGERS]:
        places.take(link, 1.0)
    places.leave(links[0])
    for link in links[MANY_STRANGERS:-1]:
        places.take(link, 1.0)
    assert not any(link.is_cut for link in links)
    places.take(late := Link(), 1.0 + SHORT_S)
    assert [link.is_cut for link in links[:-1]] == [False, *[True] * (MOST_STRANGERS - MANY_STRANGERS), *[False] * 63]
    crowd = [Link() for _ in range(MOST_STRANGERS + 5)]
    for link in crowd:
        places.take(link, 2.0)
    assert late.is_cut
    assert [link.is_cut for link in crowd] == [True] * 5 + [False] * MOST_STRANGERS
