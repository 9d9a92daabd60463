"""Authority records on a real daemon: how they are set, kept, listed and written, and what they hold at the door."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

import trigmon
from tests.daemons import define
from tests.strangers import as_user
from trigmon.mq.calls import Alter, Define, Delete, ExplainRights, Open, Put, QueueStatus, SetAuthority
from trigmon.mq.enums import OpenOption
from trigmon.mq.paging import all_rows
from trigmon.mq.replies import Listing, Opened, Values

ALICE, BOB = 5001, 5002
OUT = int(OpenOption.OUTPUT)


@pytest.fixture
def one(passable):
    made = passable(settings={"server.socket_mode": "0666"})
    with made.connect() as qm:
        for name in ("ORDERS.IN", "ORDERS.OUT", "PAYROLL"):
            define(qm, name)
        define(qm, "LOAD", "PROCESS", appl_id="/bin/true")
    return made


def give(one, name, *rights, remove=()):
    with one.connect() as qm:
        return qm.ask(SetAuthority(name=name, add=list(rights), remove=list(remove)), Values).values


def refusal(one, call, user=ALICE):
    """The text of 2035 that a call of this user gets; blank where it gets something else."""

    def work():
        with one.connect() as qm:
            try:
                qm.call(call)
            except trigmon.NotAuthorized as error:
                return error.about
            except trigmon.MQError:
                pass
        return ""

    return as_user(user, work)


def test_records_outlive_a_restart_and_a_refusal_names_the_command_that_helps(one):
    give(one, f"queue ORDERS.** user {ALICE}", "get")
    one.kill()
    one.start()
    about = refusal(one, Put(q_name="ORDERS.IN", data=b"x"))
    assert f"which {ALICE} has not (ORDERS.** gives user {ALICE} get)" in about
    command = about.rpartition(": ")[2]
    assert command == f"trigmon grant {ALICE} put ORDERS.IN"
    done = one.trigmon(*command.split()[1:])
    assert done.returncode == 0, done.stderr
    assert refusal(one, Put(q_name="ORDERS.IN", data=b"x")) == ""
    assert refusal(one, Put(q_name="ORDERS.OUT", data=b"x"))
    assert refusal(one, Put(q_name="ORDERS.IN", data=b"x"), BOB)


def test_rights_are_added_and_removed_in_one_step_and_an_empty_record_hides_a_wider_one(one):
    name = f"queue ORDERS.IN user {ALICE}"
    assert give(one, name, "put,get") == {"name": name, "before": "", "after": "put,get"}
    assert give(one, name, "browse", remove=["get"]) == {"name": name, "before": "put,get", "after": "put,browse"}
    give(one, f"queue ** user {ALICE}", "put")
    give(one, name, remove=["all"])
    assert refusal(one, Put(q_name="ORDERS.IN", data=b"x"))
    with one.connect() as qm:
        qm.call(Delete(object_type="AUTHREC", name=name))
    assert refusal(one, Put(q_name="ORDERS.IN", data=b"x")) == ""
    with one.connect() as qm, pytest.raises(trigmon.UnknownObjectName):
        qm.call(SetAuthority(name=name, remove=["put"]))


def test_a_handle_keeps_the_rights_it_was_opened_with(one):
    name = f"queue ORDERS.IN user {ALICE}"
    give(one, name, "put", "get")
    opened, go_on = os.pipe(), os.pipe()

    def work():
        with one.connect() as qm, qm.open("ORDERS.IN", "output") as queue:
            os.write(opened[1], b"x")
            os.read(go_on[0], 1)
            queue.put(b"after")
            try:
                qm.open("ORDERS.IN", "output")
            except trigmon.NotAuthorized:
                return True

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(as_user, ALICE, work)
        os.read(opened[0], 1)
        give(one, name, remove=["put"])
        os.write(go_on[1], b"x")
        assert done.result(60)


def test_what_a_definition_names_needs_rights_too_so_an_alias_opens_no_other_queue(one):
    for of in ("queue", "process", "schedule"):
        give(one, f"{of} MINE.** user {ALICE}", "all")
    assert refusal(one, Define(object_type="QLOCAL", name="MINE.Q")) == ""
    payroll = {"base_q_name": "PAYROLL"}
    alias = Define(object_type="QALIAS", name="MINE.A", attributes=payroll)
    assert "administer on queue PAYROLL" in refusal(one, alias)
    assert "put on queue PAYROLL" in refusal(
        one, Alter(object_type="QLOCAL", name="MINE.Q", attributes={"backout_requeue_q_name": "PAYROLL"})
    )
    triggers = {"process_name": "LOAD"}
    assert "pause on process LOAD" in refusal(one, Alter(object_type="QLOCAL", name="MINE.Q", attributes=triggers))
    with one.connect() as qm:
        define(qm, "PAY.ALIAS", "QALIAS", **payroll)
    like = Define(object_type="QALIAS", name="MINE.B", like="PAY.ALIAS")
    assert "administer on queue PAYROLL" in refusal(one, like)  # what is copied is named as well
    give(one, f"queue PAYROLL user {ALICE}", "administer")
    assert refusal(one, alias) == ""
    assert refusal(one, Define(object_type="AUTHREC", name=f"queue ** user {ALICE}", attributes={"authorities": "all"}))


def test_lists_show_what_a_user_may_display_and_an_exact_name_is_refused(one):
    give(one, f"queue ORDERS.* user {ALICE}", "inquire")

    def work():
        from trigmon.cli.objects import rows

        with one.connect() as qm:
            queues = [row["name"] for row in rows(qm, "queue")]
            status = [row["name"] for row in all_rows(lambda call: qm.ask(call, Listing), QueueStatus())]
            records = [row["name"] for row in rows(qm, "AUTHREC")]
            return queues, status, records, list(rows(qm, "PROCESS"))

    give(one, f"queue PAYROLL user {BOB}", "get")
    assert as_user(ALICE, work) == (
        ["ORDERS.IN", "ORDERS.OUT"],
        ["ORDERS.IN", "ORDERS.OUT"],
        [f"queue ORDERS.* user {ALICE}"],
        [],
    )


def test_the_user_who_opened_a_model_queue_has_every_right_on_the_queue_that_was_made(one):
    give(one, f"queue SYSTEM.DEFAULT.MODEL.QUEUE user {ALICE}", "get")

    def work():
        with one.connect() as qm:
            call = Open(object_name="SYSTEM.DEFAULT.MODEL.QUEUE", options=int(OpenOption.INPUT_SHARED))
            name = qm.ask(call, Opened).q_name
            qm.put(name, b"reply")
            with qm.open(name, "output", "inquire") as queue:
                queue.put(b"x")
            return name

    name = as_user(ALICE, work)
    assert name.startswith("AMQ.")
    assert refusal(one, Open(object_name="SYSTEM.DEFAULT.MODEL.QUEUE", options=OUT))


def test_explain_says_why_not_as_the_next_call_gets_it(one):
    give(one, f"queue ORDERS.** user {ALICE}", "get")
    with one.connect() as qm:
        found = qm.ask(ExplainRights(name="ORDERS.IN", user=str(ALICE)), Values).values
        other = qm.ask(ExplainRights(name="ORDERS.IN", user="root"), Values).values
    by_right = {row["right"]: row for row in found["rights"]}
    assert [word for word, row in by_right.items() if row["has"]] == ["get"]
    lacks = [word for word in by_right if word != "get"]
    assert [by_right[word]["remedy"] for word in lacks] == [f"trigmon grant {ALICE} {word} ORDERS.IN" for word in lacks]
    assert all(row["has"] for row in other["rights"])
    printed = one.trigmon("explain", "ORDERS.IN", "--as", str(ALICE), "--exit-status")
    assert printed.returncode == 10
    of_group = one.trigmon("explain", "ORDERS.IN", "--as", "%etl")
    assert (of_group.returncode, "name a user" in of_group.stderr) == (2, True)
    assert f"remedy: trigmon grant {ALICE} put ORDERS.IN" in printed.stdout
    shown = json.loads(one.trigmon("explain", "ORDERS.IN", "--as", str(BOB), "--output", "json").stdout)
    assert shown["has_records"]
    assert [row["has"] for row in shown["rights"]] == [False] * 7
    assert refusal(one, ExplainRights(name="ORDERS.IN", user=str(ALICE)), BOB)
    assert refusal(one, ExplainRights(name="ORDERS.IN"), BOB) == ""


def test_the_command_line_grants_lists_and_revokes_and_asks_before_the_first_record(one):
    assert "putt is no right" in one.trigmon("grant", str(ALICE), "putt", "ORDERS.**").stderr
    first = one.trigmon("grant", str(ALICE), "put,inquire", "ORDERS.**")
    assert first.returncode == 2
    assert "--first" in first.stderr
    done = one.trigmon("grant", str(ALICE), "put,inquire", "ORDERS.**", "--first")
    assert (done.returncode, done.stdout) == (0, f"{ALICE} has put, inquire on queue ORDERS.**\n")
    assert one.trigmon("grant", "%etl", "inquire,pause", "--type", "qmgr").returncode == 0
    listed = [json.loads(line) for line in one.trigmon("rights", "--output", "json").stdout.splitlines()]
    assert [(row["profile"], row["of_type"], row["entity_type"], row["entity"], row["rights"]) for row in listed] == [
        ("SELF", "qmgr", "group", "etl", "inquire, pause"),
        ("ORDERS.**", "queue", "user", str(ALICE), "put, inquire"),
    ]
    (row,) = one.trigmon("rights", "ORDERS.**").stdout.splitlines()[1:]
    assert "T" in row.split(" 20")[-1]  # the time at which it was altered
    assert one.trigmon("revoke", str(ALICE), "put", "ORDERS.**").returncode == 0
    assert one.trigmon("revoke", "%etl", "all", "--type", "qmgr", "--delete").returncode == 0
    (left,) = one.trigmon("rights", "--output", "json").stdout.splitlines()
    assert json.loads(left)["rights"] == "inquire"
    assert "no right" in one.trigmon("grant", "x", "fly", "ORDERS").stderr
    assert "profile" in one.trigmon("grant", "x", "put", "A**B").stderr


MQSC = """SET AUTHREC PROFILE('ORDERS.**') OBJTYPE(QUEUE) GROUP('etl') AUTHADD(GET,BROWSE,SETALL)
SET AUTHREC PROFILE(SELF) OBJTYPE(QMGR) PRINCIPAL('alice','bob') AUTHADD(CONNECT,INQ,DSP)
SET AUTHREC PROFILE('ORDERS.**') OBJTYPE(QUEUE) GROUP('etl') AUTHADD(PUT) AUTHRMV(BROWSE)
SET AUTHREC PROFILE('X.**') OBJTYPE(TOPIC) GROUP('etl') AUTHADD(PUB)
"""


def test_mqsc_sets_displays_and_deletes_records_and_skips_what_has_no_meaning(one):
    done = one.trigmon("mqsc", input=MQSC + "DISPLAY AUTHREC PROFILE('ORDERS.**')\nDIS AUTHREC OBJTYPE(QMGR)\n")
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("AMQ8862I: trigmon authority record set.") == 3
    assert "PROFILE(ORDERS.**)" in done.stdout
    assert "AUTHLIST(PUT,GET)" in done.stdout
    assert done.stdout.count("AMQ8864I") == 3
    assert "SETALL" in done.stdout.partition("Skipped, since")[2]
    assert "SET AUTHREC OBJTYPE(TOPIC)" in done.stdout
    gone = one.trigmon("mqsc", input="DELETE AUTHREC PROFILE('ORDERS.**') OBJTYPE(QUEUE) GROUP('etl')\n")
    assert "AMQ8863I" in gone.stdout
    wrong = "SET AUTHREC OBJTYPE(QUEUE) GROUP('e') AUTHADD(PUT)\nSET AUTHREC PROFILE(A) OBJTYPE(QUEUE) AUTHADD(PUT)\n"
    wrong += "SET AUTHREC PROFILE(A) OBJTYPE(QUEUE) GROUP('e') AUTHADD(FLY)\nSET AUTHREC PROFILE(A) GROUP('e')\n"
    refused = one.trigmon("mqsc", input=wrong)
    assert refused.returncode == 10
    assert "4 commands have a syntax error" in refused.stdout


FILE = """
- authrec: "ORDERS.**"
  group: etl
  authorities: [put, inquire]
- authrec: SELF
  object_type: qmgr
  user: alice
  authorities: inquire
"""


def test_files_define_records_that_export_writes_back_and_prune_keeps_those_that_no_file_speaks_of(one, tmp_path):
    (tmp_path / "rights.yaml").write_text(FILE)
    (tmp_path / "none.yaml").write_text("- qlocal: PAYROLL\n")
    assert one.trigmon("apply", str(tmp_path / "rights.yaml")).returncode == 0
    assert "nothing to do" in one.trigmon("apply", str(tmp_path / "rights.yaml")).stderr
    give(one, "queue X user bob", "put")
    exported = one.trigmon("export", "--yaml").stdout
    script = one.trigmon("export", "--mqsc").stdout
    assert 'authrec: "ORDERS.**"' in exported
    assert "SET AUTHREC PROFILE('ORDERS.**') OBJTYPE(QUEUE) +\n   GROUP('etl') AUTHADD(PUT,INQ,DSP)" in script
    (tmp_path / "all.yaml").write_text(exported)
    assert "nothing to do" in one.trigmon("apply", str(tmp_path / "all.yaml")).stderr
    kept = one.trigmon("apply", "--prune", "--dry-run", str(tmp_path / "none.yaml"))
    assert "AUTHREC" not in kept.stdout
    pruned = one.trigmon("apply", "--prune", str(tmp_path / "rights.yaml"))
    assert "AUTHREC queue X user bob deleted" in pruned.stdout
    with one.connect() as qm:
        for name in ("queue ORDERS.** group etl", "qmgr SELF user alice"):
            qm.call(Delete(object_type="AUTHREC", name=name))
    assert one.trigmon("mqsc", input=script).returncode == 0
    assert one.trigmon("export", "--mqsc").stdout.count("SET AUTHREC") == 3


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- authrec: A\n  authorities: put\n", "user or group"),
        ("- authrec: A\n  user: a\n  group: b\n  authorities: put\n", "user or group"),
        ("- authrec: A\n  user: a\n  authorities: [fly]\n", "authorities must be some of put, get"),
        ("- authrec: A\n  user: a\n  object_type: topic\n  authorities: put\n", "the type of object is"),
    ],
)
def test_a_file_with_a_wrong_record_is_refused_with_its_line(one, tmp_path, text, problem):
    (tmp_path / "wrong.yaml").write_text(text)
    done = one.trigmon("apply", str(tmp_path / "wrong.yaml"))
    assert done.returncode == 1
    assert problem in done.stderr
    assert "wrong.yaml:" in done.stderr


def test_a_list_of_names_has_rights_of_its_own_which_a_record_for_queues_does_not_give(one):
    with one.connect() as qm:
        qm.call(Define(object_type="NAMELIST", name="NIGHTLY", attributes={"names": ["A", "B"]}))
    give(one, f"queue ** user {ALICE}", "all")
    opened = Open(object_name="NIGHTLY", object_type="NAMELIST", options=int(OpenOption.INQUIRE))
    assert "inquire on namelist NIGHTLY" in refusal(one, opened)
    assert "administer on namelist NIGHTLY" in refusal(one, Alter(object_type="NAMELIST", name="NIGHTLY"))
    give(one, f"namelist NIGHT* user {ALICE}", "inquire")
    assert refusal(one, opened) == ""
    assert "administer on namelist NIGHTLY" in refusal(one, Alter(object_type="NAMELIST", name="NIGHTLY"))
