"""``trigmon apply``: the difference is shown, then made; what is wrong or refused is named."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Trigmon, objects
from trigmon import paths
from trigmon.mq.calls import Display


def test_apply_prints_the_difference_then_makes_it_and_then_has_nothing_to_do(trigmon: Trigmon, tmp_path: Path):
    file = tmp_path / "q.yaml"
    file.write_text("- qlocal: OB.APPLIED\n  trigger_type: depth\n  trigger_depth: 5\n")
    dry = trigmon("apply", "--dry-run", str(file))
    assert dry.stdout == "+ QLOCAL OB.APPLIED define\n    trigger_type: depth\n    trigger_depth: 5\n"
    assert "nothing was changed" in dry.stderr
    assert trigmon("queue", "show", "OB.APPLIED").exit_code == 3
    assert trigmon("apply", str(file)).exit_code == 0
    file.write_text("- qlocal: OB.APPLIED\n  trigger_depth: 6\n")
    (change,) = objects(trigmon("apply", str(file), "--output", "json"))
    assert change == {
        "action": "alter",
        "object_type": "QLOCAL",
        "name": "OB.APPLIED",
        "changes": [{"attribute": "trigger_depth", "before": 5, "after": 6}],
        "where": f"{file}:1",
    }
    again = trigmon("apply", str(file))
    assert (again.exit_code, again.stdout) == (0, "")
    assert "nothing to do" in again.stderr


def test_apply_changes_nothing_when_a_file_is_wrong(trigmon: Trigmon, tmp_path: Path):
    file = tmp_path / "q.yaml"
    file.write_text("- qlocal: OB.WRONG\n- qlocal: OB.WRONG2\n  trigger_typ: first\n")
    result = trigmon("apply", str(file))
    assert result.exit_code == 1
    assert f"{file}:3: QLOCAL OB.WRONG2: unknown key 'trigger_typ'; the nearest known one is" in result.stderr
    assert trigmon("queue", "show", "OB.WRONG").exit_code == 3


def test_apply_says_how_far_it_came_when_it_is_refused(trigmon: Trigmon, tmp_path: Path, qm):
    file = tmp_path / "q.yaml"
    file.write_text("- qlocal: OB.FIRST\n")
    trigmon("queue", "define", "OB.FULL")
    qm.put("OB.FULL", b"m")
    result = trigmon("apply", "--prune", str(file))
    assert result.exit_code == 5
    assert "then delete QLOCAL OB.FULL was refused" in result.stderr


def test_apply_names_each_that_is_refused_and_makes_the_others(daemon, tmp_path: Path):
    one = daemon()
    file = tmp_path / "q.yaml"
    file.write_text("".join(f"- qlocal: OB.{number:03}\n" for number in range(300)))
    with one.connect() as qm:
        for name in ("A.EMPTY", "B.FULL", "C.EMPTY", "D.FULL"):
            one.trigmon("queue", "define", name)
            if name.endswith("FULL"):
                qm.put(name, b"m")
    result = one.trigmon("apply", "--prune", str(file))
    assert result.returncode == 5
    assert "302 of 304 changes were made" in result.stderr
    assert "delete QLOCAL B.FULL, delete QLOCAL D.FULL was refused" in result.stderr
    assert "D.FULL) holds 1 messages" in result.stderr
    made = [line for line in result.stdout.splitlines() if line[0] in "+-~"]
    assert made[:2] == ["+ QLOCAL OB.000 defined", "+ QLOCAL OB.001 defined"]
    assert made[-2:] == ["- QLOCAL A.EMPTY deleted", "- QLOCAL C.EMPTY deleted"]
    assert len(made) == 302


def test_prune_needs_no_file_to_name_a_system_object(daemon, tmp_path: Path):
    one = daemon()
    file = tmp_path / "q.yaml"
    file.write_text("- qlocal: KEPT\n")
    one.trigmon("queue", "define", "OLD")
    done = one.trigmon("apply", "--prune", str(file))
    assert [line for line in done.stdout.splitlines() if line[0] in "+-~"] == [
        "+ QLOCAL KEPT defined",
        "- QLOCAL OLD deleted",
    ]
    assert "SYSTEM.DEFAULT.LOCAL.QUEUE" in one.trigmon("queue", "list", "--system").stdout


def test_the_shipped_definitions_name_a_dead_letter_queue_and_applied_again_change_nothing(daemon):
    one = daemon()
    shipped = [str(paths.shipped("config") / "queues.yaml"), str(paths.shipped("process_defs"))]
    assert one.trigmon("apply", *shipped).returncode == 0
    with one.connect() as qm:
        (row,) = qm.call(Display(object_type="QMGR")).rows
    assert row["dead_letter_q_name"] == "SYSTEM.DEAD.LETTER.QUEUE"
    again = one.trigmon("apply", "--dry-run", *shipped, "--output", "json")
    assert (again.returncode, again.stdout) == (0, "")
