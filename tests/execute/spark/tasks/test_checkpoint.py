"""Checkpoints of shares: an attempt that is cut short is gone on with, to the same answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.execute.spark.tasks.sharing import Outcome, SharedExecutor, connected, dealt, everywhere
from tests.execute.spark.tasks.test_share import CLOSURES, COUNTING, CSPA, SAME_GENERATION, random_pairs
from tests.oracle import model_of
from tests.running import Row, run
from tidelog.execute.spark.place import Place
from tidelog.execute.spark.tasks.checkpoint import CheckpointError, Checkpoints, last_chain
from tidelog.execute.spark.tasks.exchange import PeerError
from tidelog.execute.spark.tasks.share import Share
from tidelog.plan.executor import Progress
from tidelog.plan.placement import Distribution
from tidelog.program.check import check
from tidelog.syntax.parser import parse

TASKS = 3


class CutShortError(Exception):
    """The end of an attempt."""


class CutShort(SharedExecutor):
    """Runs fixpoints in attempts that end when there are so many checkpoints, or nearly."""

    def __init__(self, place: Place, ends: list[int]) -> None:
        super().__init__(TASKS)
        self.place, self.ends = place, ends
        self.chains: list[int] = []
        self.fixpoints = 0

    def outcome(self, distribution: Distribution) -> Outcome:
        self.fixpoints += 1
        place = self.place / str(self.fixpoints)
        for end in self.ends:
            with pytest.raises((CutShortError, PeerError)):
                self.attempt(distribution, place, f"until{end}", end)
        return self.attempt(distribution, place, "whole", None)

    def attempt(self, distribution: Distribution, place: Place, word: str, end: int | None) -> Outcome:
        chain = last_chain(place, TASKS)
        self.chains.append(len(chain))
        exchanges = connected(TASKS)
        shares = [Share(distribution, task, TASKS, exchange) for task, exchange in enumerate(exchanges)]
        for task, share in enumerate(shares):
            for name, piece in dealt(self.tables(distribution), task, TASKS):
                share.load(name, piece)

        written = [Checkpoints(place, 0, word, list(chain)) for _ in shares]

        def watch(_: Progress) -> None:
            if end is not None and any(len(checkpoints.chain) >= end for checkpoints in written):
                raise CutShortError

        outcome = Outcome()
        try:
            pairs = zip(shares, written, strict=True)
            reports = everywhere(
                [lambda s=share, c=checkpoints: s.run(watch, c) for share, checkpoints in pairs]
            )
            for share, report in zip(shares, reports, strict=True):
                outcome.add(share.answers(), report)
        finally:
            everywhere([exchange.close for exchange in exchanges])
            for share in shares:
                share.close()
        return outcome


PROGRAMS: dict[str, tuple[str, dict[str, list[Row]]]] = {
    "left": (CLOSURES["left"], {"edge": [(i, i + 1) for i in range(30)]}),
    "both": (CLOSURES["both"], {"edge": [(i, i + 1) for i in range(30)]}),
    "strings": (SAME_GENERATION, {"parent": [(f"p{i // 2}", f"p{i}") for i in range(1, 60)]}),
    "cspa": (CSPA, {"assign": random_pairs(3, 25, 20), "dereference": random_pairs(4, 25, 20)}),
    "counting": (COUNTING, {"step": random_pairs(6, 12, 6)}),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_gone_on_with(name: str, tmp_path: Path) -> None:
    text, facts = PROGRAMS[name]
    program = check(parse(text))
    model = model_of(program, facts)
    executor = CutShort(Place(str(tmp_path)), [2, 4])
    result = run(program, executor, facts)
    for relation, rows in model.items():
        assert result.relations[relation] == rows, relation
    first, second, last = executor.chains[-3:]
    assert first == 0 < second < last
    whole = run(program, SharedExecutor(TASKS), facts)
    assert result.instances == whole.instances


def test_an_incomplete_checkpoint_is_passed_over(tmp_path: Path) -> None:
    place = Place(str(tmp_path))
    for name, tasks in (("000000-a", 3), ("000001-a", 3), ("000002-a", 2)):
        (place / name).make()
        for task in range(tasks):
            before = [f"{i:06}-a" for i in range(int(name[:6]))]
            (place / name).write(f"{task}.json", {"before": before})
    assert last_chain(place, 3) == ["000000-a", "000001-a"]
    assert last_chain(place / "nowhere", 3) == []


def test_what_cannot_be_written_fails_the_run(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    text, facts = PROGRAMS["left"]
    # A task that cannot write may have told the one whose error is seen.
    with pytest.raises((CheckpointError, PeerError), match=r"TL0616.*cannot be written"):
        run(check(parse(text)), CutShort(Place(str(blocked / "there")), []), facts)
