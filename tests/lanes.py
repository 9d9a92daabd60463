"""Which lane a test is in: ``everyday``, ``full`` or ``slow``; ``pytest --lane`` chooses (docs/contributing/tests.md).

- ``slow``: what has the mark ``slow``.
- ``everyday``: what stays in the test's own process, with the store in memory or on SQLite; and of what uses more
  (another process, PostgreSQL, Spark, systemd, another user) the REPRESENTATIVES: each way that calls and starts go.
- ``full``: the rest.

What a test uses follows from its fixtures and parameters, and where it has none for it from its file.
"""

from __future__ import annotations

import argparse
import functools
import re
from collections.abc import Hashable, Iterator

import pytest

from tests.book import BOOK
from trigmon.simulate import scenario as act
from trigmon.simulate.scenario import Scenario

EVERYDAY, FULL, SLOW = LANES = ("everyday", "full", "slow")

USED_BY_FIXTURE = {
    "bench": "process",
    "daemon": "process",
    "shared_daemon": "process",
    "harness": "process",
    "machine": "process",
    "populated": "process",
    "web_of": "process",
    "group": "postgres",
    "holder": "process",
    "server": "postgres",
    "spark": "spark",
    "open_machine": "root",
    "passable": "root",
}
"""By fixture what a test uses that has it; one that asks for another uses that one's as well."""

USED_BY_FILE = {
    "tests/acceptance/test_road.py": "spark",
    "tests/attacks/test_attacks.py::test_behind_all": "root",
    "tests/attacks/test_attacks.py::test_it_gets_nothing": "root",
    "tests/attacks/test_attacks.py::test_what_daemon": "root",
    "tests/benchmarks/test_benchmarks.py::test_a_copy": "process",
    "tests/benchmarks/test_benchmarks.py::test_a_shared_queue": "postgres",
    "tests/benchmarks/test_benchmarks.py::test_every_benchmark": "process",
    "tests/benchmarks/test_benchmarks.py::test_scrapes": "process",
    "tests/benchmarks/test_benchmarks.py::test_the_cpu": "process",
    "tests/benchmarks/test_benchmarks.py::test_what_another": "process",
    "tests/benchmarks/test_benchmarks.py::test_what_the_web": "process",
    "tests/benchmarks/test_benchmarks.py::test_clients_by_tls": "process",
    "tests/benchmarks/test_benchmarks.py::test_programs_on": "process",
    "tests/benchmarks/test_benchmarks.py::test_files_that": "process",
    "tests/benchmarks/test_benchmarks.py::test_messages_on_postgresql": "postgres",
    "tests/benchmarks/test_peers.py": "process",
    "tests/benchmarks/test_profile.py::test_the_profile": "process",
    "tests/benchmarks/test_peers.py::test_a_found_peer": "postgres",
    "tests/benchmarks/test_peers.py::test_cells_are": "nothing",
    "tests/benchmarks/test_peers.py::test_others_are": "nothing",
    "tests/benchmarks/test_peers.py::test_ratios_are": "nothing",
    "tests/benchmarks/test_peers.py::test_the_command_prints": "postgres",
    "tests/bridge/test_bad_trigger_messages.py": "process",
    "tests/bridge/test_bridge_by_tls.py": "process",
    "tests/bridge/test_bridged_runs.py::test_a_process_with_runas": "root",
    "tests/bridge/test_checks.py": "process",
    "tests/bridge/test_explain_with_a_monitor.py": "process",
    "tests/bridge/test_play.py": "process",
    "tests/bridge/test_queue_look.py": "process",
    "tests/bridge/test_remote_facts.py": "process",
    "tests/bridge/test_seen_with_few_rights.py": "root",
    "tests/bridge/test_copy.py": "process",
    "tests/bridge/test_copy_kills.py": "process",
    "tests/cli/test_archive.py": "process",
    "tests/cli/test_backup_restore.py::test_a_store_that_can_be_repaired": "process",
    "tests/cli/test_check_health.py::test_it_is_silent": "process",
    "tests/cli/test_check_health.py::test_a_queue_is_critical": "process",
    "tests/cli/test_completion.py": "process",
    "tests/cli/test_help.py::test_a_small_command": "process",
    "tests/cli/test_help.py::test_completion_is_a_script_for_each_shell": "process",
    "tests/cli/test_mq_qmgr_commands.py": "process",
    "tests/cli/test_named_files.py": "process",
    "tests/cli/test_running.py::test_it_is_played_on_the_postgresql": "postgres",
    "tests/cli/test_settings_file.py": "process",
    "tests/cli/test_table_layout.py::test_the_queues_fit": "process",
    "tests/cli/test_table_layout.py::test_what_has_failed": "process",
    "tests/console/metrics": "process",
    "tests/console/metrics/test_metric_table.py": "nothing",
    "tests/client/test_connecting.py::test_a_socket_that_lets_nobody_in_is_a_matter_of_authority": "process",
    "tests/client/test_driver.py": "process",
    "tests/client/test_peer.py": "process",
    "tests/client/test_public_names.py::test_the_client_needs_neither_a_framework_nor_a_loop": "process",
    "tests/client/test_public_names.py::test_the_package_alone_loads_nothing_of_its_own": "process",
    "tests/console/rest/test_rest_server": "process",
    "tests/console/web/test_web_access.py::test_without_the_extra": "process",
    "tests/launch/spark/test_archive.py": "process",
    "tests/launch/spark/test_archive_maker.py": "process",
    "tests/launch/spark/test_compiled.py::test_every_name": "process",
    "tests/launch/spark/test_direct.py::test_it_is_the_command": "spark",
    "tests/launch/spark/test_java.py": "process",
    "tests/launch/spark/test_ports.py": "spark",
    "tests/launch/spark/test_rest_ports.py": "spark",
    "tests/launch/spark/test_rest_run.py": "process",
    "tests/launch/spark/test_submit.py::test_a_failed_making": "process",
    "tests/launch/spark/test_submit.py::test_an_archive_is_made": "process",
    "tests/launch/spark/test_submit.py::test_the_program_finds": "process",
    "tests/launch/spark/test_worker_forks.py": "process",
    "tests/launch/on_systemd.py": "systemd",
    "tests/launch/test_any_bytes.py::test_a_real_program": "process",
    "tests/launch/test_any_bytes.py::test_each_text_a_shell_would_obey": "process",
    "tests/launch/test_claims.py": "process",
    "tests/launch/test_forks.py::test_a_forked_script": "process",
    "tests/launch/test_fork_servers.py": "process",
    "tests/launch/test_full_disk.py": "root",
    "tests/launch/test_keeper.py": "process",
    "tests/launch/test_kept_as_whom.py": "root",
    "tests/launch/test_killed_keeper.py": "process",
    "tests/launch/test_on_systemd.py": "systemd",
    "tests/launch/test_users.py": "root",
    "tests/launch/test_warm_interpreter": "process",
    "tests/monitor": "process",
    "tests/monitor/test_ledger.py": "nothing",
    "tests/monitor/test_lost_servers.py": "nothing",
    "tests/monitor/test_monitor_plan.py": "nothing",
    "tests/monitor/test_warm.py": "nothing",
    "tests/mutations/test_mutations.py::test_the_script": "process",
    "tests/project/test_backup.py": "systemd",
    "tests/project/test_container.py": "root",
    "tests/project/test_examples.py::test_its_commands": "process",
    "tests/project/test_install.py": "systemd",
    "tests/project/test_install.py::test_the_documentation": "nothing",
    "tests/project/test_put_path.py": "process",
    "tests/project/test_taken_over_program.py": "systemd",
    "tests/project/test_units.py::test_a_unit_is_exposed": "systemd",
    "tests/project/test_units.py::test_systemd_finds": "systemd",
    "tests/project/test_without_extras.py": "process",
    "tests/mqi/test_ibm_samples.py": "process",
    "tests/bridge/test_connection.py": "process",
    "tests/mqi/test_ibm_suite.py": "process",
    "tests/mqi/test_ibmmq_package.py": "process",
    "tests/proof/test_command.py::test_the_command_counts_and_fails_when_a_promise_is_broken": "process",
    "tests/proof/test_failover.py": "postgres",
    "tests/qmgr/test_any_call.py::test_every_descriptor": "postgres",
    "tests/qmgr/test_any_call.py::test_every_field": "postgres",
    "tests/qmgr/test_any_call.py::test_every_name": "postgres",
    "tests/qmgr/test_group_scripts.py::test_a_group_on_postgresql": "postgres",
    "tests/qmgr/test_group_scripts.py::test_large_units": "postgres",
    "tests/qmgr/test_group_scripts.py::test_members_keep_marks": "postgres",
    "tests/qmgr/test_group_scripts.py::test_those_scripts_come_to_units": "postgres",
    "tests/qmgr/test_stores_agree.py::test_all_stores": "postgres",
    "tests/qmgr/test_stores_agree.py::test_it_holds_for_many_long_scripts": "postgres",
    "tests/qmgr/test_stores_agree.py::test_large_units": "postgres",
    "tests/qmgr/test_stores_agree.py::test_numbers_behind": "postgres",
    "tests/qmgr/test_stores_agree.py::test_postgresql_gives": "postgres",
    "tests/rules/test_code_words.py::test_what_is_allowed_is_one_argument": "process",
    "tests/rules/test_launching_stories.py::test_stories_go_alike": "postgres",
    "tests/launch/test_words.py::test_a_shell_gets": "process",
    "tests/mqi/test_c_fuzzing.py": "process",
    "tests/mqi/test_c_library.py": "process",
    "tests/mqi/test_c_properties.py": "process",
    "tests/mqi/test_c_callbacks.py": "process",
    "tests/mqi/test_c_programs.py": "process",
    "tests/mqi/test_c_source.py": "process",
    "tests/mqi/test_c_threads.py": "process",
    "tests/mqi/test_c_tls.py": "process",
    "tests/mqi/test_c_two_gets.py": "process",
    "tests/mqi/test_credentials.py": "process",
    "tests/rules/test_launching_stories.py::test_many_stories": "postgres",
    "tests/rules/test_pausing.py::test_what_is_kept_is_what_goes_on_and_the_newest_of_what_ended": "postgres",
    "tests/scenarios/test_any_shared_story.py::test_it_does_so_in_a_group_on_postgresql": "postgres",
    "tests/scenarios/test_book_over_a_socket.py::test_it_holds_on_a_daemon": "process",
    "tests/server/test_call_rights_of_programs.py": "root",
    "tests/server/test_command_server.py": "process",
    "tests/server/test_hostile.py": "process",
    "tests/server/test_tickets.py": "process",
    "tests/spark/test_tickets_on_a_network.py": "root",
    "tests/simulate/test_playing.py::test_a_group_has_a_schema_on_postgresql": "postgres",
    "tests/simulate/test_playing.py::test_a_group_of_one_outlives": "postgres",
    "tests/simulate/test_playing.py::test_the_schema_of_a_rehearsal": "postgres",
    "tests/store/test_postgres": "postgres",
    "tests/store/test_store_damage.py::test_a_definition_that": "postgres",
    "tests/store/test_store_repair.py::test_a_salvage_that_is_killed": "process",
    "tests/test_checksum.py::test_a_platform": "process",
    "tests/test_process_memory.py": "process",
    "tests/test_testing.py::test_a_process_that_ends_in_its_unit": "process",
    "tests/test_testing.py::test_another_process": "process",
    "tests/test_testing.py::test_it_may_be_named": "process",
    "tests/test_testing.py::test_it_needs_no_pytest": "process",
    "tests/test_testing.py::test_nobody_who_does_not_import": "process",
    "tests/test_testing.py::test_the_worked_example": "process",
    "tests/test_testing.py::test_the_worked_examples_of_a_spark_job": "spark",
}
"""By the beginning of a test's id what it uses, where it has no fixture for it; the longest beginning counts."""

REPRESENTATIVES = {
    "socket": {
        "tests/server/test_dialogue.py": "calls and answers, waits, calls sent ahead, a lost connection",
        "tests/client/test_client_queue": "what a program does with a queue",
        "tests/client/test_client_connection.py": "how a program connects, commits, backs out and leaves",
        "tests/cli/test_messages.py::test_text_is_put_and_got": "the command line puts and gets",
        "tests/cli/test_objects.py::test_a_queue_is_defined": "the command line defines, shows, alters and deletes",
    },
    "PostgreSQL": {
        "tests/qmgr/test_stores_agree.py": "the same calls get the same answers and leave the same state",
        "tests/qmgr/test_group_scripts.py::test_a_group_on_postgresql": "a group there is as one in memory",
        "tests/rules/test_launching.py::test_a_run_follows_its_program": "runs are written, and what they serve",
        "tests/rules/test_breaker.py::test_runs_that_remove_nothing": "why runs failed is kept",
        "tests/rules/test_pausing.py::test_a_pause_goes_with_its_object": "pauses are kept, and go",
        "tests/rules/test_pausing.py::test_a_run_that_has_ended_is_forgotten": "runs are forgotten",
        "tests/rules/test_launching_stories.py": "stories of runs go alike",
        "tests/store/test_store_damage.py": "what was damaged is set aside",
        "tests/server/test_standing_by.py::test_it_takes_over_when_the_first_ends": "the one that stands by takes over",
        "tests/server/test_members.py::TestWhatOneDoesTheOthersSee::test_a_get_that_waits": "members reach one another",
    },
    "daemon": {
        "tests/server/test_lifecycle.py::test_a_signal_ends_it": "it ends in order at each signal",
        "tests/server/test_lifecycle.py::test_a_killed_daemons_socket": "it starts again where it was killed",
        "tests/server/test_units.py::test_the_count_after_each_kill": "a kill backs out, and the messages are kept",
        "tests/server/test_monitor_child.py::test_the_monitor_serves": "its monitor serves beside it and ends with it",
        "tests/console/metrics/test_exporter.py::test_it_serves": "its exporter serves metrics and ends with it",
        "tests/watches/test_watches.py::test_a_file_becomes_one_message": "its watches put a message for a file",
        "tests/monitor/test_monitor.py::test_a_put_starts_the_program": "a put starts a program, on record to its end",
        "tests/monitor/test_monitor.py::test_triggers_beyond_the_cap": "what may not start yet waits in order",
        "tests/monitor/test_monitor.py::TestDeadLetters::test_a_missing_program": "what cannot start is a dead letter",
        "tests/cli/test_pausing.py::test_it_pauses": "it pauses, resumes, cancels and repeats",
    },
    "web console": {
        "tests/console/web/test_web_access.py": "who gets in, and what a browser is told",
        "tests/console/web/test_web_pages.py": "each page and its events",
    },
    "keeper": {
        "tests/launch/test_keeper.py::TestMonitorsComeAndGo": "programs outlive monitors and their ends are known",
        "tests/launch/test_forks.py::test_a_forked_script": "a program may be a fork",
    },
    "Spark cold": {
        "tests/acceptance/test_road.py": "the demo: puts, one trigger, one job of a Spark of its own, its table",
    },
    "Spark warm": {
        "tests/monitor/test_warm_runs.py::test_each_run_is_a_fork": "runs are sessions of one server that stays",
    },
    "drain": {
        "tests/spark/test_draining.py::test_one_call_drains": "a queue drains into a table",
        "tests/spark/test_draining.py::TestWhatFails::test_the_bad_message_goes": "a bad message goes aside, once",
    },
    "stream": {
        "tests/spark/test_streaming.py::test_available_now": "a stream reads to the last message and settles it",
        "tests/spark/test_writing.py::test_rows_become_messages": "rows are put",
        "tests/spark/test_reading.py::test_spark_finds_the_source": "Spark finds the data source and its columns",
    },
}
"""By way the beginnings of ids, each with the fact that is shown; the scenario book has its own: smallest_cover."""

FOUND = pytest.StashKey[dict[str, str]]()
"""By id the lane of each test that was collected, whichever lanes run."""

THE_BOOK = "tests/scenarios/test_book"
BOOK_OVER_A_SOCKET = "tests/scenarios/test_book_over_a_socket.py"


def chosen(text: str) -> str:
    """Returns the lanes that ``--lane`` names, ``all`` as each. Raises ArgumentTypeError for another word."""
    lanes = LANES if text == "all" else text.split(",")
    if not set(lanes) <= set(LANES):
        raise argparse.ArgumentTypeError(f"lanes are {', '.join(LANES)} and all, not {text}")
    return ",".join(lanes)


def lane_of(test: pytest.Item) -> str:
    """Returns the one lane of a test."""
    if test.get_closest_marker("slow"):
        return SLOW
    return EVERYDAY if not used_by(test) or ways_of(test) else FULL


def used_by(test: pytest.Item) -> set[str]:
    """Returns what a test uses beside its own process: marks that pytest's ``-m`` knows."""
    used = {USED_BY_FIXTURE[name] for name in getattr(test, "fixturenames", ()) if name in USED_BY_FIXTURE}
    if any("postgres" in value for value in _parameters(test).values() if isinstance(value, str)):
        used.add("postgres")
    if test.get_closest_marker("spark"):
        used.add("spark")
    files = [start for start in USED_BY_FILE if test.nodeid.startswith(start)]
    if files:
        used.add(USED_BY_FILE[max(files, key=len)])
    return used - {"nothing"}


def ways_of(test: pytest.Item) -> list[str]:
    """Returns the ways that a test represents in the everyday lane; none for most."""
    ways = [way for way, tests in REPRESENTATIVES.items() if test.nodeid.startswith(tuple(tests))]
    scenario = _parameters(test).get("scenario")
    if scenario is not None and test.nodeid.startswith(THE_BOOK):
        over_a_socket = test.nodeid.startswith(BOOK_OVER_A_SOCKET)
        if any(scenario is one for one in smallest_cover(over_a_socket)):
            ways.append("socket" if over_a_socket else "PostgreSQL")
    return ways


def facts_of(scenario: Scenario) -> Iterator[Hashable]:
    """Yields what a scenario shows: each command, and each verb with its options, refusals and warnings."""
    of_steps = [command for step in scenario.steps if isinstance(step.act, act.Mqsc) for command in step.act.commands]
    for command in (*scenario.setup, *of_steps):
        yield command.verb, command.noun
        yield from ((command.verb, command.noun, share) for share in re.findall(r"QSGDISP\((\w+)\)", command.text))
    for step in scenario.steps:
        yield step.verb
        for attribute in ("options", "match"):
            bits = getattr(step.act, attribute, 0)
            yield from ((step.verb, attribute, 1 << bit) for bit in range(32) if bits > 0 and bits >> bit & 1)
        yield step.verb, step.expected.reason
        yield step.verb, step.expected.warning


@functools.cache
def smallest_cover(over_a_socket: bool = False) -> list[Scenario]:
    """Returns as few scenarios of the book as show everything that all show (:func:`facts_of`), and of each page one.

    Taken one by one, each the one that shows most of what is missing, the first of the book among equals.
    ``over_a_socket``: of those that a real clock can play, and no page for its own sake: there is one law for all ways.
    """
    from tests.scenarios.over_socket import is_playable

    shown = {
        index: {*facts_of(scenario), *(() if over_a_socket else (("page", page),))}
        for index, (page, scenario) in enumerate(BOOK)
        if not over_a_socket or is_playable(scenario)
    }
    missing, chosen = set().union(*shown.values()), []
    while missing:
        best = max(shown, key=lambda index: len(shown[index] & missing))
        chosen.append(BOOK[best][1])
        missing -= shown[best]
    return chosen


def _parameters(test: pytest.Item) -> dict[str, object]:
    return test.callspec.params if hasattr(test, "callspec") else {}
