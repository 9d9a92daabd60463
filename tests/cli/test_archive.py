"""``trigmon spark archive``: what there is, making one by hand, and removing them."""

from __future__ import annotations

import pytest

from tests.cli.conftest import objects, run_cli
from tests.launch.spark.homes import java_script, pips


@pytest.fixture
def trigmon(tmp_path):
    """The command line where a Spark is laid out as pip does, on a Java that only writes archives."""
    env = {
        "TRIGMON_HOME": str(tmp_path / "data"),
        "SPARK_HOME": str(pips(tmp_path / "spark")),
        "JAVA_HOME": str(java_script(tmp_path / "jdk")),
    }
    return lambda *arguments: run_cli("spark", "archive", *arguments, env=env)


def test_where_there_is_none_it_says_how_one_comes_to_be(trigmon):
    shown = trigmon("show")
    assert (shown.exit_code, shown.stdout) == (0, "")
    assert "the monitor makes one after the next run, or use trigmon spark archive make" in shown.stderr


def test_one_is_made_shown_and_removed(trigmon, tmp_path):
    made = trigmon("make")
    (file,) = (tmp_path / "data" / "QM1" / "java").glob("*.archive")
    assert (made.exit_code, str(file) in made.stdout) == (0, True)
    (row,) = objects(trigmon("show", "--output", "json"))
    assert (row["state"], row["java"], row["file"], row["why"]) == ("used", f"17 {tmp_path}/jdk", str(file), "")
    assert row["made_time"].endswith("Z")
    assert trigmon("show").stdout.splitlines()[-1].split()[:4] == [row["key"], "used", "17", f"{tmp_path}/jdk"]
    assert trigmon("make").stdout == "there is one that fits\n"
    inode = file.stat().st_ino
    assert trigmon("make", "--again").exit_code == 0
    assert file.stat().st_ino != inode
    assert objects(trigmon("remove", "--output", "json"))[0]["bytes"] > 7
    assert (file.exists(), trigmon("show").stdout) == (False, "")


def test_a_failure_is_reported_with_its_reason_then_and_later(trigmon, tmp_path):
    (tmp_path / "jdk" / "bin" / "java").write_text("#!/bin/sh\necho 'out of something' >&2\nexit 3\n")
    made = trigmon("make")
    assert (made.exit_code, made.stderr) == (1, "trigmon: the Java machine ended with 3: out of something\n")
    (row,) = objects(trigmon("show", "--output", "json"))
    assert (row["state"], row["why"]) == ("failed", "the Java machine ended with 3: out of something")


def test_one_that_no_job_would_use_is_distinguished(trigmon, tmp_path):
    assert trigmon("make").exit_code == 0
    (file,) = (tmp_path / "data" / "QM1" / "java").glob("*.archive")
    (tmp_path / "spark" / "jars" / "more.jar").touch()
    assert objects(trigmon("show", "--output", "json"))[0]["state"] == "other"
    file.write_text("cut")
    assert objects(trigmon("show", "--output", "json"))[0]["state"] == "damaged"


def test_without_a_spark_or_a_java_nothing_is_made_and_it_says_what_is_missing(trigmon, monkeypatch, tmp_path):
    monkeypatch.setattr("trigmon.launch.spark.cold.java._bundled_home", lambda: None)
    (tmp_path / "jdk" / "release").write_text('JAVA_VERSION="8"\n')
    monkeypatch.setenv("PATH", "/none")
    refused = trigmon("make")
    assert refused.exit_code == 1
    assert "Spark needs Java 17, 21 or 25, and none was found" in refused.stderr
