"""Members of a group and their database are struck under load: nothing is lost, doubled, or forgotten to be told."""

import pytest

from tests.postgres import Server
from tests.proof import chaos
from tests.proof.amounts import NORMAL, SLOW
from tests.proof.chaos import NAMES, strike
from tests.proof.chaos_rules import BACKED_OUT, COMMITTED, Left, Recovery, Work, problems
from tests.spark.clusters import Network, why_no_namespaces

SLICES = 5


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, SLICES + 1))])
def test_nothing_is_lost_or_doubled_and_every_due_trigger_comes(daemon, server, part):
    faults = SLOW.faults // SLICES if part else NORMAL.faults
    found = strike(daemon, server, faults, seed=2026 + part)
    print(f"seed {2026 + part}: {found}")
    assert not found.violations, found.violations[:20]
    assert found.more["units of work"] > chaos.ENOUGH * faults, "too little was going on to prove much"


@pytest.fixture
def network():
    """A network for each member, with the database on the bridge between them."""
    if why := why_no_namespaces():
        pytest.skip(why)
    one = Network(len(NAMES), "10.79.251")
    one.make()
    yield one
    one.remove()


@pytest.mark.slow
def test_nor_where_each_member_has_a_network_of_its_own_that_is_cut(daemon, network):
    server = Server(address=network.address)
    try:
        found = strike(daemon, server, 12, seed=2040, network=network, kinds=("cut", "cut", "kill"))
    finally:
        server.end()
    print(f"seed 2040: {found}")
    assert not found.violations, found.violations[:20]
    assert found.more["recovered members"] > 2, "too few cuts were long enough"


def test_nor_where_somebody_gives_back_what_a_living_member_has_got(daemon, server):
    """No fence is there for that: the count of rows has its commit refused."""
    found = strike(daemon, server, 3, seed=2060, kinds=("give back",))
    print(f"seed 2060: {found}")
    assert not found.violations, found.violations[:20]
    assert found.more["refused turns"] >= 3


CAUGHT = {
    "without_epochs": (["stop"] * 8, ("past the fence", "commit of a fenced member", "lost", "not mended")),
    "without_counts": (["give back"] * 3, ("lost", "doubled")),
    "without_both": (["stop"] * 8, ("lost", "doubled", "commit of a fenced member", "not mended")),
}


@pytest.mark.parametrize(
    "mutant",
    ["without_counts", *(pytest.param(name, marks=pytest.mark.slow) for name in ("without_epochs", "without_both"))],
)
def test_a_group_whose_store_asks_less_is_caught(daemon, server, mutant, monkeypatch):
    monkeypatch.setattr(chaos, "BACK_S", 10.0)
    monkeypatch.setattr(chaos, "REFUSED_S", 3.0)
    kinds, by = CAUGHT[mutant]
    found = strike(daemon, server, len(kinds), seed=2050, kinds=kinds, program=("tests.proof.mutated", mutant))
    print(found, *found.violations[:20], sep="\n")
    said = {problem.split(": ")[1].partition(" within")[0] for problem in found.violations}
    assert said & set(by)


class TestWhatIsSaidOfBooks:
    """Each rule, by the smallest book that breaks it."""

    @staticmethod
    def work(*puts, gets=(), outcome=COMMITTED, **more):
        said = {"who": "c", "member": "QM1", "linked_s": 1.0, "asked_s": 5.0, "outcome": outcome} | more
        return Work(puts=[("Q", body) for body in puts], gets=[("Q", body, count) for body, count in gets], **said)

    def said(self, *works, left=(), recoveries=(), crashes=()):
        found = problems(works, [Left("Q", *one) for one in left], recoveries, crashes)
        return [problem.partition(":")[0] for problem in found]

    def test_what_was_committed_is_there_or_was_got(self):
        assert self.said(self.work("a", "b"), self.work(gets=[("a", 0)]), left=[("b", 0)]) == []
        assert self.said(self.work("a")) == ["lost"]

    def test_what_was_got_twice_or_got_and_lies_there_is_doubled(self):
        got = self.work(gets=[("a", 0)])
        assert self.said(self.work("a"), got, self.work(gets=[("a", 0)])) == ["doubled"]
        assert self.said(self.work("a"), got, left=[("a", 0)]) == ["doubled"]

    def test_what_was_backed_out_was_never_there_for_others(self):
        gone = self.work("a", outcome=BACKED_OUT)
        assert self.said(gone, self.work(gets=[("a", 0)], outcome=BACKED_OUT)) == ["aborted read"]
        assert self.said(gone, left=[("a", 0)]) == ["not backed out"]
        assert self.said(self.work("a", gets=[("a", 0)], outcome=BACKED_OUT)) == []

    def test_what_nobody_put_is_a_phantom(self):
        assert self.said(self.work(gets=[("a", 0)])) == ["phantom"]
        assert self.said(left=[("a", 0)]) == ["phantom"]

    def test_a_backout_is_counted(self):
        back = self.work(gets=[("a", 0)], outcome=BACKED_OUT)
        assert self.said(self.work("a"), back, left=[("a", 1)]) == []
        assert self.said(self.work("a"), back, left=[("a", 0)]) == ["backout count"]
        assert self.said(self.work("a"), back, self.work(gets=[("a", 0)])) == ["backout count"]

    def test_but_not_always_one_that_a_crash_of_the_database_brought(self):
        cut = self.work(gets=[("a", 0)], outcome=BACKED_OUT, was_cut=True, began_s=2.0, cut_s=4.0)
        assert self.said(self.work("a"), cut, left=[("a", 0)], crashes=[3.0]) == []
        assert self.said(self.work("a"), cut, left=[("a", 0)], crashes=[1.0, 6.0]) == ["backout count"]

    def test_a_unit_that_has_no_outcome_is_one_too_many(self):
        assert self.said(self.work(outcome="")) == ["no outcome"]

    def test_who_was_recovered_commits_nothing_more_over_an_old_connection(self):
        recoveries = [Recovery("QM1", 4.0)]
        assert self.said(self.work(), recoveries=recoveries) == ["commit of a fenced member"]
        assert self.said(self.work(linked_s=4.5), recoveries=recoveries) == []
        assert self.said(self.work(asked_s=3.5), recoveries=recoveries) == []
        assert self.said(self.work(was_cut=True), recoveries=recoveries) == []
        assert self.said(self.work(member="QM2"), recoveries=recoveries) == []
