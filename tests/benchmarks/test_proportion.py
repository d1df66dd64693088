"""A commit of one fact touches what the fact matters to, however many facts there are: counted, not timed."""

from __future__ import annotations

from functools import cache

import pytest

from benchmarks.facts import Tables
from benchmarks.live import ALGORITHMS, Answers, Change, Live
from benchmarks.proportion import MOST_TOUCHED, PROGRAMS, TURNS, components, draws

FACTS, COMMITS, SEED = 10_000, 12, 5


@cache
def facts() -> Tables:
    return components(FACTS, SEED)


def commits(program: str, algorithm: str) -> tuple[list[Answers], list[int]]:
    """The answers after each commit, the first evaluation included; and the tuples that each one touched."""
    live = Live(PROGRAMS[program], algorithm)
    done = [live.commit(Change(insert=facts()))]
    for relation, row in draws(facts(), TURNS[program], COMMITS, SEED):
        change = Change(delete={relation: facts()[relation].slice(row, 1)})
        done += [live.commit(change), live.commit(change.reverse)]
        assert done[-1].answers == done[0].answers
    assert live.problems(whole=True) == []
    live.close()
    return [commit.answers for commit in done], [commit.touched for commit in done]


@cache
def recomputed(program: str) -> list[Answers]:
    answers, touched = commits(program, "recompute")
    assert max(touched[1:]) > MOST_TOUCHED  # so the bound below says something
    return answers


@pytest.mark.parametrize("algorithm", [name for name in ALGORITHMS if name != "recompute"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_one_fact_touches_little(program: str, algorithm: str) -> None:
    answers, touched = commits(program, algorithm)
    assert answers == recomputed(program)
    assert max(touched[1:]) <= MOST_TOUCHED
    assert max(touched[1:]) > 0
