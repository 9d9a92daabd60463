"""Wheel and source distribution are built, and the wheel is installed without extras: what a light installation has."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from trigmon.mqi import library

ROOT = Path(__file__).parents[2]
TEMPLATES = ROOT / "trigmon" / "console" / "web" / "templates"
INSTALL_S = 600  # a registry may be slow
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3 * INSTALL_S)]

PLAY = """
import os, subprocess, sys, time
import trigmon
run = subprocess.Popen([sys.executable, "-m", "trigmon", "run", "--no-monitor"])
try:
    deadline = time.monotonic() + 60
    while True:
        try:
            qm = trigmon.connect()
            break
        except trigmon.MQError:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    with qm, qm.open("SYSTEM.DEFAULT.LOCAL.QUEUE", "output", "input_shared") as queue:
        queue.put(b"one")
        print(queue.get().data)
finally:
    run.terminate()
    run.wait(60)
try:
    import trigmon.spark
except ImportError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Builds both in an environment of their own; returns their directory."""
    directory = tmp_path_factory.mktemp("distribution")
    python = environment(directory / "build-environment", "hatchling")
    run(python, "-m", "hatchling", "build", "-d", str(directory / "dist"), cwd=ROOT)
    return directory / "dist"


def environment(directory, *packages):
    run(sys.executable, "-m", "venv", str(directory))
    python = str(directory / "bin" / "python")
    run(python, "-m", "pip", "install", "--quiet", *packages)
    return python


def run(*argv, **more):
    done = subprocess.run(argv, capture_output=True, text=True, timeout=INSTALL_S, **more)
    assert done.returncode == 0, f"{argv}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_wheel_has_types_settings_and_units_and_no_tests(built):
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {"trigmon/py.typed", "trigmon/shipped/config/trigmon.yaml", "pyspark_trigmon.py"} <= set(names)
    assert any(name.startswith("trigmon/shipped/systemd/") for name in names)
    pages = {f"trigmon/console/web/{name}" for name in ("static/console.css", "static/console.js", "static/icon.svg")}
    assert pages <= set(names)
    templates = {f"trigmon/console/web/templates/{path.name}" for path in TEMPLATES.iterdir()}
    assert templates <= set(names)
    assert not any(name.startswith("tests/") for name in names)
    assert any(name.startswith("trigmon/mqi/lib/") for name in names) == bool(library.compiler())


def test_a_light_installation_puts_and_gets_and_names_the_extra_for_spark(built, tmp_path):
    (wheel,) = built.glob("*.whl")
    python = environment(tmp_path / "light", str(wheel))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TRIGMON_", "PYTHON"))}
    done = run(python, "-c", PLAY, cwd=tmp_path, env=kept | {"TRIGMON_HOME": str(tmp_path / "home")})
    assert done.splitlines()[:2] == ["b'one'", "trigmon.spark needs PySpark: pip install 'trigmon[spark]'"]
    installed = run(python, "-m", "pip", "list", "--format=freeze")
    assert not {"pyspark", "pandas", "pyarrow", "grpcio"} & {line.split("==")[0] for line in installed.splitlines()}


def test_the_source_distribution_has_what_a_test_run_needs(built, tmp_path):
    (archive,) = built.glob("*.tar.gz")
    names = {name.partition("/")[2] for name in run("tar", "-tzf", str(archive)).splitlines()}
    assert {"pyproject.toml", "README.md", "tests/conftest.py", "docs/conf.py", "CHANGELOG.md", "LICENSE"} <= names
