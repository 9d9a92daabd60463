"""The benchmarks run; what they measure is for a quiet machine and a person's eyes."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.benchmarks.__main__ import WORKS
from tests.benchmarks.first_row import JOBS
from tests.benchmarks.first_row import WAYS as WAYS_TO_START
from tests.benchmarks.heads import WAYS
from tests.benchmarks.large_units import ENDS
from tests.benchmarks.measuring import Figures, bars
from tests.benchmarks.reserving import STAGES
from tests.benchmarks.servers import Beanstalkd
from trigmon.mqi import library


@pytest.mark.slow
def test_every_benchmark_runs_and_prints_its_ratios():
    argv = [sys.executable, "-m", "tests.benchmarks", "--quick"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    titles = ["deciding one put, all evidence", "deciding one put, facts of the store", "one put, decided and stored"]
    titles += [f"one get {way}" for way in WAYS]
    titles += [
        "from a start to the first answer",
        "99 of 100 puts of 16 clients",
        "a program starts: sh",
        "a program starts: python",
        "programs that end at once",
        "CPU of a launch by process",
        "queues with a process each",
        "a put in a turn of its own",
        "a look at schedules, none of them due",
        "moments at one time",
    ]
    titles += [f"{title}, {who}" for title, _ in WORKS.values() for who in ("1 client", "16 clients")]
    assert [title for title in titles if title not in done.stdout] == []
    # Gets have no other peer than that one.
    alone = 0 if Beanstalkd.program else sum(title.startswith("get, ") for title in titles)
    assert done.stdout.count(" x ") >= 2 * (len(titles) - alone)


@pytest.mark.slow
def test_scrapes_of_few_and_of_many_queues_are_measured_and_clients_beside_them():
    argv = [sys.executable, "-m", "tests.benchmarks", "--quick", "--scrapes"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert ("a scrape of the metrics" in done.stdout, "puts of one client" in done.stdout) == (True, True)
    assert done.stdout.count(" x ") == 4


@pytest.mark.slow
def test_files_that_become_messages_and_a_watch_at_rest_are_measured():
    argv = [sys.executable, "-m", "tests.benchmarks", "--quick", "--files"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert ("files of 100 bytes" in done.stdout, "CPU at rest" in done.stdout) == (True, True)
    # At rest no tick of CPU may be counted, and then there is no ratio.
    assert (done.stdout.count(" files/s "), done.stdout.count(" ms/s ")) == (2, 3)


def test_a_plot_has_a_bar_to_the_median_between_the_lowest_and_the_highest():
    figures = {"slow": Figures("s", [8.0, 10.0, 9.0]), "fast": Figures("s", [2.0, 2.0, 2.0])}
    slow, fast = bars(figures, width=10).splitlines()
    assert slow.split(maxsplit=1)[1] == "#######|#| 9.00 s"
    assert fast.split(maxsplit=1)[1].split() == ["#|", "2.00", "s"]


@pytest.mark.slow
@pytest.mark.spark
def test_every_way_to_start_a_spark_job_is_measured_beside_plain_spark_submit():
    argv = [sys.executable, "-m", "tests.benchmarks", "--quick", "--first-row"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=800, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(" x ") == len(WAYS_TO_START) * len(JOBS)
    assert all(done.stdout.count(name) >= 2 for name in WAYS_TO_START)


@pytest.mark.slow
@pytest.mark.spark
def test_rates_and_times_of_spark_are_measured_in_one_run_and_drawn(tmp_path):
    picture = tmp_path / "spark.svg"
    argv = [sys.executable, "-m", "tests.benchmarks", "--quick", "--spark-peers", "--picture", str(picture)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=800, check=False)
    assert done.returncode == 0, done.stderr
    assert all(name in done.stdout for name in (*WAYS_TO_START, "made-up rows"))
    assert picture.read_text().startswith("<svg")


@pytest.mark.slow
@pytest.mark.spark
def test_the_flights_of_a_day_are_put_and_drained_and_are_what_pandas_says():
    argv = [sys.executable, "-m", "tests.benchmarks", "--year", "--until", "2013-01-01"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=800, check=False)
    assert done.returncode == 0, done.stderr
    assert "every column as pandas has it" in done.stdout


@pytest.mark.slow
def test_what_the_web_console_costs_is_measured_beside_no_console():
    argv = [sys.executable, "-m", "tests.benchmarks", "--quick", "--console"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert "persistent messages put and got by 16 clients" in done.stdout
    assert done.stdout.count(" x ") == 2


@pytest.mark.slow
def test_clients_by_tls_are_measured_beside_those_by_the_socket():
    argv = [sys.executable, "-m", "tests.benchmarks", "--quick", "--tls"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(" x ") == 3


@pytest.mark.slow
@pytest.mark.skipif(library.compiler() is None, reason="there is no C compiler")
def test_programs_on_the_c_library_are_measured_beside_python_s():
    argv = [sys.executable, "-m", "tests.benchmarks", "--quick", "--mqi"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(" x ") == 8


@pytest.mark.slow
@pytest.mark.skipif(library.compiler() is None or find_spec("ibmmq") is None, reason="there is no ibmmq here")
def test_a_copy_of_a_queue_elsewhere_is_measured_beside_a_local_loop():
    argv = [sys.executable, "-m", "tests.benchmarks", "--quick", "--copying"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(" x ") == 3


@pytest.mark.slow
def test_messages_on_postgresql_are_measured_beside_a_plain_queue_there():
    argv = [sys.executable, "-m", "tests.benchmarks", "--quick", "--postgres"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert "put and get while a unit of work stays open, 16 clients" in done.stdout
    assert done.stdout.count(" x ") == 12


@pytest.mark.slow
def test_a_shared_queue_is_measured_beside_a_plain_one_and_with_a_unit_of_work_held_open():
    argv = [sys.executable, "-m", "tests.benchmarks", "--quick", "--shared", "--held", "0"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(" x ") == 4 + 3 + 2 * 2
    assert done.stdout.count("two members") == 4


@pytest.mark.slow
def test_what_another_client_waits_is_measured_for_each_end_of_a_large_unit():
    argv = [sys.executable, "-m", "tests.benchmarks", "--quick", "--large-units"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert [end for end in ENDS if f"  {end} " not in done.stdout] == []
    assert done.stdout.count(" x ") == 1 + len(ENDS)


@pytest.mark.slow
@pytest.mark.spark
def test_draining_by_spark_is_measured_beside_a_loop_of_gets():
    argv = [sys.executable, "-m", "tests.benchmarks", "--quick", "--spark"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert "messages of 1 KiB into Parquet" in done.stdout
    assert done.stdout.count(" x ") == 7


@pytest.mark.slow
def test_the_cpu_of_a_reserved_row_is_measured_at_each_stage():
    argv = [sys.executable, "-m", "tests.benchmarks", "--quick", "--reserving"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert [stage for stage in STAGES if f"  {stage} " not in done.stdout] == []
