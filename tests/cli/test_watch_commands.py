"""trigmon watch: list, show, pause and resume, and what explain, lint and status say of watches."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Trigmon, objects
from tests.waiting import until


def row_of(trigmon: Trigmon, name: str) -> dict[str, object]:
    (row,) = objects(trigmon("watch", "show", name, "--output", "json"))
    return row


def test_a_watch_is_defined_listed_shown_paused_and_explained(trigmon: Trigmon, tmp_path: Path):
    trigmon("queue", "define", "WA.Q")
    defined = trigmon("watch", "define", "WA.W", f"directory={tmp_path}", "pattern=*.csv", "quiet=0", "queue=WA.Q")
    assert (defined.exit_code, defined.stdout) == (0, "WATCH WA.W defined\n")
    (tmp_path / "a.csv").write_text("a")
    until(lambda: row_of(trigmon, "WA.W")["messages_put"] == 1)
    (listed,) = objects(trigmon("watch", "list", "WA.*", "--output", "json"))
    assert (listed["state"], listed["last_file"], listed["problem"]) == ("watching", "a.csv", "")
    assert f"watch WA.W: the files *.csv of {tmp_path}, watching" in trigmon("explain", "WA.Q").stdout
    assert trigmon("watch", "pause", "WA.W", "--reason", "the other side is down").exit_code == 0
    row = row_of(trigmon, "WA.W")
    assert row["state"] == "paused"
    assert "the other side is down" in str(row["paused"])
    assert trigmon("watch", "resume", "WA.W").exit_code == 0
    assert trigmon("watch", "delete", "WA.W").stdout == "WATCH WA.W deleted\n"
    assert trigmon("watch", "show", "WA.W").exit_code == 3


def test_a_directory_that_cannot_be_used_is_found_by_status_and_lint(trigmon: Trigmon, tmp_path: Path):
    trigmon("queue", "define", "WB.Q", "DEFPSIST=YES")
    trigmon("watch", "define", "WB.W", f"directory={tmp_path}/missing", "queue=WB.Q")
    until(lambda: "No such file" in str(row_of(trigmon, "WB.W")["problem"]))
    (status,) = objects(trigmon("status", "--output", "json"))
    (finding,) = [each for each in status["attention"] if each["name"] == "WB.W"]
    assert (finding["kind"], finding["what"]) == ("watch", "watch")
    linted = trigmon("lint", "--output", "json")
    assert linted.exit_code == 1
    assert [json.loads(line)["rule"] for line in linted.stdout.splitlines()] == ["watch-hindered"]
    trigmon("watch", "delete", "WB.W")
