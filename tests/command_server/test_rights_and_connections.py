"""Commands about connections, authority records and the queue manager's state."""

import pytest
from msgspec.structs import replace

from tests.command_server.commands import Program, byte_string, command, integer, integer_filter, integers, text, texts
from trigmon.mq.calls import Display, Open
from trigmon.mq.enums import OpenOption

ID, GENERIC_ID = 7006, 7007
EVERY = byte_string(GENERIC_ID, b"")
QUEUE = "SYSTEM.DEFAULT.LOCAL.QUEUE"


def identifier(value, number=ID):
    return byte_string(number, value)


def test_connections_are_listed_and_one_is_found_by_its_identifier(program):
    listed = program.does(command(85, EVERY))
    mine = [each for each in listed if each.values[3058] == "a program"]
    # The connections of the command server: its own, and the one with the rights of who put the command.
    assert sum(each.values[3058] == "trigmon command server" for each in listed) == 1
    (shown,) = mine
    assert shown.order[:2] == [ID, 1110]
    assert [shown.values[number] for number in (1110, 1, 1024, 3025)] == [1111, 25, 1, "root"]
    assert len(shown.values[ID]) == 24
    assert program.one(command(85, identifier(shown.values[ID]))).values[ID] == shown.values[ID]
    begins = identifier(shown.values[ID][:16] + bytes(0), GENERIC_ID)
    assert len(program.does(command(85, begins))) > 1
    assert program.one(command(85, identifier(b"x" * 24))).reason == 3174


def test_attributes_that_only_a_channel_has_are_blank(program):
    applications = integer_filter(1, 2, 25)
    found = program.does(command(85, EVERY, integer(1110, 1111), integers(1107, 3506, 3501), applications))
    assert found
    assert all(each.values.keys() == {ID, 1110, 3506, 3501, 1} for each in found)


def test_the_open_objects_of_a_connection_are_listed(program):
    program.ask(Open(object_name=QUEUE, options=OpenOption.BROWSE.value))
    found = program.does(command(85, EVERY, integer(1110, 1112)))
    assert QUEUE in [each.values[3046] for each in found]
    both = program.does(command(85, EVERY, integer(1110, 1113)))
    assert {each.values[1110] for each in both} == {1111, 1112}


def test_a_connection_that_is_not_there_cannot_be_stopped(program):
    assert program.one(command(86, identifier(b"AMQCtrigmon     " + (4711).to_bytes(8)))).reason == 3174
    assert program.one(command(86)).reason == 3174


def test_rights_are_given_shown_taken_and_deleted(program):
    given = command(90, text(3067, "ORDERS.**"), integer(1016, 1), integers(1116, 8, 9, 11, 5), texts(3065, "alice"))
    assert program.one(given).comp_code == 0
    asked = command(87, text(3067, "ORDERS.**"), integer(1016, 1))
    shown = program.one(asked)
    assert [shown.values[number] for number in (3067, 1016, 1118, 3068)] == ["ORDERS.**", 1, 1, "alice"]
    assert sorted(shown.values[1115]) == [8, 9, 11]
    taken = command(90, text(3067, "ORDERS.**"), integer(1016, 1), integers(1117, 11), texts(3065, "alice"))
    assert program.one(taken).comp_code == 0
    assert sorted(program.one(asked).values[1115]) == [8, 9]
    assert program.one(command(89, text(3067, "ORDERS.**"), integer(1016, 1), texts(3065, "alice"))).comp_code == 0
    assert program.one(asked).reason == 2085


def test_rights_of_several_users_and_groups_and_on_the_queue_manager(program):
    users, groups = texts(3065, "alice", "bob"), texts(3066, "etl")
    assert (
        program.one(command(90, text(3067, "QM1"), integer(1016, 5), integers(1116, 8), users, groups)).comp_code == 0
    )
    found = program.does(command(87, text(3067, ""), integer(1016, 1001)))
    assert [(each.values[3067], each.values[1118], each.values[3068]) for each in found] == [
        ("SELF", 2, "etl"),
        ("SELF", 1, "alice"),
        ("SELF", 1, "bob"),
    ]
    only = program.one(command(87, text(3067, ""), integer(1016, 5), text(3068, "bob")))
    assert only.values[3068] == "bob"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (command(90, text(3067, "A"), integer(1016, 1), integers(1116, 8)), 3169),
        (command(90, text(3067, "A"), integer(1016, 77), integers(1116, 8), texts(3065, "a")), 3229),
        (command(90, text(3067, "A"), integer(1016, 1), integers(1116, 99), texts(3065, "a")), 3171),
        (command(89, text(3067, "A"), integer(1016, 1), texts(3065, "a")), 2085),
        (command(90, text(3067, "A B"), integer(1016, 1), integers(1116, 8), texts(3065, "a")), 4008),
        (command(90, integer(1016, 1)), 3019),
    ],
)
def test_a_wrong_command_about_rights_has_mqs_reason(program, data, reason):
    assert program.one(data).reason == reason
    assert program.ask(Display(object_type="AUTHREC", name="*")).rows == []


def test_rights_are_an_administrators_to_give(stage, program):
    alice = Program(stage, "alice", administrator=False, replies="ALICES.REPLIES")
    given = command(90, text(3067, "**"), integer(1016, 1), integers(1116, -1), texts(3065, "alice"))
    assert alice.one(given).reason == 2035


def test_how_users_are_proved_is_what_the_queue_manager_names(program):
    name = program.one(command(2, integers(1001, 2125))).values[2125]
    asked = command(83, text(2045, name), integer(66, 3), integers(1019, 258))
    assert program.one(asked).values == {2045: name, 66: 3, 258: 0}
    assert program.one(command(83, text(2045, "ANOTHER"))).reason == 2085


def test_the_state_of_the_queue_manager(program):
    shown = program.one(command(161)).values
    assert (shown[2015], shown[1149], shown[1233]) == ("QM1", 2, 2)
    assert shown[1230] >= 2
    assert program.one(command(161, integers(1229, 1230))).values.keys() == {2015, 1149, 1230}
    assert shown[1232] == 0


ENTITY, PUT_GET = 88, integers(1116, 9, 11)


def rights_of(program, entity, kind=1, name=QUEUE, of=1):
    about = integer(1228, 256), integer(1016, of), text(3046, name)
    return program.one(command(ENTITY, *about, text(3068, entity), integer(1118, kind)))


def test_the_rights_of_a_user_on_an_object_are_those_of_its_records_and_of_everyone(program):
    for profile, entities in (("**", texts(3065, "alice")), ("SYSTEM.**", texts(3066, "*"))):
        program.one(command(90, text(3067, profile), integer(1016, 1), PUT_GET, entities))
    shown = rights_of(program, "alice")
    assert shown.order[:3] == [2015, 1228, 3046]
    assert shown.values == {2015: "QM1", 1228: 256, 3046: QUEUE, 1016: 1, 1118: 1, 3068: "alice", 1115: [11, 9]}
    assert rights_of(program, "bob").values[1115] == [11, 9]
    assert rights_of(program, "bob", name="QM1", of=5).values[1115] == [0]
    assert rights_of(program, "root").values[1115] != [0]


def test_the_rights_of_a_group_are_those_of_its_most_specific_record(program):
    for profile, rights in (("**", integers(1116, 9, 11)), ("SYSTEM.**", integers(1116, 2))):
        program.one(command(90, text(3067, profile), integer(1016, 1), rights, texts(3066, "etl")))
    assert rights_of(program, "etl", 2).values[1115] == [2]
    assert rights_of(program, "others", 2).values[1115] == [0]


def test_a_user_asks_about_its_own_rights_with_its_groups(stage, program):
    alice = Program(stage, "alice", administrator=False, replies="ALICES.REPLIES")
    in_group = stage._q_mgrs["QM1"].manager.connect(replace(alice.session.identity, groups=("etl",)))
    in_group.attachment, alice.session = alice.session.attachment, in_group
    program.one(command(90, text(3067, "**"), integer(1016, 1), integers(1116, 2, 8, 9, 11), texts(3066, "etl")))
    program.one(command(90, text(3067, "SELF"), integer(1016, 5), integers(1116, 8), texts(3065, "alice")))
    assert sorted(rights_of(alice, "alice").values[1115]) == [2, 8, 9, 11]
    assert rights_of(program, "alice").values[1115] == [0]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"name": "NOT.THERE"}, 2085),
        ({"name": "SYSTEM.*"}, 2085),
        ({"kind": 7}, 3229),
        ({"of": 8}, 3229),
    ],
)
def test_a_wrong_question_about_rights_has_mqs_reason(program, given, reason):
    assert rights_of(program, "alice", **given).reason == reason


def test_the_name_of_how_users_are_proved_is_listed(program):
    assert program.one(command(84, text(2045, "*"))).values == {3048: ["SYSTEM.DEFAULT.AUTHINFO.IDPWOS"]}
    assert program.one(command(84, text(2045, "A*"))).values == {3048: []}
