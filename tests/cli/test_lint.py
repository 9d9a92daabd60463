from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Trigmon, run_cli
from trigmon import paths

DUMPS = Path(__file__).parents[1] / "mqsc" / "dumps"
SOUND = """\
- qmgr:
  trigger_interval: 1000
  dead_letter_q_name: SYSTEM.DEAD.LETTER.QUEUE
- process: P
  appl_id: program
- qlocal: ASIDE
- qlocal: Q
  trigger_control: on
  process_name: P
  initiation_q_name: SYSTEM.DEFAULT.INITIATION.QUEUE
  def_persistence: persistent
  backout_threshold: 3
  backout_requeue_q_name: ASIDE
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "objects.yaml"
    made.write_text(SOUND)
    return made


def test_the_definitions_we_ship_are_clean():
    result = run_cli("lint", str(paths.shipped("config") / "queues.yaml"), str(paths.shipped("process_defs")))
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "nothing found in 8 objects\n"


def test_a_directory_of_ours_leaves_the_settings_out():
    assert run_cli("lint", str(paths.shipped("config")), str(paths.shipped("process_defs"))).exit_code == 0


def test_what_is_found_in_a_file_is_reported_with_its_line_risk_and_remedy(file: Path):
    file.write_text(SOUND.replace("  backout_threshold: 3\n", ""))
    result = run_cli("lint", str(file))
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        f"QLOCAL Q: no-backout-threshold  ({file}:7)",
        "    found   BOTHRESH(0)",
        "    risk    A message that makes its program fail makes the next one fail too, for ever,"
        " with all that lies behind it.",
        "    remedy  ALTER QLOCAL(Q) BOTHRESH(3) BOREQ(QMGR) BOQNAME(ASIDE)",
    ]
    assert result.stderr == "1 finding in 4 objects\n"


def test_in_json_a_finding_is_an_object_a_line(file: Path):
    file.write_text("- qlocal: Q\n  trigger_control: on\n")
    result = run_cli("lint", str(file), "--output", "json")
    assert result.exit_code == 1
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert all(set(row) == {"rule", "object_type", "name", "found", "risk", "remedy", "where"} for row in rows)
    assert [(row["rule"], row["object_type"], row["where"]) for row in rows] == [
        ("trigger-without-process", "QLOCAL", f"{file}:1"),
        ("trigger-without-initiation-queue", "QLOCAL", f"{file}:1"),
        ("first-without-interval", "QMGR", ""),
        ("triggered-work-not-persistent", "QLOCAL", f"{file}:1"),
        ("no-dead-letter-queue", "QMGR", ""),
        ("no-backout-threshold", "QLOCAL", f"{file}:1"),
    ]


def test_a_rule_can_be_left_out_and_must_be_one(file: Path):
    file.write_text(SOUND.replace("  def_persistence: persistent\n", ""))
    assert run_cli("lint", str(file)).exit_code == 1
    assert run_cli("lint", str(file), "--ignore", "triggered-work-not-persistent").exit_code == 0
    wrong = run_cli("lint", str(file), "--ignore", "triggered-work-not-persistant")
    assert wrong.exit_code == 2
    assert "did you mean 'triggered-work-not-persistent'?" in wrong.stderr


def test_mqsc_is_read_as_a_queue_manager_would_and_what_is_not_here_is_named(file: Path):
    script = file.with_name("dump.mqsc")
    script.write_text(
        "* a dump\nDEFINE CHANNEL(C) CHLTYPE(SVRCONN)\nDEFINE QLOCAL(R) +\n  LIKE(Q) REPLACE\nDISPLAY QUEUE(*)\n"
        "ALTER QLOCAL(R) DEFPSIST(NO)\n"
    )
    result = run_cli("lint", str(file), str(script))
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0] == f"QLOCAL R: triggered-work-not-persistent  ({script}:3)"
    assert f"{script}:2: left out: " in result.stderr
    alone = run_cli("lint", str(file.parent))
    assert alone.stdout == result.stdout


@pytest.mark.parametrize("dump", sorted(DUMPS.glob("*.mqsc")), ids=lambda path: path.stem)
def test_a_dump_of_mq_s_own_is_linted_as_it_stands(dump: Path):
    result = run_cli("lint", str(dump), "--output", "json")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 1, result.stderr
    assert {row["where"].rpartition(":")[0] for row in rows} <= {str(dump), ""}
    assert all("left out: " in line for line in result.stderr.splitlines()[:-1])


@pytest.mark.parametrize(
    ("name", "text", "place", "expected"),
    [
        ("objects.yaml", "- qlocal: Q\n  trigger_contrl: on\n", ":2", "QLOCAL Q: unknown key 'trigger_contrl'"),
        ("objects.yaml", "- qlocal: Q\n- qlocal: Q\n", ":2", "QLOCAL Q was already defined"),
        ("objects.yaml", "- qlocal: SYSTEM.DEFAULT.ALIAS.QUEUE\n", ":1", "exists as a QALIAS"),
        ("objects.yaml", "- qlocal: Q\n- qalias: Q\n", ":2", "QALIAS Q was already defined"),
        ("objects.yaml", "- process: P\n  appl_id: x\n  retry: many\n", ":3", "retry must be 0 to 10000"),
        ("o.mqsc", "DEFINE QLOCAL(Q) TRIGTYPE(ALWAYS)\n", ":1", "line 1, near"),
        ("o.mqsc", "DEFINE QLOCAL(Q)\nDEFINE QLOCAL(Q)\n", ":2", "MQRC_OBJECT_ALREADY_EXISTS"),
        ("o.mqsc", "ALTER QLOCAL(NONE) MAXDEPTH(1)\n", ":1", "MQRC_UNKNOWN_OBJECT_NAME"),
        ("o.mqsc", "DEFINE CHANEL(C)\n", ":1", "not CHANEL"),
        ("o.mqsc", b"* caf\xe9\nDEFINE QLOCAL(Q) DESCR('caf\xe9')\n", ":2", "no UTF-8"),
    ],
)
def test_what_is_wrong_is_a_finding_and_the_rest_is_looked_at(
    tmp_path: Path, name: str, text: str | bytes, place: str, expected: str
):
    file, other = tmp_path / name, tmp_path / "z.mqsc"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    other.write_text("DEFINE QLOCAL(LATER) TRIGGER\n")
    result = run_cli("lint", str(file), str(other), "--output", "json")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 1, result.stderr
    (fault,) = [row for row in rows if row["rule"] == "not-loaded"]
    assert fault["where"] == f"{file}{place}"
    assert expected in fault["found"]
    assert ("trigger-without-process", "LATER") in {(row["rule"], row["name"]) for row in rows}
    ignored = run_cli("lint", str(file), str(other), "--ignore", "not-loaded")
    assert "not-loaded" not in ignored.stdout


@pytest.mark.parametrize("script", sorted(DUMPS.parent.joinpath("scripts").glob("*.mqsc")), ids=lambda path: path.stem)
def test_a_script_that_names_what_is_not_here_has_no_fault(script: Path):
    result = run_cli("lint", str(script))
    assert result.exit_code in (0, 1), result.stderr
    assert "not-loaded" not in result.stdout


def test_a_file_that_is_not_there_or_no_yaml_makes_the_result_incomplete(tmp_path: Path):
    assert run_cli("lint", str(tmp_path / "none.yaml")).exit_code == 2
    assert run_cli("lint", str(tmp_path / "none.mqsc")).exit_code == 2
    assert run_cli("lint", str(tmp_path)).exit_code == 2
    (tmp_path / "torn.yaml").write_text("- qlocal: [\n")
    alone = run_cli("lint", str(tmp_path / "torn.yaml"))
    assert (alone.exit_code, alone.stdout) == (2, "")
    (tmp_path / "z.mqsc").write_text("DEFINE QLOCAL(LATER) TRIGGER\n")
    both = run_cli("lint", str(tmp_path))
    assert both.exit_code == 2
    assert "torn.yaml" in both.stderr
    assert "QLOCAL LATER: trigger-without-process" in both.stdout


def test_no_answer_is_not_shown_as_nothing_found():
    result = run_cli("lint", "--qmgr", "NOBODY")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "MQRC_Q_MGR_NOT_AVAILABLE" in result.stderr


def test_the_running_queue_manager_is_looked_at_and_its_remedies_pasted(trigmon: Trigmon):
    assert trigmon("lint").exit_code == 0
    trigmon("queue", "define", "LINT.Q", "TRIGGER")
    result = trigmon("lint", "--output", "json")
    assert result.exit_code == 1
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert {row["name"] for row in rows} == {"LINT.Q", "QM1"}
    pasted = trigmon("mqsc", input="\n".join(row["remedy"] for row in rows))
    assert pasted.exit_code == 0, pasted.stdout
    assert trigmon("lint").exit_code == 0
