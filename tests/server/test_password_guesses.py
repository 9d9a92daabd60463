"""How long the next password of an address waits."""

import pytest

from trigmon.server.password_guesses import FORGOTTEN_S, LONGEST_S, Guesses, network


def test_behind_three_wrong_passwords_each_next_waits_twice_as_long_up_to_a_limit():
    guesses = Guesses()
    waits = []
    for _ in range(12):
        waits.append(guesses.wait_s("10.0.0.1", "alice", 0.0))
        guesses.was_wrong("10.0.0.1", "alice", 0.0)
    assert waits[:7] == [0, 0, 0, 0.5, 1, 2, 4]
    assert waits[-1] == LONGEST_S
    assert guesses.wait_s("10.0.0.2", "alice", 0.0) == 0
    assert guesses.warnings(1.0) == [
        "12 wrong passwords from 10.0.0.1 within an hour, the last one for user alice",
    ]


def test_a_right_password_and_an_hour_forget():
    guesses = Guesses()
    for _ in range(10):
        guesses.was_wrong("10.0.0.1", "alice", 0.0)
        guesses.was_wrong("10.0.0.2", "alice", 0.0)
    guesses.was_right("10.0.0.1", "alice")
    assert guesses.wait_s("10.0.0.1", "alice", 0.0) == 0
    assert guesses.wait_s("10.0.0.2", "alice", FORGOTTEN_S + 1) == 0
    assert guesses.warnings(FORGOTTEN_S + 1) == []
    assert guesses.was_wrong("10.0.0.2", "alice", FORGOTTEN_S + 1) == 1


def test_a_right_password_of_one_s_own_makes_no_guess_at_another_s_faster():
    guesses = Guesses()
    counts = []
    for _ in range(20):
        counts.append(guesses.was_wrong("10.0.0.1", "alice", 0.0))
        guesses.was_right("10.0.0.1", "eve")
    assert counts == list(range(1, 21))
    assert guesses.wait_s("10.0.0.1", "alice", 0.0) == LONGEST_S
    assert "20 wrong passwords from 10.0.0.1" in guesses.warnings(1.0)[0]


def test_who_has_come_from_an_address_waits_there_for_nobody_else_s_guesses():
    guesses = Guesses()
    guesses.was_right("10.0.0.1", "batch")
    for _ in range(20):
        guesses.was_wrong("10.0.0.1", "alice", 0.0)
    assert guesses.wait_s("10.0.0.1", "batch", 0.0) == 0
    assert guesses.turn("10.0.0.1", "batch") is not guesses.turn("10.0.0.1", "alice")
    assert guesses.turn("10.0.0.1", "carol") is guesses.turn("10.0.0.1", "alice")
    assert guesses.wait_s("10.0.0.1", "carol", 0.0) == LONGEST_S
    for _ in range(4):
        guesses.was_wrong("10.0.0.1", "batch", 0.0)
    assert guesses.wait_s("10.0.0.1", "batch", 0.0) == 1
    assert len(guesses.warnings(1.0)) == 1


@pytest.mark.parametrize(
    ("address", "means"),
    [("10.0.0.1", "10.0.0.1"), ("::ffff:10.0.0.1", "10.0.0.1"), ("2001:db8::1", "2001:db8::/64")],
)
def test_what_counts_as_one_address(address, means):
    assert network(address) == means
