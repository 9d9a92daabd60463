"""What a run's unit is made of, and what its state says: pure."""

from __future__ import annotations

import signal

import pytest

from trigmon.keeper import protocol, systemd_unit

ORDER = {
    "run": "0abc",
    "argv": ["/bin/x", "-v", "$HOME"],
    "environment": {"TRIGMON_QNAME": "ORDERS", "TRIGMON_PROCESS": "LOAD", "PASSWORD": "open sesame"},
    "working_directory": "/srv",
    "directory": "/runs/0abc",
    "time_limit_s": 0,
    "grace_s": 10,
}
ALWAYS = {
    "Description": ("s", "trigmon run 0abc: LOAD for ORDERS"),
    "Type": ("s", "exec"),
    "ExecStartEx": ("a(sasas)", [("/bin/x", ["/bin/x", "-v", "$HOME"], ["no-env-expand"])]),
    "EnvironmentFiles": ("a(sb)", [("/runs/0abc/environment", False)]),
    "WorkingDirectory": ("s", "/srv"),
    "StandardOutputFileToAppend": ("s", "/runs/0abc/stdout"),
    "StandardErrorFileToAppend": ("s", "/runs/0abc/stderr"),
    "SyslogIdentifier": ("s", "trigmon-run-0abc"),
    "LogExtraFields": ("aay", [b"TRIGMON_RUN=0abc", b"TRIGMON_QUEUE=ORDERS", b"TRIGMON_PROCESS=LOAD"]),
    "UMask": ("u", 0o077),
    "IgnoreSIGPIPE": ("b", False),
    "NoNewPrivileges": ("b", True),
    "Slice": ("s", "trigmon.slice"),
    "KillMode": ("s", "control-group"),
    "TimeoutStopUSec": ("t", 10_000_000),
    "RemainAfterExit": ("b", True),
    "CollectMode": ("s", "inactive"),
}


def test_every_run_is_made_of_these_properties():
    assert dict(systemd_unit.properties(ORDER)) == ALWAYS


@pytest.mark.parametrize(
    ("asked", "set_"),
    [
        ({"time_limit_s": 1.5}, {"RuntimeMaxUSec": ("t", 1_500_000)}),
        ({"limits": {"memory_mib": 64}}, {"MemoryMax": ("t", 64 << 20), "MemorySwapMax": ("t", 0)}),
        ({"limits": {"cpu_s": 9}}, {"LimitCPU": ("t", 14), "LimitCPUSoft": ("t", 9)}),
        ({"limits": {"open_files": 77}}, {"LimitNOFILE": ("t", 77), "LimitNOFILESoft": ("t", 77)}),
        ({"user": {"name": "alice", "uid": 7}}, {"User": ("s", "alice")}),
        ({"secrets": {"db": "/etc/db"}}, {"LoadCredential": ("a(ss)", [("db", "/etc/db")])}),
        ({"grace_s": 0}, {"TimeoutStopUSec": ("t", 1)}),
    ],
)
def test_what_an_order_asks_for_sets(asked, set_):
    assert dict(systemd_unit.properties(ORDER | asked)) == ALWAYS | set_


def test_no_variable_but_the_names_of_the_cause_is_sent_to_systemd():
    assert "sesame" not in repr(systemd_unit.properties(ORDER))


def test_what_is_not_utf8_is_refused_before_systemd_is_asked():
    with pytest.raises(ValueError, match="an argument is not UTF-8"):
        systemd_unit.properties(ORDER | {"argv": ["/bin/x", "\udcff"]})


@pytest.mark.parametrize(
    ("environment", "written"),
    [
        ({"A": "plain"}, 'A="plain"\n'),
        ({"A": 'q"q\\b`c$d'}, 'A="q\\"q\\\\b\\`c\\$d"\n'),
        ({"A": "two\nlines # no comment"}, 'A="two\nlines # no comment"\n'),
        ({"A": ""}, 'A=""\n'),
        ({"BASH_FUNC_x%%": "() { :; }", "B": "\udcff", "C": "é"}, 'C="é"\n'),
    ],
)
def test_variables_are_written_as_systemd_reads_them(environment, written):
    assert systemd_unit.environment_file(environment).decode() == written


RAN = {"ExecMainPID": 7, "ExecMainStartTimestamp": 2_000_000, "ExecMainExitTimestamp": 5_000_000, "ExecMainCode": 1}


@pytest.mark.parametrize(
    ("state", "status", "why"),
    [
        ({"ExecMainStatus": 0, "Result": "success"}, 0, ""),
        ({"ExecMainStatus": 3, "Result": "exit-code"}, 3, ""),
        ({"ExecMainCode": 2, "ExecMainStatus": 9, "Result": "signal"}, -signal.SIGKILL, ""),
        ({"ExecMainCode": 3, "ExecMainStatus": 11, "Result": "core-dump"}, -signal.SIGSEGV, ""),
        ({"ExecMainCode": 2, "ExecMainStatus": 9, "Result": "oom-kill"}, -signal.SIGKILL, protocol.OUT_OF_MEMORY),
        (
            {"ExecMainCode": 2, "ExecMainStatus": 15, "Result": "timeout", "RuntimeMaxUSec": 3_000_000},
            -15,
            protocol.TIME_LIMIT,
        ),
        ({"ExecMainCode": 2, "ExecMainStatus": 24, "Result": "signal", "LimitCPUSoft": 9}, -24, protocol.cpu_limit(9)),
        ({"ExecMainCode": 2, "ExecMainStatus": 24, "Result": "signal", "LimitCPUSoft": 2**64 - 1}, -24, ""),
        ({"ExecMainStatus": 4, "Result": "timeout", "RuntimeMaxUSec": 3_000_000}, 4, protocol.TIME_LIMIT),
        ({"ExecMainCode": 2, "ExecMainStatus": 9, "Result": "timeout", "RuntimeMaxUSec": 4_000_000}, -9, ""),
        ({"ExecMainCode": 2, "ExecMainStatus": 9, "Result": "timeout", "RuntimeMaxUSec": 2**64 - 1}, -9, ""),
    ],
)
def test_a_units_state_says_how_its_program_ended(state, status, why):
    exit_fields = systemd_unit.exit_fields(RAN | state)
    assert (exit_fields["status"], exit_fields["why"]) == (status, why)
    assert (exit_fields["pid"], exit_fields["start_ms"], exit_fields["end_ms"]) == (7, 2000, 5000)


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ({"ExecMainCode": 1, "ExecMainStatus": 203}, "the program cannot be executed"),
        ({"ExecMainCode": 1, "ExecMainStatus": 200}, "its working directory cannot be entered"),
        ({"ExecMainCode": 1, "ExecMainStatus": 217}, "its user cannot be taken on"),
        ({"ExecMainCode": 1, "ExecMainStatus": 243}, "its secrets cannot be read"),
        ({"ExecMainCode": 0, "Result": "resources"}, "could not start it (resources)"),
    ],
)
def test_a_start_that_failed_before_the_program_says_what_failed(state, why):
    assert why in systemd_unit.why_not_executed(state)


@pytest.mark.parametrize("state", [{"ExecMainCode": 1, "ExecMainStatus": 1}, {"ExecMainCode": 2, "ExecMainStatus": 9}])
def test_a_program_that_ended_while_it_was_being_started_was_one(state):
    assert systemd_unit.why_not_executed(state) == ""


def test_a_units_name_path_and_run_are_each_others():
    assert systemd_unit.name_of("0abc") == "trigmon-run-0abc.service"
    assert systemd_unit.run_of("trigmon-run-0abc.service") == "0abc"
    assert systemd_unit.run_of("ssh.service") == systemd_unit.run_of("trigmon-run-.service") == ""
    assert systemd_unit.object_path("a-b.c") == "/org/freedesktop/systemd1/unit/a_2db_2ec"
