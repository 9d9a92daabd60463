"""What the wheel carries beside the package itself."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILD = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]


def test_the_module_by_which_spark_finds_the_data_source_lies_at_the_wheel_s_top_and_in_a_checkout_s_path():
    wheel = BUILD["targets"]["wheel"]
    (source,) = [source for source, target in wheel["force-include"].items() if target == "pyspark_trigmon.py"]
    assert "import DefaultSource" in (ROOT / source).read_text()
    assert str(Path(source).parent) in BUILD["dev-mode-dirs"]


def test_all_that_the_wheel_takes_from_elsewhere_is_there():
    assert [name for name in BUILD["targets"]["wheel"]["force-include"] if not (ROOT / name).exists()] == []


def test_the_wheel_builds_the_mqi_s_c_library_by_a_hook_that_is_there():
    hook = ROOT / BUILD["targets"]["wheel"]["hooks"]["custom"]["path"]
    assert "BuildHookInterface" in hook.read_text()
