"""Which way a Spark job is started."""

from __future__ import annotations

import pytest

from trigmon.launch.launch_plan import LaunchError, LaunchPlan
from trigmon.launch.launchers import launchers
from trigmon.launch.spark.spark_launcher import SparkLauncher
from trigmon.mq.enums import ApplType, SparkIsolation, SparkStart

WARM, ALONE = SparkIsolation.SESSION, SparkIsolation.PROCESS


class Way:
    """Plans a program of its own name."""

    errors = ()

    def __init__(self, name):
        self.name = name

    def plan(self, order):
        return LaunchPlan(argv=[self.name], environment={})

    def record_fields(self, order, directory):
        return {self.name: "recorded"}

    def tend(self):
        self.name = f"tended {self.name}"


@pytest.mark.parametrize(
    ("start", "isolation", "way"),
    [
        (SparkStart.SUBMIT, WARM, "submit"),
        (SparkStart.SUBMIT, ALONE, "submit"),
        (SparkStart.CONNECT, WARM, "connect"),
        (SparkStart.CONNECT, ALONE, "submit"),
        (SparkStart.REST, WARM, "rest"),
        (SparkStart.REST, ALONE, "rest"),
    ],
)
def test_a_job_is_started_as_its_definition_says_and_cold_when_it_wants_a_process(order, start, isolation, way):
    launcher = SparkLauncher({start: Way(start.name.lower()) for start in SparkStart})
    ordered = order("job.py", appl_type=ApplType.SPARK, spark_start=start, spark_isolation=isolation)
    assert launcher.plan(ordered).argv == [way]
    assert launcher.record_fields(ordered, None) == {way: "recorded"}


def test_every_way_is_tended(order):
    ways = {start: Way(start.name) for start in SparkStart}
    SparkLauncher(ways).tend()
    assert [way.name for way in ways.values()] == ["tended SUBMIT", "tended CONNECT", "tended REST"]


def test_a_way_that_is_not_there_is_reported_with_the_remedy(order):
    launcher = SparkLauncher({SparkStart.SUBMIT: Way("submit")})
    ordered = order("job.py", appl_type=ApplType.SPARK, spark_start=SparkStart.REST)
    with pytest.raises(LaunchError, match=r"SPKSTART\(REST\) is not started by this monitor: say SPKSTART\(SUBMIT\)"):
        launcher.plan(ordered)


def test_a_cold_job_that_writes_what_a_supervisor_would_has_no_driver(order, tmp_path):
    (tmp_path / "stdout").write_text(
        "2026-11-21T20:01:02.123Z asking http://m:6066 1795291262123\n"
        "2026-11-21T20:01:02.456Z submitted driver-20261121200102-0000\n"
    )
    launcher = launchers(tmp_path)[ApplType.SPARK]
    cold, rest = (
        order("job.py", appl_type=ApplType.SPARK, spark_start=start) for start in (SparkStart.SUBMIT, SparkStart.REST)
    )
    assert launcher.record_fields(cold, tmp_path) == {}
    assert launcher.record_fields(rest, tmp_path)["driver_id"] == "driver-20261121200102-0000"


def test_a_monitor_starts_programs_and_spark(tmp_path):
    assert set(launchers(tmp_path)) == {ApplType.UNIX, ApplType.SPARK}
