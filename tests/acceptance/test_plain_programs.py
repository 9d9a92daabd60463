"""Programs that know nothing of MQ start from the obvious YAML, and a failed one says why in its run's record."""

from __future__ import annotations

import json
import sys
import venv
from pathlib import Path

import pytest

from tests.project.test_examples import environment, execute, write_files
from tests.waiting import until
from trigmon.mq.calls import Display, Pauses, Runs

DEFINITIONS = """\
- process: PLAIN
  appl_id: {command}
  launch: {{retry: 0}}
{more}
- qlocal: PLAIN.IN
  trigger_control: on
  trigger_type: every
  process_name: PLAIN
  initiation_q_name: SYSTEM.DEFAULT.INITIATION.QUEUE
"""
ARGPARSE = """\
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--out", required=True)
print("out", parser.parse_args().out)
"""
CLICK = """\
import click
@click.command()
@click.option("--out", required=True)
def main(out):
    print("out", out)
main()
"""
GETOPT = """\
import getopt, sys
options, rest = getopt.getopt(sys.argv[1:], "", ["out="])
assert not rest, rest
print("out", dict(options)["--out"])
"""
PROGRAMS = {"argparse": ARGPARSE, "click": CLICK, "getopt": GETOPT}
WAIT_S = 600


@pytest.fixture
def start(daemon, tmp_path):
    """Starts a command by a definition file and a message, and returns the run's record when it has ended."""
    queue_manager = daemon(with_monitor=True)

    def started(command, more=""):
        file = tmp_path / "plain.yaml"
        file.write_text(DEFINITIONS.format(command=json.dumps(command), more=more))
        done = queue_manager.trigmon("apply", str(file))
        assert done.returncode == 0, done.stderr
        assert queue_manager.trigmon("put", "PLAIN.IN", "work").returncode == 0
        with queue_manager.connect() as qm:
            return until(lambda: [run for run in qm.call(Runs()).rows if run["state"] == "exited"], WAIT_S)[0]

    started.queue_manager = queue_manager
    return started


@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_program_with_options_of_its_own_gets_no_other_argument(start, tmp_path, kind):
    (tmp_path / "job.py").write_text(PROGRAMS[kind])
    run = start(f"{sys.executable} job.py --out x")
    assert (run["exit_status"], run["stderr_tail"]) == (0, "")
    assert start.queue_manager.trigmon("runs", "logs", run["run_id"]).stdout == "out x\n"


def test_sleep_sleeps(start):
    assert start("sleep 0.1")["why"] == "ended with status 0"


def test_a_program_that_wants_the_mqtmc2_gets_it(start, tmp_path):
    run = start(f"{sys.executable} -c 'import sys; print(len(sys.argv[1]))'", "  tmc_argument: yes")
    assert start.queue_manager.trigmon("runs", "logs", run["run_id"]).stdout == "732\n"


def test_a_program_that_does_not_expect_the_mqtmc2_fails_with_the_remedy(start):
    run = start("sleep 0.1", "  tmc_argument: yes")
    assert run["why"].startswith("ended with status 1: ")
    assert run["why"].endswith("MQTMC2: this argument is not passed with TMCARG(NO)")


def test_the_reason_of_a_failed_run_ends_with_the_last_line_of_its_output(start):
    run = start(f"{sys.executable} -c 'int(\"bad\")'")
    assert run["why"] == "ended with status 1: ValueError: invalid literal for int() with base 10: 'bad'"


SHELL = "  shell: yes"
OF_A_SHELL = {
    "output into a file": ("echo one", "env_data: '>> {home}/out 2>&1 &'", "one\n"),
    "a change of directory": ("cd {home}; ./run.sh $HOME > out", "", "from {home} home\n"),
    "a variable before the program": ("PATH={home}:$PATH run.sh > {home}/out", "", "from {work}\n"),
    "a pipe": ("printf '%s\\n' b a \"$1\" | sort > {home}/out", "", "PLAIN.IN\na\nb\n"),
}


@pytest.mark.parametrize("kind", OF_A_SHELL)
def test_a_definition_of_a_shell_is_warned_of_and_runs_as_it_is_written_where_it_asks(start, tmp_path, kind):
    home, work = tmp_path / "home", tmp_path
    home.mkdir()
    (home / "run.sh").write_text('#!/bin/sh\necho from "$PWD" ${1:+home}\n')
    (home / "run.sh").chmod(0o755)
    command, more, expected = (text.format(home=home, work=work) for text in OF_A_SHELL[kind])
    file = tmp_path / "warned.yaml"
    file.write_text(DEFINITIONS.format(command=json.dumps(command), more=f"  {more}"))
    warned = start.queue_manager.trigmon("apply", "--dry-run", str(file))
    assert "PROCESS PLAIN needs a shell for" in warned.stderr
    run = start(command, f"{SHELL}\n  {more}")
    assert (run["exit_status"], run["stderr_tail"]) == (0, "")
    printed = (home / "out").read_text().splitlines()
    assert printed == sorted(printed) and "\n".join(printed) + "\n" == expected


ONE_MESSAGE = """\
import trigmon
with trigmon.connect() as qm, qm.open(trigmon.triggered().q_name, "input_shared") as queue:
    print(queue.get().text)
"""


def test_a_typing_error_holds_the_queue_in_sight_and_the_mended_definition_starts_what_waits(daemon, tmp_path):
    queue_manager = daemon(with_monitor=True)
    (tmp_path / "job.py").write_text(ONE_MESSAGE)
    file = tmp_path / "orders.yaml"

    def apply(program):
        command = json.dumps(f"{program} {tmp_path / 'job.py'}")
        file.write_text(DEFINITIONS.format(command=command, more="").replace("every", "first"))
        assert queue_manager.trigmon("apply", str(file)).returncode == 0

    apply("pythn")
    assert queue_manager.trigmon("put", "PLAIN.IN", "work").returncode == 0
    with queue_manager.connect() as qm:
        (pause,) = until(lambda: qm.call(Pauses()).rows, WAIT_S)
        assert "could not start: no program pythn on PATH; it is tried again when PROCESS(PLAIN)" in pause["reason"]
        assert "no program pythn on PATH" in queue_manager.trigmon("status").stdout
        apply(sys.executable)
        (run,) = until(lambda: qm.call(Runs(where={"state": "exited"})).rows, WAIT_S)
        assert (run["exit_status"], run["attempt"], qm.call(Pauses()).rows) == (0, 2, [])
    assert queue_manager.trigmon("runs", "logs", run["run_id"]).stdout == "work\n"


def test_one_bad_message_of_thirty_is_put_aside_alone(daemon, tmp_path):
    """As the README has it: its program, its definitions, and a line that is no JSON."""
    tutorial = Path(__file__).parents[2] / "docs" / "tutorial" / "first-trigger.md"
    write_files(tutorial, tmp_path)
    queue_manager = daemon(with_monitor=True, start=False)
    queue_manager.start(env=environment(queue_manager))
    lines = ["no JSON" if number == 9 else json.dumps({"price": number}) for number in range(30)]
    (tmp_path / "orders.jsonl").write_text("\n".join(lines) + "\n")
    execute("trigmon apply orders.yaml && trigmon queue pause ORDERS", tmp_path, queue_manager)
    execute("trigmon put ORDERS --lines orders.jsonl && trigmon queue resume ORDERS", tmp_path, queue_manager)

    def is_done():
        with queue_manager.connect() as qm:
            depth = {
                name: qm.call(Display(object_type="QLOCAL", name=name)).rows[0]["current_q_depth"]
                for name in ("ORDERS", "ORDERS.FAILED")
            }
            runs = qm.call(Runs(where={"q_name": "ORDERS"})).rows
        return depth == {"ORDERS": 0, "ORDERS.FAILED": 1} and all(run["state"] == "exited" for run in runs) and runs

    runs = until(is_done, WAIT_S)
    assert [run["exit_status"] for run in runs] == [0, 1, 1, 1]  # the newest first
    assert all("JSONDecodeError" in run["why"] for run in runs[1:])
    aside = execute("trigmon browse ORDERS.FAILED --output json", tmp_path, queue_manager)
    assert json.loads(aside)["data"] == "no JSON"
    printed = "".join(execute(f"trigmon runs logs {run['run_id']}", tmp_path, queue_manager) for run in runs)
    assert set(printed.splitlines()) >= {f"an order for {number}" for number in range(30) if number != 9}


def test_a_relative_working_directory_is_where_the_program_runs_beside_its_definition(start, tmp_path):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "job.py").write_text("import os\nprint(os.getcwd())\n")
    run = start(f"{sys.executable} job.py", "  working_directory: jobs")
    assert start.queue_manager.trigmon("runs", "logs", run["run_id"]).stdout == f"{tmp_path / 'jobs'}\n"


def test_the_environment_of_its_definition_reaches_a_program(start, tmp_path):
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "named"
    program.write_text('#!/bin/sh\necho "$TABLE of $TRIGMON_QNAME"\n')
    program.chmod(0o755)
    more = f"  environment: {{TABLE: two words, PATH: {tmp_path / 'bin'}:/usr/bin:/bin}}"
    run = start("named", more)
    assert start.queue_manager.trigmon("runs", "logs", run["run_id"]).stdout == "two words of PLAIN.IN\n"


def test_a_program_runs_in_the_virtual_environment_of_its_definition(start, tmp_path):
    venv.create(tmp_path / "venv", with_pip=False)
    text = "import os, sys; print(sys.prefix, os.environ['VIRTUAL_ENV'])"
    run = start(f'python -c "{text}"', "  virtualenv: venv")
    printed = start.queue_manager.trigmon("runs", "logs", run["run_id"]).stdout
    assert printed == f"{tmp_path / 'venv'} {tmp_path / 'venv'}\n"


def test_a_python_program_with_a_warm_interpreter_is_forked_and_does_its_work(start, tmp_path):
    (tmp_path / "job.py").write_text(
        "import sys\nwas_warm = 'trigmon.client.connection' in sys.modules and 'decimal' in sys.modules\n"
        "import trigmon\nwith trigmon.connect() as qm, qm.open(trigmon.triggered().q_name, 'input_shared') as q:\n"
        "    print(was_warm, [message.data.decode() for message in q.drain()])\n"
    )
    warm = "  warm_interpreter: yes\n  warm_modules: decimal"
    start(f"{sys.executable} job.py", warm)  # its interpreter is kept from here on

    def is_forked():
        assert start.queue_manager.trigmon("put", "PLAIN.IN", "again").returncode == 0
        run = until(lambda: last_run(start.queue_manager), WAIT_S)
        printed = start.queue_manager.trigmon("runs", "logs", run["run_id"]).stdout
        assert "['again']" in printed, run
        return printed.startswith("True")

    until(is_forked, WAIT_S)


def last_run(queue_manager):
    """Returns the newest run when all have ended."""
    with queue_manager.connect() as qm:
        rows = sorted(qm.call(Runs()).rows, key=lambda run: run["run_id"])
    return rows[-1] if all(run["state"] == "exited" for run in rows) else None
