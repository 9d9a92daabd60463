"""Each reason that the product raises is reached by a call, and of every other the page says why it never is.

The page is trigmon/mq/REASONS.md. It is held against IBM's numbers, against the product's source and against the
stories of this room, so it can leave nothing out and claim nothing that no call does.
"""

from __future__ import annotations

import pytest

from tests.reasons import broken, clients, commands, getting, opening, putting
from tests.reasons.page import rows
from tests.reasons.raised import by_the_product, in_source
from tests.reasons.scripts import SCRIPTS
from tests.reasons.stories import FAILED, Stories, played
from tests.worlds import STORES, World
from trigmon.mq.reasons import Reason
from trigmon.mqsc.commands import read_script
from trigmon.mqsc.script import SOME_FAILED, run

IN_THE_RULES = Stories(opening.STORIES | putting.STORIES | getting.STORIES | commands.STORIES)


# -- the stories --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize(("reason", "way"), IN_THE_RULES)
def test_the_rules_give_this_reason_on_every_store(reason, way, store, tmp_path):
    world = World(store, tmp_path)
    try:
        assert played(IN_THE_RULES[reason, way], world) == (reason, way)
    finally:
        world.end()


@pytest.mark.parametrize(("reason", "way"), clients.STORIES)
def test_the_client_gives_this_reason(reason, way, shared_daemon):
    assert played(clients.STORIES[reason, way], shared_daemon) == (reason, way)


@pytest.mark.parametrize(("reason", "way"), broken.STORIES)
def test_a_broken_world_gives_this_reason(reason, way, daemon):
    assert played(broken.STORIES[reason, way], daemon) == (reason, way)


@pytest.mark.parametrize("reason", SCRIPTS)
def test_a_wrong_command_gives_this_reason_and_asks_for_nothing(reason, qm):
    (command,) = read_script(SCRIPTS[reason])
    assert command.error is not None
    assert command.error.reason is reason
    assert not command.calls
    assert run([SCRIPTS[reason]], qm.call, lambda line: None, "QM1") == SOME_FAILED


# -- the page -----------------------------------------------------------------------------------------------


def told():
    """Every story there is, by reason and way."""
    return {*IN_THE_RULES, *clients.STORIES, *broken.STORIES, *((reason, FAILED) for reason in SCRIPTS)}


def test_every_reason_stands_in_the_page_once_with_ibms_number_in_the_order_of_the_numbers():
    page, _ = rows()
    assert [(row.number, row.name) for row in page] == [(int(reason), reason.name) for reason in Reason]


def test_what_the_product_raises_is_what_the_page_says_it_raises():
    page, _ = rows()
    said = {Reason(row.number) for row in page if row.ways} - {Reason.NONE}
    assert said == set(by_the_product())


def test_each_way_in_which_the_page_says_a_reason_comes_has_its_story_and_no_other_has():
    page, _ = rows()
    assert {(Reason(row.number), way) for row in page for way in row.ways} == told()


def test_a_command_that_shares_a_reasons_name_shares_its_number():
    _, page = rows()
    assert [(row.number, row.name) for row in page] == [
        (3160, "OBJECT_IN_USE"),
        (3312, "UNKNOWN_OBJECT_NAME"),
        (4001, "OBJECT_ALREADY_EXISTS"),
        (4008, "OBJECT_NAME_ERROR"),
    ]
    for row in page:
        assert not row.ways
        assert str(int(Reason[row.name])) in row.said


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("raise QFull('Q')", {Reason.Q_FULL}),
        ("table = {'a': QFull}", {Reason.Q_FULL}),
        ("raise kind(QFull, 'Q') from None", {Reason.Q_FULL}),
        ("from trigmon.mq import errors\nraise errors.QFull()", {Reason.Q_FULL}),
        ("Refused(reason=int(Reason.Q_FULL))", {Reason.Q_FULL}),
        ("Refused(reason=2053)", {Reason.Q_FULL}),
        ("def f(kind=QFull): pass", {Reason.Q_FULL}),
        ("try:\n  g()\nexcept QFull:\n  raise QDeleted() from None", {Reason.Q_DELETED}),
        ("isinstance(QDeleted(), QFull)", {Reason.Q_DELETED}),
        ("error.reason in (Reason.Q_FULL,) or error.reason is Reason.Q_FULL", set()),
        ("{Reason.Q_FULL}, {Reason.Q_FULL: 1}", set()),
        ("def f(error: QFull) -> QFull: pass\nx: QFull", set()),
        ("Reason.NONE", set()),
    ],
)
def test_the_reader_of_the_source_tells_raising_from_recognising(text, found):
    assert in_source(f"from trigmon.mq.errors import QDeleted, QFull\n{text}") == found
