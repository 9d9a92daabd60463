"""``trigmon queue`` and ``trigmon namelist``: objects are defined, shown, altered, listed, moved and deleted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.conftest import Trigmon, objects, run_cli
from tests.daemons import define
from tests.strangers import as_nobody


def test_a_queue_is_defined_shown_altered_listed_and_deleted(trigmon: Trigmon):
    defined = trigmon("queue", "define", "OB.A", "TRIGGER", "trigger_type=depth", "TRIGDPTH=5")
    assert (defined.exit_code, defined.stdout) == (0, "QLOCAL OB.A defined\n")
    assert trigmon("queue", "alter", "OB.A", "NOTRIGGER", "maxdepth=7").exit_code == 0
    (shown,) = objects(trigmon("queue", "show", "OB.A", "--output", "json"))
    assert shown["name"] == "OB.A"
    assert (shown["trigger_control"], shown["trigger_type"], shown["trigger_depth"]) == ("off", "depth", 5)
    assert shown["max_q_depth"] == 7
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", shown["created_time"])
    assert [row["name"] for row in objects(trigmon("--output", "json", "queue", "list", "OB.A*"))] == ["OB.A"]
    assert trigmon("queue", "delete", "OB.A").stdout == "QLOCAL OB.A deleted\n"
    assert trigmon("queue", "show", "OB.A").exit_code == 3


def test_default_and_def_are_one_word(trigmon: Trigmon):
    words = ["default_persistence=persistent", "DEFAULT_PRIORITY=3"]
    assert trigmon("queue", "define", "OB.DEFAULTS", *words).exit_code == 0
    (shown,) = objects(trigmon("queue", "show", "OB.DEFAULTS", "--output", "json"))
    assert (shown["def_persistence"], shown["def_priority"]) == ("persistent", 3)
    again = trigmon("queue", "alter", "OB.DEFAULTS", "def_priority=1", "default_priority=2")
    assert (again.exit_code, "def_priority was already given" in again.stderr) == (2, True)


def test_a_table_has_no_borders_when_piped(trigmon: Trigmon):
    trigmon("queue", "define", "OB.TABLE")
    head, row = trigmon("queue", "list", "OB.TABLE").stdout.splitlines()
    assert head.split()[:3] == ["name", "object_type", "current_q_depth"]
    assert row.split()[:3] == ["OB.TABLE", "QLOCAL", "0"]


def test_an_alias_is_defined_and_altered_by_its_own_attributes(trigmon: Trigmon):
    trigmon("queue", "define", "OB.BASE")
    assert trigmon("queue", "define", "OB.ALIAS", "--alias-of", "OB.BASE").stdout == "QALIAS OB.ALIAS defined\n"
    assert trigmon("queue", "alter", "OB.ALIAS", "TARGET=OB.OTHER").exit_code == 0
    (shown,) = objects(trigmon("queue", "show", "OB.ALIAS", "--output", "json"))
    assert shown["base_q_name"] == "OB.OTHER"
    assert trigmon("queue", "alter", "OB.ALIAS", "TRIGGER").exit_code == 2


def test_a_remote_and_a_model_queue_are_defined_shown_altered_listed_and_deleted(trigmon: Trigmon):
    remote = ["queue", "define", "OB.R", "--type", "qremote", "RNAME=ORDERS", "remote_q_mgr_name=QM9", "XMITQ=OB.XQ"]
    assert trigmon(*remote).stdout == "QREMOTE OB.R defined\n"
    model = ["queue", "define", "OB.MODEL", "--type", "qmodel", "DEFTYPE=PERMDYN", "TRIGGER", "TRIGDPTH=5"]
    assert trigmon(*model).stdout == "QMODEL OB.MODEL defined\n"
    assert trigmon("queue", "alter", "OB.R", "RQMNAME=QM8").exit_code == 0
    assert trigmon("queue", "alter", "OB.MODEL", "NOTRIGGER").exit_code == 0
    (shown,) = objects(trigmon("queue", "show", "OB.R", "--output", "json"))
    assert (shown["q_type"], shown["remote_q_name"], shown["remote_q_mgr_name"]) == ("remote", "ORDERS", "QM8")
    (shown,) = objects(trigmon("queue", "show", "OB.MODEL", "--output", "json"))
    assert (shown["q_type"], shown["definition_type"]) == ("model", "permanent_dynamic")
    assert (shown["trigger_control"], shown["trigger_depth"]) == ("off", 5)
    listed = trigmon("queue", "list", "OB.R").stdout + trigmon("queue", "list", "OB.MODEL").stdout
    assert ["OB.R", "QREMOTE"] in [line.split()[:2] for line in listed.splitlines()]
    assert ["OB.MODEL", "QMODEL"] in [line.split()[:2] for line in listed.splitlines()]
    for name in ("OB.R", "OB.MODEL"):
        assert trigmon("queue", "delete", name).exit_code == 0
        assert trigmon("queue", "show", name).exit_code == 3


def test_a_type_and_alias_of_must_agree(trigmon: Trigmon):
    result = trigmon("queue", "define", "OB.X", "--alias-of", "OB.Y", "--type", "qremote")
    assert result.exit_code == 2
    assert "--alias-of defines an alias" in result.stderr


def test_a_dynamic_queue_is_shown_moved_to_and_left_out_of_what_files_say(trigmon: Trigmon, qm, tmp_path: Path):
    trigmon("queue", "define", "DY.MODEL", "--type", "qmodel", "DEFTYPE=PERMDYN")
    trigmon("queue", "define", "DY.FROM")
    qm.put("DY.FROM", b"m")
    made = qm.open("DY.MODEL", "output", dynamic_q_name="DY.MADE")
    assert trigmon("queue", "move", "DY.FROM", "DY.MADE").exit_code == 0
    (shown,) = objects(trigmon("queue", "show", "DY.MADE", "--output", "json"))
    assert (shown["definition_type"], shown["current_q_depth"]) == ("permanent_dynamic", 1)
    for form in ("--yaml", "--mqsc"):
        exported = trigmon("export", form).stdout
        assert "DY.MODEL" in exported
        assert "DY.MADE" not in exported
    made.close(purge=True)
    assert trigmon("queue", "show", "DY.MADE").exit_code == 3


def test_system_queues_are_listed_when_asked_for(trigmon: Trigmon):
    names = [row["name"] for row in objects(trigmon("queue", "list", "--system", "--output", "json"))]
    assert "SYSTEM.DEAD.LETTER.QUEUE" in names
    assert "SYSTEM.DEAD.LETTER.QUEUE" not in trigmon("queue", "list").stdout
    assert "SYSTEM.DEAD.LETTER.QUEUE" in trigmon("queue", "list", "SYSTEM.DEAD*").stdout


def test_no_such_name_is_not_shown_as_an_empty_list(trigmon: Trigmon):
    assert trigmon("watch", "list").stderr == "there is no watch; --system shows the SYSTEM objects too\n"
    assert trigmon("queue", "list", "NONE").exit_code == 3
    nothing = trigmon("queue", "list", "NONE*")
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert "nothing is named NONE*" in nothing.stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["trigger_typ=first"], "no attribute trigger_typ; did you mean 'trigger_type'?"),
        (["TRIGDPTH=0"], "trigger_depth must be 1 to 999999999"),
        (["TRIGTYPE=first", "trigger_type=every"], "trigger_type was already given"),
        (["TRIGGR"], "did you mean 'TRIGGER'?"),
    ],
)
def test_a_wrong_attribute_is_a_usage_error_before_anything_is_asked(words: list[str], expected: str):
    result = run_cli("queue", "define", "Q", *words, "--qmgr", "NOBODY")
    assert result.exit_code == 2
    assert expected in result.stderr


def test_define_again_is_refused_and_replaced_by_option(trigmon: Trigmon):
    trigmon("queue", "define", "OB.AGAIN", "MAXDEPTH=1")
    refused = trigmon("queue", "define", "OB.AGAIN")
    assert refused.exit_code == 5
    assert "MQRC_OBJECT_ALREADY_EXISTS (2100)" in refused.stderr
    assert trigmon("queue", "define", "OB.AGAIN", "--replace").exit_code == 0
    assert objects(trigmon("queue", "show", "OB.AGAIN", "--output", "json"))[0]["max_q_depth"] == 5000


def test_messages_are_cleared_and_moved(trigmon: Trigmon, qm):
    trigmon("queue", "define", "OB.FROM")
    trigmon("queue", "define", "OB.TO")
    qm.put_many("OB.FROM", [b"m"] * 600)
    assert trigmon("queue", "delete", "OB.FROM").exit_code == 5
    assert objects(trigmon("queue", "move", "OB.FROM", "OB.TO", "--count", "300", "--output", "json")) == [
        {"q_name": "OB.FROM", "to_q_name": "OB.TO", "messages": 300}
    ]
    assert trigmon("queue", "move", "OB.FROM", "OB.TO").stdout == "300 messages moved from OB.FROM to OB.TO\n"
    assert trigmon("queue", "clear", "OB.TO").stdout == "600 messages deleted from OB.TO\n"


def test_an_empty_queue_is_moved_by_a_user_with_the_right_and_to_where_there_is_something(trigmon: Trigmon):
    trigmon("queue", "define", "OB.EMPTY")
    assert trigmon("queue", "move", "OB.EMPTY", "SYSTEM.DEAD.LETTER.QUEUE").exit_code == 0
    nowhere = trigmon("queue", "move", "OB.EMPTY", "OB.NOWHERE")
    assert (nowhere.exit_code, nowhere.stdout) == (3, "")
    assert "MQRC_UNKNOWN_OBJECT_NAME (2085): OB.NOWHERE" in nowhere.stderr


def test_an_empty_queue_is_not_moved_by_a_stranger(passable):
    one = passable(settings={"server.socket_mode": "0666"})
    with one.connect() as qm:
        define(qm, "OB.EMPTY")

    def move() -> tuple[int, str, str]:
        result = run_cli("queue", "move", "OB.EMPTY", "SYSTEM.DEAD.LETTER.QUEUE", "--qmgr", one.address)
        return result.exit_code, result.stdout, result.stderr

    assert move()[:2] == (0, "0 messages moved from OB.EMPTY to SYSTEM.DEAD.LETTER.QUEUE\n")
    code, out, err = as_nobody(move)
    assert (code, out) == (4, "")
    assert "MQRC_NOT_AUTHORIZED (2035)" in err


def test_a_queue_in_use_is_not_deleted(trigmon: Trigmon, qm):
    trigmon("queue", "define", "OB.OPEN")
    with qm.open("OB.OPEN", "output"):
        refused = trigmon("queue", "delete", "OB.OPEN")
    assert refused.exit_code == 5
    assert "QLOCAL(OB.OPEN) is open" in refused.stderr
    assert "TYPE(HANDLE)" in refused.stderr


def test_a_namelist_is_defined_shown_altered_listed_and_deleted(trigmon: Trigmon):
    defined = trigmon("namelist", "define", "OB.NL", "names=ORDERS,Pay.ments", "DESCR=at night")
    assert (defined.exit_code, defined.stdout) == (0, "NAMELIST OB.NL defined\n")
    assert trigmon("namelist", "alter", "OB.NL", "NAMES=ORDERS,RETURNS,C").exit_code == 0
    (shown,) = objects(trigmon("namelist", "show", "OB.NL", "--output", "json"))
    assert (shown["names"], shown["name_count"]) == (["ORDERS", "RETURNS", "C"], 3)
    head, row = trigmon("namelist", "list", "OB.N*").stdout.splitlines()
    assert (head.split()[:3], row.split()[:2]) == (["name", "name_count", "names"], ["OB.NL", "3"])
    assert trigmon("namelist", "define", "OB.NL2", "--like", "OB.NL").exit_code == 0
    assert "namelist: OB.NL2" in trigmon("export", "--yaml").stdout
    assert trigmon("namelist", "alter", "OB.NL", "names=two words").exit_code == 0
    assert trigmon("namelist", "alter", "OB.NL", "names=a!").exit_code == 2
    wrong = trigmon("namelist", "show", "OB.NM").stderr
    assert "NAMELIST(OB.NM); the nearest known one is OB.NL" in wrong
    assert "trigmon namelist list shows what there is" in wrong
    assert trigmon("namelist", "delete", "OB.NL").stdout == "NAMELIST OB.NL deleted\n"
    assert trigmon("namelist", "show", "OB.NL").exit_code == 3
