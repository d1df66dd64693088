"""The generated histories are what they are meant to be, and failing ones get small."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from tests.properties.expected import Expected
from tests.properties.histories import (
    AddRule,
    Delete,
    History,
    Insert,
    RemoveRule,
    State,
    generate_history,
    splits,
)
from tests.properties.shrink import script, shrink, tidied

SEEDS = range(200)
HISTORIES = [generate_history(seed) for seed in SEEDS]


def test_a_seed_is_a_history() -> None:
    assert [generate_history(seed) for seed in range(5)] == HISTORIES[:5]
    assert len(set(HISTORIES)) == len(HISTORIES)


def test_every_state_is_accepted() -> None:
    assert [history.seed for history in HISTORIES if not Expected(history).accepted] == []


def test_every_operation_is_possible() -> None:
    """Only rules that are there are removed, only others are added."""
    for history in HISTORIES:
        assert tidied(history).transactions == tuple(t for t in history.transactions if t.operations)


def test_histories_have_every_feature() -> None:
    seen: Counter[str] = Counter()
    for history in HISTORIES:
        seen["declared"] += history.declared
        seen["undeclared"] += not history.declared
        seen["facts in the program"] += bool(history.facts)
        for transaction in history.transactions:
            seen[transaction.ending] += 1
        states = history.states()
        for transaction, state in zip(history.transactions, states, strict=False):
            for operation in transaction.operations:
                seen[type(operation).__name__] += 1
                if isinstance(operation, Insert | Delete):
                    derived = operation.relation.lower().startswith("r")
                    seen["fact of a derived relation"] += derived
                    there = (operation.relation, operation.row) in state.facts
                    seen["no effect"] += there is isinstance(operation, Insert)
                if isinstance(operation, AddRule):
                    seen["declared with a rule"] += bool(operation.declarations)
                    head = operation.rule.partition("(")[0]
                    seen["new relation"] += not any(head in rule for rule in state.rules)
                state = state.after(operation)
    for feature in (
        "declared", "undeclared", "commit", "rollback", "failure", "Insert", "Delete",
        "AddRule", "RemoveRule", "fact of a derived relation", "no effect", "new relation",
        "declared with a rule", "facts in the program",
    ):  # fmt: skip
        assert seen[feature] >= 20, (feature, seen[feature])


def test_commits_change_answers() -> None:
    """Most commits have something to do: derived rows come or go in most histories, and both in many."""
    comes = goes = 0
    for history in HISTORIES:
        models = Expected(history).models
        pairs = [
            (old.get(name, set()), new[name])
            for old, new in pairwise(models[1:])
            for name in new
            if name.lower().startswith("r")
        ]
        comes += any(new - old for old, new in pairs)
        goes += any(old - new for old, new in pairs)
    assert comes > 0.6 * len(HISTORIES) and goes > 0.6 * len(HISTORIES), (comes, goes)


def test_splits_end_in_the_same_state() -> None:
    for history in HISTORIES:
        for other in splits(history):
            assert other.states()[-1] == history.states()[-1]
            assert all(t.ending == "commit" for t in other.transactions)


def holds_at_the_end(history: History) -> bool:
    """A stand-in for a failure: a rule was removed at some time, and a fact holds at the end."""
    end: State = history.states()[-1]
    committed = [t for t in history.transactions if t.ending == "commit"]
    removed = any(isinstance(o, RemoveRule) for t in committed for o in t.operations)
    return removed and any(1 in row for _, row in end.facts)


def test_failing_histories_get_small() -> None:
    failing = [history for history in HISTORIES if holds_at_the_end(history)]
    assert len(failing) > 20
    for history in failing[:20]:
        small = shrink(history, holds_at_the_end)
        operations = [o for t in small.transactions for o in t.operations]
        assert holds_at_the_end(small)
        assert len(operations) + len(small.rules) + len(small.facts) == 3, history.seed
        assert len(small.transactions) == 1
        code = script(small, "engine='local'", lambda _: None, "")
        compile(code, "reproduction", "exec")
        assert ("tx.insert(" in code or small.facts) and "tx.remove_rule(" in code
