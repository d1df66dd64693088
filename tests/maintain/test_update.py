"""The driver: who is given which stratum, which strata are passed over, and when numbers are of use."""

from __future__ import annotations

import pytest

from tests.maintain.keeping import Live, instances, open_keeper
from tidelog.execute.substitution.executor import SubstitutionExecutor
from tidelog.maintain import auto, past
from tidelog.maintain.algorithms import ALGORITHMS, named
from tidelog.maintain.auto import Auto
from tidelog.maintain.elastic import Elastic
from tidelog.maintain.fbf import FBF
from tidelog.maintain.update import Maintenance
from tidelog.plan.maintenance import Keeper

PROGRAM = """
.decl e(x: number, y: number)
.decl f(x: number, y: number)
.decl p(x: number, y: number)
.decl q(x: number, y: number)
.decl n(x: number, c: number)
.decl r(x: number)
.output n
.output r
p(x, y) :- e(x, y).
p(x, z) :- p(x, y), e(y, z).
q(x, y) :- f(x, y).
q(x, z) :- q(x, y), f(y, z).
r(x) :- p(x, x), !q(x, x).
n(x, c) :- p(x, _), c = count : { p(x, _) }.
p(x, y) :- q(y, x).
"""
LINK, JOIN = "p(x, y) :- q(y, x).", "q(x, z) :- q(x, y), f(y, z)."
FACTS = {"e": [(1, 2), (2, 3)], "f": [(1, 2), (2, 1)]}


def test_each_stratum_has_its_algorithm() -> None:
    live = Live(PROGRAM, "fbf", FACTS)
    done = live.algorithms()
    assert done["p",] == done["q",] == "fbf"
    assert done["r",] == "counts"
    assert [name for relations, name in done.items() if relations[0].endswith("$count")] == ["regroup"]
    assert {report.why for report in live.reports} == {"for the first time"}


def test_without_counts_the_algorithm_is_given_every_stratum() -> None:
    live = Live(PROGRAM, "dred", FACTS, counts=False)
    live.commit({"e": [(3, 1)]})
    assert live.algorithms()["r",] == "dred"
    assert "counts" not in live.algorithms().values()


def test_strata_that_nothing_concerns_are_passed_over() -> None:
    live = Live(PROGRAM, "ranked", FACTS, without=[LINK])
    live.commit({"f": [(2, 3)]})
    assert list(live.algorithms()) == [("q",), ("r",)]
    live.commit({"p": [(1, 3)]})  # it holds already: what reads p is not concerned
    assert list(live.algorithms()) == [("p",)]
    live.commit(add=[LINK])
    assert ("q",) not in live.algorithms()
    assert ("p",) in live.algorithms()
    live.commit()
    assert live.reports == []


def test_work_is_in_proportion_to_the_rule() -> None:
    """A rule is added to what is there, and removed again, without a look at the rest."""
    for name in ALGORITHMS:
        if name in ("recompute", "dbsp"):
            continue  # one starts anew; the other adds products
        live = Live(PROGRAM, name, {"e": [(i, i + 1) for i in range(30)], "f": [(50, 40)]}, without=[LINK])
        live.commit(add=[LINK])
        assert instances(live.phases("p")) == 1, name
        live.commit(remove=[LINK])
        assert instances(live.phases("p")) <= 2, name


@pytest.mark.parametrize("name", ["counting", "elastic", "dbsp"])
def test_iterations_are_counted_within_one_stratum(name: str) -> None:
    """When strata grow together, or apart, these start anew."""
    back = "q(x, y) :- p(x, y), f(x, y)."
    live = Live(PROGRAM.replace("!q(x, x)", "!f(x, x)") + back, name, FACTS, without=[back])
    live.commit({"e": [(3, 1)]})
    assert live.reports[0].why != "for the first time"
    live.commit(add=[back])
    joined = {report.relations: report for report in live.reports}["p", "q"]
    assert joined.why.startswith("started anew")
    live.commit(remove=[back])
    apart = {report.relations: report for report in live.reports}
    assert apart["q",].why.startswith("started anew")
    live.commit({"e": [(7, 8)], "f": [(7, 8)]})
    live.commit(delete={"e": [(1, 2)], "f": [(2, 1)]})


def test_ranks_outlive_a_split_but_not_a_union() -> None:
    back = "q(x, y) :- p(x, y), f(x, y)."
    live = Live(PROGRAM.replace("!q(x, x)", "!f(x, x)") + back, "ranked", FACTS, without=[back])
    live.commit(add=[back])
    joined = {report.relations: report for report in live.reports}["p", "q"]
    assert joined.why == "started anew, as it carried no ranks"
    live.commit(remove=[back])
    assert {report.why for report in live.reports} == {"as asked for"}


def test_a_recursive_rule_added_to_counts_starts_nothing_anew() -> None:
    live = Live(PROGRAM, "ranked", FACTS, without=[LINK, JOIN])
    assert live.algorithms()["q",] == "counts"
    live.commit(add=[JOIN])
    assert live.algorithms()["q",] == "ranked"
    assert instances(live.phases("q")) == 4  # 1-2-1, 2-1-2, and each once more
    live.commit(remove=[JOIN])
    report = {report.relations: report for report in live.reports}["q",]
    assert (report.algorithm, report.why) == ("ranked", "not recursive any more")


def test_a_change_of_algorithm_starts_anew_only_if_numbers_differ() -> None:
    live = Live(PROGRAM, "recompute", FACTS)
    whys = []
    for turn, name in enumerate(["ranked", "auto", "dred", "fbf", "ranked", "ranked", "counting"]):
        live.maintenance.algorithm = name
        live.commit({"e": [(9, turn)]})
        whys.append(
            {report.relations: report for report in live.reports}["p",].why.startswith("started anew")
        )
    assert whys == [False, False, False, False, True, False, True]


def test_names() -> None:
    fbf, elastic = named("fbf(2)"), named("elastic(0.5)")
    assert isinstance(fbf, FBF) and fbf.depth == 2
    assert isinstance(elastic, Elastic) and elastic.share == 0.5
    for name in (*ALGORITHMS, "fbf(2)", "elastic(0.5)"):
        assert named(name).name == name
    for wrong in ("drred", "fbf(x)", "fbf(0.5)", "dred(1)", ""):
        with pytest.raises(ValueError, match="no algorithm is called"):
            Maintenance(open_keeper(), wrong)


# --- auto ---------------------------------------------------------------------------


def chain(algorithm: Auto, n: int = 60, keeper: Keeper | None = None) -> Live:
    text = """
    .decl T(x: number, y: number)
    .decl B(x: number)
    .output B
    B(y) :- T(x, y), B(x).
    """
    return Live(text, algorithm, {"T": [(i, i + 1) for i in range(n)], "B": [(0,)]}, keeper=keeper)


def test_policies() -> None:
    for policy, algorithm, phases in (
        ("incremental", "ranked", ["delete", "rederive"]),
        ("full", "recompute", ["fixpoint"]),
    ):
        chosen = Auto(policy)
        live = chain(chosen)
        live.commit(delete={"T": [(0, 1)]})
        assert chosen.choice.algorithm == algorithm
        assert live.reports[-1].why == f"{algorithm}: by policy"
        assert list(live.phases("B")) == phases
    with pytest.raises(ValueError, match="policy is 'lazy', and should be one of auto, incremental, full"):
        Auto("lazy")


def test_auto_updates_where_little_changes_and_recomputes_where_much_does() -> None:
    chosen = Auto()
    live = chain(chosen)
    live.commit(delete={"T": [(58, 59)]})
    assert chosen.choice.algorithm == "ranked"
    assert "1 change" in live.reports[-1].why
    live.commit({"T": [(100 + i, 101 + i) for i in range(80)]})
    assert chosen.choice.algorithm == "recompute"


def test_auto_counts_the_explicit_facts_of_its_own_relations() -> None:
    chosen = Auto()
    live = chain(chosen)
    live.commit({"B": [(1_000,), (1_001,)], "T": [(1_000, 1_002)]})
    assert chosen.choice.algorithm == "ranked"
    assert "3 changes" in live.reports[-1].why
    live.commit(delete={"B": [(1_000,)]})
    assert "1 change" in live.reports[-1].why


class Patient(SubstitutionExecutor):
    """Says how long an update may always take, as one whose rounds cost more than tuples."""

    def __init__(self, patience: float) -> None:
        super().__init__()
        self.patience = patience


def patiently(patience: float, chosen: Auto) -> Live:
    return chain(chosen, keeper=Patient(patience))


def test_auto_has_patience_where_rounds_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past, "LEAST_SECONDS", 0)
    monkeypatch.setattr(past, "ANYWAY_SECONDS", 0)
    monkeypatch.setattr(past, "FEW_SHARE", 0)
    monkeypatch.setattr(past, "GLANCE_SHARE", 0)
    monkeypatch.setattr(auto, "FAR", 1e9)
    chosen = Auto()
    live = patiently(60.0, chosen)
    for edge in ((10, 11), (3, 4)):
        live.commit(delete={"T": [edge]})
        assert chosen.choice.algorithm == "ranked"
    assert "ms for recomputing" in chosen.choice.why


def test_auto_does_not_try_again_at_once_what_took_too_long() -> None:
    chosen = Auto()
    live = patiently(1e-9, chosen)
    chosen._past["B",].full = 0.0
    live.commit(delete={"T": [(10, 11)]})
    assert "abandoned" in chosen.choice.why
    assert list(live.phases("B")) == ["abandoned", "fixpoint"]
    chosen._past["B",].full = 0.0
    live.commit({"T": [(10, 11)]})
    assert chosen.choice.algorithm == "recompute"
    assert "abandoned" not in chosen.choice.why


def test_auto_abandons_an_update_that_does_not_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past, "LEAST_SECONDS", 0)
    monkeypatch.setattr(past, "ANYWAY_SECONDS", 0)
    monkeypatch.setattr(past, "FEW_SHARE", 0)
    monkeypatch.setattr(past, "GLANCE_SHARE", 0)
    chosen = Auto()
    live = chain(chosen)
    live.commit(delete={"T": [(10, 11)]})
    assert chosen.choice.algorithm == "recompute"
    assert "abandoned" in live.reports[-1].why
    assert list(live.phases("B")) == ["abandoned", "fixpoint"]
    assert instances(live.phases("B")) == 2 + 10  # those of a first round in vain
