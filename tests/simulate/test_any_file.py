"""Whatever stands in a file: it is a list of scenarios that can be played, or refused in one line with its place."""

from pathlib import Path
from string import printable

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from trigmon.simulate.expectations import EXPECTATIONS
from trigmon.simulate.in_process import InProcess
from trigmon.simulate.player import play
from trigmon.simulate.scenario_files import read_scenarios
from trigmon.simulate.step_verbs import ACTS
from trigmon.yaml12 import YamlError, load_all

BOOK = Path(__file__).parents[1] / "scenarios"
STEPS = [step for page in sorted(BOOK.glob("*.yaml")) for d in load_all(page.read_bytes()) for step in d.value["steps"]]
KEYS = sorted(
    {"as", "on", *ACTS, *EXPECTATIONS, *(key for s in STEPS for v in s.values() if type(v) is dict for key in v)}
)

words = st.sampled_from(
    ["Q", "INITQ", "QM1", "syncpoint", "wait", "browse_first", "on", "none", "", "DEFINE QLOCAL(Z)"]
)
scalars = words | st.none() | st.booleans() | st.integers(-2, 10**10) | st.floats(0, 9) | st.text(printable, max_size=9)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | words, inner, max_size=3),
    max_leaves=8,
)
steps = st.sampled_from(STEPS) | anything
scenarios = st.fixed_dictionaries(
    {"scenario": words | anything, "steps": st.lists(steps, max_size=6) | anything},
    optional={
        "setup": st.just("DEFINE QLOCAL(Q)\nDEFINE QLOCAL(INITQ)") | anything,
        "qmgrs": anything,
        "xyz": anything,
    },
)


def read(value):
    """The scenarios of a file that holds this value; None when it is refused in one line that names the place."""
    try:
        return read_scenarios(yaml.safe_dump(value, allow_unicode=True), "any.yaml")
    except YamlError as error:
        assert str(error).startswith("any.yaml:")
        assert str(error).isprintable()
        return None


@settings(max_examples=400)
@given(scenarios | anything)
def test_it_is_refused_or_can_be_played(value):
    for scenario in read(value) or []:
        result = play(scenario, InProcess(scenario.q_mgrs, "memory"))
        assert len(result.steps) in (1, len(scenario.steps))


@settings(max_examples=150)
@given(st.lists(st.sampled_from(STEPS), max_size=12))
def test_the_steps_of_the_book_can_be_played_in_any_order(chosen):
    (scenario,) = read({"scenario": "s", "setup": "DEFINE QLOCAL(Q)\nDEFINE QLOCAL(INITQ)", "steps": chosen}) or [None]
    if scenario is not None:
        result = play(scenario, InProcess(scenario.q_mgrs, "memory"))
        assert not [step for step in result.steps if "see the log" in (step.failure or "")]
