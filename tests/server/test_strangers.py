"""The places of connections by TLS that have not proved a user."""

from functools import partial

from trigmon.server.connection_limits import Clients
from trigmon.server.peer_identity import BY_TLS, Peer
from trigmon.server.strangers import Strangers


class Silent:
    """A connection that has said nothing yet."""

    disconnected, session = False, None

    def __init__(self, address):
        self.peer = Peer(uid=BY_TLS, address=address)


def test_where_all_places_are_taken_the_oldest_of_the_address_with_the_most_is_ended():
    strangers = Strangers(most=3)
    ended = []
    links = [Silent(f"{host}:{port}") for port, host in enumerate(["10.0.0.9", "10.0.0.7", "10.0.0.7", "10.0.0.7"])]
    told = [strangers.take(link, partial(ended.append, link)) for link in links]
    assert (told, ended, len(strangers)) == (["", "", "", "10.0.0.7"], [links[1]], 3)
    for port in range(100, 200):
        link = Silent(f"10.0.0.7:{port}")
        assert strangers.take(link, partial(ended.append, link)) == "10.0.0.7"
    assert links[0] not in ended


def test_the_addresses_of_one_network_of_ipv6_are_one():
    strangers = Strangers(most=3)
    ended = []
    for number, host in enumerate(["2001:db8:1::1", "2001:db8:2::1", "2001:db8:2::2", "2001:db8:3::1"]):
        strangers.take(Silent(f"[{host}]:{number}"), partial(ended.append, host))
    assert ended == ["2001:db8:2::1"]


def test_who_has_proved_a_user_or_has_gone_has_no_place_there_and_strangers_take_none_of_others():
    clients = Clients(None, 2, "1")
    links = [Silent(f"10.0.0.7:{port}") for port in range(100)]
    for link in links:
        clients.strangers.take(link, lambda: None)
        clients.expect(link)
        clients.began(link)
    assert clients.may_enter(Peer(uid=1000, user="alice"))
    assert clients.identified(links[0], Peer(user="bob"))
    clients.gone(links[1])
    clients.gone(links[1])
    assert len(clients.strangers) == 98
