"""A file that is no scenario is refused with exit 2, naming file, line and key, and the nearest known key."""

import pytest

from trigmon.simulate.run_files import play_files
from trigmon.simulate.scenario_files import read_scenarios


def refused(tmp_path, text, store="memory"):
    """What is said of a file with this text, which must be refused and not be played."""
    file = tmp_path / "s.yaml"
    file.write_text(text)
    out, err = [], []
    assert play_files([str(file)], store, "table", out.append, err.append) == 2
    assert out == []
    (said,) = err
    assert said.startswith(f"{file}:")
    return said.removeprefix(f"{file}:")


STEPS = "scenario: s\nsetup: DEFINE QLOCAL(Q)\nsteps:\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("scenario: s\nstep: []\n", "2: a scenario has no key step; did you mean steps?"),
        ("steps: []\n", "1: a scenario needs the key scenario"),
        ("scenario: s\n", "1: a scenario needs the key steps"),
        ("scenario: s\nsteps: {}\n", "2: steps is a list, not {}"),
        ("- scenario: s\n", "1: a scenario is a mapping of scenario, source, qmgrs, setup, steps, not"),
        ("# nothing\n", "1: there is no scenario in it"),
        ("scenario: a\nscenario: b\nsteps: []\n", "2: the key 'scenario' was already given in line 1"),
        ("scenario: [1\n", "2: "),
        ("scenario: a\nqmgrs: []\nsteps: []\n", "2: qmgrs names at least one queue manager"),
        ("scenario: a\nqmgrs: ['Q 1']\nsteps: []\n", "2: qmgrs: 'Q 1' is no name of a queue manager"),
        ("scenario: a\nsteps: []\n---\nscenario: b\nstep: []\n", "5: a scenario has no key step"),
    ],
)
def test_the_file_itself(tmp_path, text, said):
    assert refused(tmp_path, text).startswith(said)


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("- putt: {queue: Q}", "4: step 1 has no key putt; did you mean put?"),
        ("- as: me", "4: step 1 has no verb; verbs are mqsc, open, close, put, get, "),
        ("- {commit: {}, backout: {}}", "4: step 1 has the verbs commit and backout: one a step"),
        ("- commit", "4: step 1 is a mapping with one verb, not 'commit'"),
        ("- put: {queue: Q, data: m, prioritty: 1}", "4: put has no key prioritty; did you mean priority?"),
        ("- put:\n    queue: Q\n    dta: m", "6: put has no key dta; did you mean data?"),
        ("- put: {queue: Q, xyz: m}", "4: put has no key xyz; the nearest known is "),
        ("- xyz: {}", "4: step 1 has no key xyz; the nearest known is "),
        ("- put: {data: m}", "4: put needs the key queue"),
        ("- put: Q", "4: put is a mapping of queue, handle, data, size"),
        ("- put: {queue: Q, data: m, size: 3}", "4: put has data and size: one of them"),
        ("- put: {queue: Q, size: -1}", "4: size is a number from 0, not -1"),
        ("- put: {queue: Q, data: [1]}", "4: data is text, not [1]: quote it"),
        ("- put: {queue: Q, persistence: often}", "4: persistence does not know 'often'"),
        ("- put: {queue: Q, msg_id: '1234567890123456789012345'}", "4: msg_id: an id has at most 24 bytes, not 25"),
        ("- put: {queue: Q, options: [sinkpoint]}", "4: options does not know sinkpoint; did you mean syncpoint?"),
        ("- put:\n    queue: Q\n    options:\n    - syncpoint\n    - wait", "8: options does not know wait"),
        ("- put: {queue: Q, options: syncpoint}", "4: options is a list, not 'syncpoint'"),
        ("- open: {queue: Q}", "4: open needs the key for"),
        ("- open: {queue: Q, for: [input]}", "4: for does not know input; did you mean input_"),
        ("- get: {queue: Q, match: {message_id: X}}", "4: match has no key message_id; did you mean msg_id?"),
        ("- get: {queue: Q, wait_interval: soon}", "4: wait_interval is a whole number, not 'soon'"),
        ("- set: {queue: Q}", "4: set names at least one of inhibit_get, inhibit_put, trigger_control"),
        ("- set: {queue: Q, trigger_type: often}", "4: trigger_type does not know 'often'; known are none, first"),
        ("- commit: {queue: Q}", "4: commit has no key queue"),
        ("- advance: -5", "4: advance is a number from 0, not -5"),
        ("- restart: QM9", "4: QM9 is none of the scenario's queue managers; did you mean QM1?"),
        ("- crash: QM2", "4: QM2 is none of the scenario's queue managers; did you mean QM1?"),
        ("- check: {queue: Q, CURDEPHT: 1}", "4: check has no key CURDEPHT; did you mean CURDEPTH?"),
        ("- check: {queue: Q, TRIGTYPE: OFTEN}", "4: TRIGTYPE is NONE or FIRST or EVERY or DEPTH, not 'OFTEN'"),
        ("- check: {CURDEPTH: 1}", "4: check needs the key queue"),
        ("- reserve: {consumer: JOB}", "4: reserve needs the key queue"),
        ("- reserve: {queue: Q}", "4: reserve needs the key consumer"),
        ("- reserve: {queue: Q, consumer: J, whole_groups: 1}", "4: whole_groups is true or false, not 1"),
        ("- settle: {}", "4: settle needs the key consumer"),
        ("- settle: {consumer: J, form: 1}", "4: settle has no key form; did you mean from?"),
        (
            "- read_reserved: {consumer: J}\n  returns: {text: a}",
            "5: returns has no key text; known are ",
        ),
        ("- reject: {consumer: J}", "4: reject needs the key ordinal"),
        ("- explain: {queue: Q, priority: high}", "4: priority does not know 'high'"),
        ("- mqsc: [DEFINE]", "4: mqsc is text"),
        ("- commit: {}\n  on: QM2", "5: QM2 is none of the scenario's queue managers; did you mean QM1?"),
    ],
)
def test_a_verb_and_its_arguments(tmp_path, step, said):
    assert refused(tmp_path, STEPS + step + "\n").startswith(said)


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("- commit: {}\n  trigers: []", "5: step 1 has no key trigers; did you mean triggers?"),
        ("- commit: {}\n  triggers: Q", "5: triggers is a list, not 'Q'"),
        ("- commit: {}\n  triggers:\n  - {q_nam: Q}", "6: a trigger message has no key q_nam; did you mean q_name?"),
        ("- commit: {}\n  triggers: [{on: QM4}]", "5: QM4 is none of the scenario's queue managers"),
        ("- commit: {}\n  triggers: [{appl_type: unx}]", "5: appl_type does not know 'unx'; did you mean unix?"),
        ("- commit: {}\n  returns: {data: m}", "5: returns is an expectation of get, reserve, "),
        ("- put: {queue: Q}\n  fires: true", "5: fires is an expectation of explain, not of put"),
        ("- explain: {queue: Q}\n  fires: yes", "5: fires is true or false, not 'yes'"),
        ("- explain: {queue: Q}\n  fails: ['1']", "5: fails: 1 is none of the conditions 2, 3, 4"),
        ("- get: {queue: Q}\n  reason: NO_MESSAGE_AVAILABLE", "5: reason does not know NO_MESSAGE_AVAILABLE; did you "),
        ("- get: {queue: Q}\n  warning: NONE", "5: warning does not know NONE"),
        ("- get: {queue: Q}\n  reason: Q_FULL\n  warning: Q_FULL", "6: a call has a reason or a warning, not both"),
        ("- get: {queue: Q}\n  returns: {dat: m}", "5: returns has no key dat; did you mean data?"),
        ("- get: {queue: Q}\n  returns: {priority: high}", "5: priority does not know 'high'"),
    ],
)
def test_an_expectation(tmp_path, step, said):
    assert refused(tmp_path, STEPS + step + "\n").startswith(said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "scenario: s\nsetup: |\n  DEFINE PROCESS(A) +\n   QSGDISP(GROUP)\nsteps: []\n",
            "4: setup: near QSGDISP(GROUP): QSGDISP",
        ),
        (STEPS + "- check: {queue: Q, INDXTYPE: NONE}\n", "4: check: INDXTYPE"),
    ],
)
def test_what_comes_later_is_refused_by_its_name(tmp_path, text, said):
    found = refused(tmp_path, text)
    assert found.startswith(said)
    assert found.endswith("comes with a later release of trigmon")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("DEFINE QLOCAL(A) CLUSTER(C)", "2: setup: near CLUSTER(C): there are no clusters here"),
        ("DEFINE QLOCAL(A) INDXTYPE(MSGID)", "2: setup: near INDXTYPE(MSGID): comes with a later release of trigmon"),
        ("DEFINE CHANNEL(A) CHLTYPE(SDR)", "2: setup: near DEFINE CHANNEL(A): there are no channels here"),
    ],
)
def test_what_has_no_meaning_here_would_make_another_scenario_and_is_refused(tmp_path, text, said):
    assert refused(tmp_path, f"scenario: s\nsetup: {text}\nsteps: []\n") == said


def test_what_stands_at_mqs_default_makes_no_other_scenario(tmp_path):
    file = tmp_path / "s.yaml"
    file.write_text("scenario: s\nsetup: DEFINE QLOCAL(A) CLUSTER(' ') ACCTQ(QMGR)\nsteps: []\n")
    assert play_files([str(file)], "memory", "table", lambda line: None, lambda line: None) == 0


def test_a_store_that_cannot_be_had_is_refused(tmp_path):
    file = tmp_path / "s.yaml"
    file.write_text("scenario: s\nsteps: []\n")
    for store, dsn, said in [
        ("disk", "", "--store is memory or sqlite or postgres, not disk"),
        ("postgres", f"host={tmp_path} dbname=x", "--store postgres: schema trigmon_simulate_"),
    ]:
        err = []
        assert play_files([str(file)], store, "table", err.append, err.append, dsn) == 2
        assert [line[: len(said)] for line in err] == [said]


def test_a_file_that_is_not_there_is_refused(tmp_path):
    err = []
    assert play_files([str(tmp_path / "none.yaml")], "memory", "table", err.append, err.append) == 2
    assert err == [f"{tmp_path / 'none.yaml'}: it cannot be read: No such file or directory"]


def test_nothing_is_played_when_one_of_the_files_is_no_scenario(tmp_path):
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text("scenario: s\nsteps: []\n")
    bad.write_text("scenario: s\n")
    out, err = [], []
    assert play_files([str(good), str(bad)], "memory", "table", out.append, err.append) == 2
    assert out == []
    assert err == [f"{bad}:1: a scenario needs the key steps"]


def test_on_off_yes_and_no_are_words_as_key_and_as_value():
    (scenario,) = read_scenarios(
        """
        scenario: no
        steps:
        - put: {queue: on, data: off}
          on: QM1
        - set: {queue: yes, trigger_control: off}
        - check: {queue: no, TRIGGER: NO}
        """,
        "s.yaml",
    )
    assert scenario.title == "no"
    put, setting, check = scenario.steps
    assert (put.q_mgr, put.act.queue, put.act.data) == ("QM1", "on", b"off")
    assert (setting.act.handle, setting.act.attributes) == ("yes", {"trigger_control": "off"})
    assert check.act.queue == "no"


def test_several_documents_are_several_scenarios_each_with_its_line():
    text = "scenario: a\nsteps: []\n---\n\nscenario: b\nsource: where\nsteps:\n- commit: {}\n- backout: {}\n"
    one, two = read_scenarios(text, "s.yaml")
    assert (one.title, one.line, one.source, one.q_mgrs) == ("a", 1, "", ("QM1",))
    assert (two.title, two.line, two.source) == ("b", 5, "where")
    assert [(s.number, s.line, s.verb, s.application) for s in two.steps] == [
        (1, 8, "commit", "app"),
        (2, 9, "backout", "app"),
    ]


def test_enumerated_fields_may_be_words_or_ibms_numbers():
    text = STEPS + "".join(
        f"- put: {{queue: Q, msg_type: {kind}, persistence: {per}, feedback: {feedback}, expiry: {expiry}}}\n"
        for kind, per, feedback, expiry in [("report", "persistent", "q_full", "unlimited"), (4, 1, 2053, -1)]
    )
    (scenario,) = read_scenarios(text, "s.yaml")
    one, two = (step.act.descriptor for step in scenario.steps)
    assert one == two
    assert (one.msg_type, one.persistence, one.feedback, one.expiry) == (4, 1, 2053, -1)
