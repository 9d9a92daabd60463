"""The pure decision on a right: profiles, records of users and groups, and what the settings say."""

from __future__ import annotations

import pytest

from trigmon.mq.attributes import AuthorityRecord
from trigmon.mq.errors import NotAuthorized, ObjectNameError, ParmValueError
from trigmon.mq.rights import (
    RIGHTS,
    Right,
    canonical,
    fits,
    is_profile,
    is_record_name,
    plain_words,
    profile_pattern,
    read_record_name,
    read_rights,
    specificity,
)
from trigmon.rules.model.authority import AuthorityRecords, Need, UserFacts, check_right, decide_right, has_right

ALICE = UserFacts("alice", ("etl", "users"))
PUT_ORDERS = Need(Right.PUT, "queue", "ORDERS.IN")


def records(*given):
    """Records of pairs of a name and rights."""
    return AuthorityRecords(AuthorityRecord(name=name, authorities=canonical(rights)) for name, rights in given)


@pytest.mark.parametrize(
    ("profile", "fitting", "others"),
    [
        ("A.B", ["A.B"], ["A", "A.B.C", "A.BC"]),
        ("A.*", ["A.B", "A.BC"], ["A", "A.B.C", "AB"]),
        ("A*", ["A", "ABC"], ["A.B", "BA"]),
        ("A.*.C", ["A.B.C"], ["A.C", "A.B.B.C"]),
        ("A?C", ["ABC"], ["AC", "A.C", "ABBC"]),
        ("A.**", ["A", "A.B", "A.B.C"], ["AB", "B.A"]),
        ("A.**.Z", ["A.Z", "A.B.Z", "A.B.C.Z"], ["A", "AZ", "A.ZZ"]),
        ("**.Z", ["Z", "A.Z", "A.B.Z"], ["A.Z.B", "AZ"]),
        ("**", ["A", "A.B.C", ""], []),
        ("*", ["A"], ["A.B"]),
        ("A%/_.B", ["A%/_.B"], ["AX/_.B"]),
    ],
)
def test_a_profile_fits_names_as_mqs_generic_profiles_do(profile, fitting, others):
    assert is_profile(profile)
    pattern = profile_pattern(profile)
    assert [name for name in (*fitting, *others) if fits(pattern, name)] == fitting


def test_the_most_specific_profile_comes_first():
    profiles = ["A.B.C", "A.B.?", "A.B.*", "A.B.**", "A.?.C", "A.*.C", "A.**", "*.B.C", "**"]
    backwards = profiles[::-1]
    assert sorted(backwards, key=specificity) == profiles


@pytest.mark.parametrize("profile", ["", "A**", "A.**B", "**.A.**", "A B", "A" * 49, "A.'"])
def test_what_is_no_profile_is_refused(profile):
    assert not is_profile(profile)


@pytest.mark.parametrize(
    "name",
    [
        "queue A user",
        "queue A owner x",
        "topic A user x",
        "qmgr A user x",
        "queue A user *",
        "queue A user a b",
        "Q A user x",
    ],
)
def test_what_is_no_name_of_a_record_is_refused(name):
    assert not is_record_name(name)
    with pytest.raises(ObjectNameError):
        read_record_name(name)


def test_the_words_of_rights_are_mqs_and_plain_ones():
    assert canonical("+put +get") == canonical(["get", "PUT"]) == "put,get"
    assert read_rights("inquire") == Right.INQ | Right.DSP
    assert read_rights("administer") == read_rights("alladm") == read_rights("chg dlt dsp clr crt ctrl")
    assert read_rights("all") == RIGHTS
    assert canonical("none") == "none"
    assert plain_words(read_rights("inq,put")) == ["put", "inq"]
    with pytest.raises(ParmValueError, match="inquire"):
        read_rights("monitor")  # no record gives what the settings give
    with pytest.raises(ParmValueError):
        read_rights("system")


@pytest.mark.parametrize("bits", range(0, 2048, 37))
def test_plain_words_say_the_same_rights(bits):
    rights = Right(bits)
    assert read_rights(plain_words(rights)) == rights
    assert read_rights(canonical([str(right.name) for right in RIGHTS if right & rights])) == rights


def test_rights_of_a_user_and_of_all_groups_are_united():
    given = records(
        ("queue ORDERS.** user alice", "put"), ("queue ** group etl", "get"), ("queue ** group *", "browse")
    )
    has = [right for right in RIGHTS if has_right(Need(right, "queue", "ORDERS.IN"), ALICE, given)]
    assert has == [Right.PUT, Right.GET, Right.BROWSE]
    nobody = UserFacts("")  # by plain TCP
    assert [right for right in RIGHTS if has_right(Need(right, "queue", "ORDERS.IN"), nobody, given)] == [Right.BROWSE]


def test_of_one_user_or_group_only_the_most_specific_record_counts():
    given = records(
        ("queue ** user alice", "put,get"), ("queue ORDERS.IN user alice", "none"), ("queue ORDERS.* group etl", "get")
    )
    assert not has_right(PUT_ORDERS, ALICE, given)
    assert has_right(PUT_ORDERS._replace(right=Right.GET), ALICE, given)  # the group's
    assert has_right(PUT_ORDERS._replace(name="OTHER"), ALICE, given)


def test_a_record_is_about_one_type_of_object_and_a_user_is_no_group():
    given = records(("process ** user alice", "all"), ("queue ** group alice", "all"), ("queue ** user etl", "all"))
    assert not has_right(PUT_ORDERS, ALICE, given)
    assert has_right(Need(Right.CTRL, "process", "LOAD"), ALICE, given)


def test_the_maker_of_a_dynamic_queue_has_every_right_on_it_and_nobody_has_by_no_name():
    mine = PUT_ORDERS._replace(owner="alice")
    assert has_right(mine, ALICE, records(("queue X user bob", "put")))
    assert not has_right(mine, UserFacts("bob"), records(("queue X user bob", "put")))
    assert not has_right(PUT_ORDERS, UserFacts(""), records(("queue X user bob", "put")))


@pytest.mark.parametrize("of", [None, records(("queue ** group *", "all"), ("qmgr SELF group *", "all"))])
def test_no_record_gives_what_is_for_administrators_and_monitors_alone(of):
    administrator = UserFacts("root", is_administrator=True)
    for need in (
        Need(Right.SYSTEM, "qmgr", "SELF"),
        Need(Right.MONITOR, "qmgr", "SELF"),
        Need(Right.GET, "queue", "SYSTEM.TRIGMON.FILES"),
        Need(Right.SET, "queue", "SYSTEM.DEFAULT.INITIATION.QUEUE"),
    ):
        assert not has_right(need, ALICE, of), need
        assert has_right(need, administrator, of)
    assert has_right(Need(Right.MONITOR, "qmgr", "SELF"), UserFacts("m", is_monitor=True), of)


def test_a_refusal_names_the_user_the_right_the_object_and_the_command():
    given = records(("queue ORDERS.* group etl", "get"))
    with pytest.raises(NotAuthorized) as refused:
        check_right(PUT_ORDERS, ALICE, given, "open")
    assert refused.value.about == (
        "open needs the right put on queue ORDERS.IN, which alice has not (ORDERS.* gives group etl get): "
        "trigmon grant alice put ORDERS.IN"
    )
    process = Need(Right.CHG, "process", "LOAD")
    with pytest.raises(NotAuthorized, match="needs an administrator, or the right administer on process LOAD"):
        check_right(process, ALICE, None, "alter")
    assert decide_right(process, ALICE, None).why == "no authority record fits"
    with pytest.raises(NotAuthorized) as refused:
        check_right(Need(Right.SYSTEM, "qmgr", "SELF"), ALICE, given, "set_authority")
    assert refused.value.about == (
        "set_authority needs an administrator, which alice is not: root, the daemon's own user and those in "
        "server.administrators are"
    )


def test_ten_thousand_names_are_not_all_remembered():
    given = records(("queue ** user alice", "put"))
    for number in range(10_000):
        assert has_right(PUT_ORDERS._replace(name=f"Q{number}"), ALICE, given)
    assert len(given._remembered) <= 1024


def test_what_was_found_once_for_one_user_holds_for_no_other_with_other_rights_in_the_settings():
    given = records(("queue Q user bob", "put"))
    monitor, alice = UserFacts("alice", is_monitor=True), UserFacts("alice")
    need = Need(Right.PUT, "queue", "Q")
    check_right(need, monitor, given)
    with pytest.raises(NotAuthorized):
        check_right(need, alice, given)
    for _ in range(2):
        check_right(need, UserFacts("bob"), given)
        with pytest.raises(NotAuthorized):
            check_right(need._replace(right=Right.GET), UserFacts("bob"), given)
