"""How long the next password of an address waits."""

import pytest

from trigmon.server.password_guesses import FORGOTTEN_S, LONGEST_S, Guesses, network


def test_behind_three_wrong_passwords_each_next_waits_twice_as_long_up_to_a_limit():
    guesses = Guesses()
    waits = []
    for _ in range(12):
        waits.append(guesses.wait_s("10.0.0.1", 0.0))
        guesses.was_wrong("10.0.0.1", "alice", 0.0)
    assert waits[:7] == [0, 0, 0, 0.5, 1, 2, 4]
    assert waits[-1] == LONGEST_S
    assert guesses.wait_s("10.0.0.2", 0.0) == 0
    assert guesses.warnings(1.0) == [
        "12 wrong passwords from 10.0.0.1 within an hour, the last one for user alice",
    ]


def test_a_right_password_and_an_hour_forget():
    guesses = Guesses()
    for _ in range(10):
        guesses.was_wrong("10.0.0.1", "alice", 0.0)
        guesses.was_wrong("10.0.0.2", "alice", 0.0)
    guesses.was_right("10.0.0.1")
    assert guesses.wait_s("10.0.0.1", 0.0) == 0
    assert guesses.wait_s("10.0.0.2", FORGOTTEN_S + 1) == 0
    assert guesses.warnings(FORGOTTEN_S + 1) == []
    assert guesses.was_wrong("10.0.0.2", "alice", FORGOTTEN_S + 1) == 1


@pytest.mark.parametrize(
    ("address", "means"),
    [("10.0.0.1", "10.0.0.1"), ("::ffff:10.0.0.1", "10.0.0.1"), ("2001:db8::1", "2001:db8::/64")],
)
def test_what_counts_as_one_address(address, means):
    assert network(address) == means
