"""What deciding a put asks of the store on disk is kept warm: no statement is run, whatever lies on the queue."""

import pytest

from tests.store.reading import statements
from tests.worlds import World
from trigmon.mq.calls import Explain, Put
from trigmon.rules.verbs import VERBS


@pytest.fixture
def world(tmp_path):
    world = World("sqlite", tmp_path)
    world.define("P", "PROCESS", appl_id="/bin/true")
    world.define("Q", trigger_control="on", trigger_type="depth", trigger_depth=51, process_name="P")
    world.define("Q2", "QALIAS", base_q_name="Q")
    for _ in range(50):
        world.put("Q", persistence=1)
    world.restart()
    yield world
    world.qm.stop()


@pytest.mark.parametrize("call", [Put(q_name="Q"), Put(q_name="Q2"), Explain(q_name="Q")], ids=lambda c: repr(c)[:20])
def test_facts_of_a_deep_queue_run_no_statement_but_for_the_last_runs_that_an_explanation_shows(world, call):
    seen = statements(world)
    verb, session = VERBS[type(call)], world.session("app")
    facts = world.store.facts(verb.wants(call, session.connection), verb.is_wide)
    assert facts.queue.depth == 50
    verb.decide(call, facts, None, world.clock.now(), world.qm._ids)
    assert [statement for statement in seen if " FROM run " not in " ".join(statement.split())] == []
    assert not seen or isinstance(call, Explain)
    world.qm.turn([(session, 1, Put(q_name="Q"))])
    world.store.idle()
    assert [statement for statement in seen if "INSERT INTO message" in statement]
