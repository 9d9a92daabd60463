"""A play says of every expectation whether it held, as a table and as JSON lines, and its exit status sums it up."""

import json

import psycopg
import pytest

from tests.postgres import shared
from trigmon.mq.calls import Define, Display, Put
from trigmon.simulate.in_process import InProcess
from trigmon.simulate.run_files import play_files
from trigmon.simulate.scenario_stores import InSchema

TRIGGERED = """\
setup: |
  DEFINE QLOCAL(INITQ)
  DEFINE PROCESS(PROC) APPLTYPE(UNIX) APPLICID('/bin/true')
  DEFINE QLOCAL(Q) TRIGGER TRIGTYPE(EVERY) INITQ(INITQ) PROCESS(PROC)
steps:
- {open: {queue: INITQ, for: [input_shared]}, as: mon}
"""
PLAIN = "setup: DEFINE QLOCAL(Q)\nsteps:\n"


class Stageplay:
    """Plays texts and keeps what was said: one object a scenario, and what went to each stream."""

    def __init__(self, directory):
        self.file = directory / "s.yaml"

    def __call__(self, *texts, output="json", store="memory", postgres=""):
        self.file.write_text("---\n".join(f"scenario: number {n}\n{text}" for n, text in enumerate(texts, 1)))
        self.out, self.err = [], []
        self.code = play_files([str(self.file)], store, output, self.out.append, self.err.append, postgres)
        return [json.loads(line) for line in self.out] if output == "json" else self.out

    def failure(self, text):
        """What is said of the last step of a scenario that fails there and nowhere else."""
        (result,) = self(text)
        assert [step["passed"] for step in result["steps"]] == [True] * (len(result["steps"]) - 1) + [False]
        assert (self.code, result["passed"], self.err) == (1, False, ["0 passed, 1 failed"])
        return result["steps"][-1]["failure"]


@pytest.fixture
def play(tmp_path):
    return Stageplay(tmp_path)


@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_json_is_one_object_a_scenario_and_the_summary_goes_to_standard_error(play, store):
    one, two = play(
        TRIGGERED + "- {put: {queue: Q, data: m}, triggers: [Q]}\n",
        PLAIN + "- {check: {queue: Q, CURDEPTH: 1}}\n",
        store=store,
    )
    assert play.code == 1
    assert play.err == ["1 passed, 1 failed"]
    trigger = {
        "on": "QM1",
        "q_name": "Q",
        "process_name": "PROC",
        "trigger_data": "",
        "appl_type": "unix",
        "appl_id": "/bin/true",
        "env_data": "",
        "user_data": "",
    }
    assert one == {
        "scenario": "number 1",
        "file": str(play.file),
        "passed": True,
        "steps": [
            {"step": 1, "verb": "open", "passed": True, "triggers": [], "failure": None},
            {"step": 2, "verb": "put", "passed": True, "triggers": [trigger], "failure": None},
        ],
    }
    assert two["steps"] == [
        {"step": 1, "verb": "check", "passed": False, "triggers": [], "failure": "CURDEPTH is 0, expected 1"}
    ]


def test_the_table_names_each_scenario_each_failure_with_its_line_and_ends_with_the_summary(play):
    said = play(PLAIN + "- commit: {}\n", PLAIN + "- commit: {}\n- {check: {queue: Q, CURDEPTH: 1}}\n", output="table")
    assert said == [
        "passed  number 1",
        "FAILED  number 2",
        f"        {play.file}:10: step 2, check: CURDEPTH is 0, expected 1",
        "1 passed, 1 failed",
    ]
    assert play.err == []
    assert play.code == 1


def test_when_all_holds_the_exit_status_is_zero(play):
    play(PLAIN + "- commit: {}\n", output="table")
    assert (play.code, play.out[-1]) == (0, "1 passed, 0 failed")


def test_several_files_have_one_summary(tmp_path):
    files = []
    for name in ("a", "b"):
        (tmp_path / name).write_text("scenario: s\nsteps: []\n")
        files.append(str(tmp_path / name))
    out = []
    assert play_files(files, "memory", "table", out.append, out.append) == 0
    assert out == ["passed  s", "passed  s", "2 passed, 0 failed"]


@pytest.mark.parametrize(
    ("setup", "said"),
    [
        ("DEFINE QLOCAL(Q)\n  DEFINE QLOCAL(Q)", "the setup failed: MQRC_OBJECT_ALREADY_EXISTS (2100): "),
        ("DEFINE QLOCAL(Q)\n  DEFINE QLOCAL(R) TRIGTYPE(OFTEN)", "the setup failed: MQRCCF_"),
        ("DEFINE QLOCAL(Q\n", "the setup failed: MQRCCF_PARM_SYNTAX_ERROR (3097): "),
    ],
)
def test_a_setup_that_fails_is_step_0_and_nothing_follows(play, setup, said):
    (result,) = play(f"setup: |\n  {setup}\nsteps:\n- {{put: {{queue: Q}}, reason: Q_FULL}}\n")
    (step,) = result["steps"]
    assert (step["step"], step["passed"], result["passed"], play.code) == (0, False, False, 1)
    assert step["failure"].startswith(said)


def test_a_failed_step_does_not_end_the_play(play):
    (result,) = play(PLAIN + "- {check: {queue: Q, CURDEPTH: 1}}\n- {check: {queue: Q, CURDEPTH: 0}}\n")
    assert [step["passed"] for step in result["steps"]] == [False, True]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TRIGGERED + "- {put: {queue: Q}, triggers: []}\n", "triggers: expected none, seen Q"),
        (TRIGGERED + "- {put: {queue: Q}, triggers: [R]}\n", "triggers: expected R, seen Q"),
        (TRIGGERED + "- {put: {queue: Q}, triggers: [Q, Q]}\n", "triggers: expected Q, Q, seen Q"),
        (
            TRIGGERED + "- {put: {queue: Q}, triggers: [{q_name: Q, appl_id: /bin/false}]}\n",
            "triggers: expected Q (appl_id='/bin/false'), seen Q",
        ),
        (TRIGGERED + "- {explain: {queue: Q}, fires: false}\n", "fires: expected false, explained true"),
        (
            TRIGGERED
            + "- mqsc: ALTER QLOCAL(Q) NOTRIGGER GET(DISABLED) TRIGMPRI(5)\n- {explain: {queue: Q}, fails: [10, 9]}\n",
            "fails: expected 9, 10, explained 2, 5, 9",
        ),
        (PLAIN + "- {get: {queue: Q}}\n", "it failed: MQRC_HOBJ_ERROR (2019): the application has not opened Q"),
        (PLAIN + "- {put: {queue: R}}\n", "it failed: MQRC_UNKNOWN_OBJECT_NAME (2085): "),
        (PLAIN + "- {put: {queue: Q}, reason: Q_FULL}\n", "reason: expected Q_FULL (2053), but it completed"),
        (
            PLAIN + "- {put: {queue: R}, reason: Q_FULL}\n",
            "expected Q_FULL (2053), but it failed: MQRC_UNKNOWN_OBJECT_NAME (2085): ",
        ),
        (
            PLAIN + "- {put: {queue: Q}, warning: PRIORITY_EXCEEDS_MAXIMUM}\n",
            "warning: expected PRIORITY_EXCEEDS_MAXIMUM (2049), but it completed without a warning",
        ),
        (PLAIN + "- {put: {queue: Q, priority: 10}}\n", "it completed with PRIORITY_EXCEEDS_MAXIMUM (2049)"),
        (
            PLAIN + "- {put: {queue: Q, priority: 10}, reason: PRIORITY_EXCEEDS_MAXIMUM}\n",
            "reason: expected PRIORITY_EXCEEDS_MAXIMUM (2049), but it completed",
        ),
        (
            PLAIN
            + "- {put: {queue: Q, data: m, correl_id: C1}}\n- {open: {queue: Q, for: [browse]}}\n"
            + "- {get: {queue: Q, options: [browse_first]}, returns: {data: n, length: 1, correl_id: C2}}\n",
            "returns: expected data 'n', got 'm'; returns: expected correl_id 'C2', got 'C1'",
        ),
        (
            PLAIN + "- {check: {queue: Q, CURDEPTH: 0, TRIGTYPE: DEPTH, TRIGGER: 'YES', DESCR: x}}\n",
            "DESCR is '', expected 'x'; TRIGGER is NOTRIGGER, expected TRIGGER; TRIGTYPE is FIRST, expected DEPTH",
        ),
        (PLAIN + "- {check: {queue: R}}\n", "it failed: MQRC_UNKNOWN_OBJECT_NAME (2085): R"),
        (
            "setup: |\n  DEFINE QALIAS(A) TARGET(Q)\nsteps:\n- {check: {queue: A, CURDEPTH: 0}}\n",
            "there is no CURDEPTH, expected 0",
        ),
        (PLAIN + "- {mqsc: DELETE QLOCAL(R)}\n", "it failed: MQRC_UNKNOWN_OBJECT_NAME (2085): "),
        (PLAIN + "- {mqsc: ALTER QLOCAL(Q) MAXDEPTH(-1)}\n", "it failed: "),
        (
            PLAIN + "- {open: {queue: Q, for: [input_shared]}}\n- {get: {queue: Q, wait_interval: -1}}\n",
            "it failed: MQRC_UNEXPECTED_ERROR (2195): it waits without end",
        ),
    ],
)
def test_what_does_not_hold_is_reported_in_words(play, text, said):
    assert play.failure(text).startswith(said)


def test_trigger_messages_are_compared_in_any_order_and_by_the_fields_that_are_named(play):
    play(
        TRIGGERED
        + "- {put: {queue: Q, options: [syncpoint]}, triggers: []}\n"
        + "- mqsc: ALTER QLOCAL(Q) TRIGDATA(LATER)\n"
        + "- {put: {queue: Q, options: [syncpoint]}, triggers: []}\n"
        + "- {commit: {}, triggers: [{trigger_data: LATER}, {on: QM1, q_name: Q, appl_type: 6}]}\n"
    )
    assert play.code == 0


def test_a_loose_item_leaves_the_trigger_message_that_a_strict_one_needs(play):
    play(
        TRIGGERED
        + "- {put: {queue: Q, options: [syncpoint]}}\n"
        + "- mqsc: ALTER QLOCAL(Q) TRIGDATA(LATER)\n"
        + "- {put: {queue: Q, options: [syncpoint]}}\n"
        + "- {commit: {}, triggers: [Q, {trigger_data: ''}]}\n"
    )
    assert play.code == 0


def test_several_commands_of_a_step_run_up_to_the_first_that_fails(play):
    play(
        PLAIN
        + "- mqsc: |\n    DEFINE QLOCAL(R)\n    DEFINE QLOCAL(Q)\n    DEFINE QLOCAL(S)\n"
        + "  reason: OBJECT_ALREADY_EXISTS\n"
        + "- {check: {queue: R, CURDEPTH: 0}}\n"
        + "- {check: {queue: S}, reason: UNKNOWN_OBJECT_NAME}\n"
    )
    assert play.code == 0


def test_flags_and_uncommitted_work_compare_in_each_of_their_words(play):
    play(
        PLAIN
        + "- {put: {queue: Q, options: [syncpoint]}}\n"
        + "- {check: {queue: Q, TRIGGER: NO, SHARE: YES, UNCOM: 1, TYPE: QLOCAL, DEFTYPE: PREDEFINED}}\n"
        + "- {check: {queue: Q, TRIGGER: NOTRIGGER, SHARE: SHARE, UNCOM: YES, TYPE: LOCAL, GET: ENABLED}}\n"
        + "- {commit: {}}\n"
        + "- {check: {queue: Q, UNCOM: NO}}\n"
    )
    assert play.code == 0


def test_a_put_goes_through_the_handle_that_is_open_for_output_else_by_name(play):
    play(
        PLAIN
        + "- {open: {queue: Q, for: [input_shared]}}\n"
        + "- {put: {queue: Q, data: by name}}\n"
        + "- {put: {handle: Q, data: m}, reason: NOT_OPEN_FOR_OUTPUT}\n"
        + "- {open: {queue: Q, for: [output], handle: out}}\n"
        + "- {put: {handle: out, data: by handle}}\n"
        + "- {check: {queue: Q, CURDEPTH: 2, OPPROCS: 1}}\n"
    )
    assert play.code == 0


def test_a_queue_opened_twice_under_one_name_is_closed_newest_first(play):
    play(
        PLAIN
        + "- {open: {queue: Q, for: [output]}}\n"
        + "- {open: {queue: Q, for: [input_shared]}}\n"
        + "- {put: {queue: Q, data: m}}\n"
        + "- {get: {queue: Q}}\n"
        + "- {close: {queue: Q}}\n"
        + "- {check: {queue: Q, IPPROCS: 0, OPPROCS: 1}}\n"
        + "- {get: {queue: Q}, reason: NOT_OPEN_FOR_INPUT}\n"
    )
    assert play.code == 0


def test_each_scenario_has_a_queue_manager_of_its_own(play):
    one, two = play(PLAIN + "- {put: {queue: Q}}\n", PLAIN + "- {check: {queue: Q, CURDEPTH: 0}}\n")
    assert (one["passed"], two["passed"]) == (True, True)


def test_the_sqlite_store_leaves_no_directory_behind(play, tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    play(PLAIN + "- {put: {queue: Q, persistence: persistent}}\n- crash: QM1\n- restart: QM1\n", store="sqlite")
    assert play.code == 0
    assert list(scratch.iterdir()) == []


def test_the_schema_of_a_rehearsal_is_gone_behind_it(play):
    story = PLAIN + "- {put: {queue: Q, persistence: persistent}}\n- crash: QM1\n- {check: {queue: Q, CURDEPTH: 1}}\n"
    with psycopg.connect(shared().dsn, autocommit=True) as connection:
        before = connection.execute("SELECT nspname FROM pg_namespace").fetchall()
        play(story, PLAIN + "- {check: {queue: Q, CURDEPTH: 0}}\n", store="postgres", postgres=shared().dsn)
        assert connection.execute("SELECT nspname FROM pg_namespace").fetchall() == before
    assert (play.code, play.err) == (0, ["2 passed, 0 failed"])


def test_a_group_has_a_schema_on_postgresql_which_is_empty_for_each_scenario_and_gone_behind_them(play):
    story = (
        "qmgrs: [QM1, QM2]\n"
        "setup: DEFINE QLOCAL(Q) QSGDISP(SHARED)\n"
        "steps:\n"
        "- {check: {queue: Q, CURDEPTH: 0}}\n"
        "- {put: {queue: Q, data: m}, as: a, on: QM2}\n"
        "- {put: {queue: Q, data: n, options: [syncpoint]}, as: b, on: QM2}\n"
        "- crash: QM2\n"
        "- {check: {queue: Q, CURDEPTH: 1, UNCOM: 'NO'}}\n"
    )
    with psycopg.connect(shared().dsn, autocommit=True) as connection:
        before = connection.execute("SELECT nspname FROM pg_namespace").fetchall()
        play(story, story, PLAIN + "- {check: {queue: Q, CURDEPTH: 0}}\n", store="postgres", postgres=shared().dsn)
        assert connection.execute("SELECT nspname FROM pg_namespace").fetchall() == before
    assert (play.code, play.err) == (0, ["3 passed, 0 failed"])


def test_a_group_of_one_outlives_its_member_on_postgresql():
    schemas = [InSchema(shared().dsn)]
    stage = InProcess(["QM1"], schemas, in_group=True)
    stage.command("QM1", Define(object_type="QLOCAL", name="Q", attributes={"qsg_disp": "shared"}))
    stage.perform("QM1", "a", Put(q_name="Q"))
    stage.perform("QM1", "a", Put(q_name="Q", options=2))
    stage.crash("QM1")
    (row,) = stage.command("QM1", Display(object_type="QLOCAL", name="Q")).rows
    assert (row["current_q_depth"], row["uncommitted_msgs"]) == (1, 0)
    stage.close()
    schemas[0].end()


def test_ending_what_never_began_is_no_failure(play):
    play(PLAIN + "- kill: {}\n- disconnect: {}\n- kill: {}\n")
    assert play.code == 0
