"""What the streams bring, file by file, and what follows from it, in plain Python."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from random import Random

Row = tuple[int, ...]
Change = tuple[str, Row]
Model = dict[str, set[Row]]

PROGRAM = """
input relation Edge(x: s64, y: s64)
input relation Closed(x: s64)
output relation Path(x: s64, y: s64)
output relation Reach(x: s64, n: s64)

Path(x, y) :- Edge(x, y), not Closed(y).
Path(x, z) :- Path(x, y), Edge(y, z), not Closed(z).
Reach(x, n) :- Edge(x, _), n = count : { Path(x, _) }.
"""
INPUTS = {"Edge": ("x", "y"), "Closed": ("x",)}
ANSWERS = ("Path", "Reach")
NODES = 14
EVERY = {"Edge": 1, "Closed": 3}  # for so many files of edges there is one of the stream


class History:
    """Streams of changes that a seed determines, file by file."""

    def __init__(self, seed: int) -> None:
        self._randoms = {relation: Random(f"{relation} {seed}") for relation in INPUTS}
        self._files: dict[str, list[list[Change]]] = {relation: [] for relation in INPUTS}
        self._facts: dict[str, list[frozenset[Row]]] = {relation: [frozenset()] for relation in INPUTS}

    def counts(self) -> dict[str, int]:
        """How many files there are of each stream."""
        return {relation: len(files) for relation, files in self._files.items()}

    def write(self, edges: int, directory: Path) -> None:
        """Write more files, until there are so many of edges."""
        for relation, every in EVERY.items():
            (directory / relation).mkdir(parents=True, exist_ok=True)
            while len(self._files[relation]) * every < edges:
                number = len(self._files[relation])
                self._write(relation, self._next(relation), directory / relation / f"{number:05}.json")

    def _next(self, relation: str) -> list[Change]:
        """Changes of some facts, several of one fact among them: the last one counts."""
        random, before = self._randoms[relation], set(self._facts[relation][-1])
        changes: list[Change] = []
        for _ in range(random.randint(1, 6)):
            if before and random.random() < (0.4 if relation == "Edge" else 0.6):
                row = random.choice(sorted(before))
                before.discard(row)
                changes.append(("delete", row))
            else:
                row = tuple(random.randrange(NODES) for _ in INPUTS[relation])
                before.add(row)
                changes.append(("insert", row))
        self._files[relation].append(changes)
        self._facts[relation].append(frozenset(before))
        return changes

    def _write(self, relation: str, changes: list[Change], path: Path) -> None:
        """Write a file. Changes are numbered over all files: a batch may have several."""
        first = 100 * len(self._files[relation])
        lines = [
            json.dumps(
                {"_change_type": kind, "_commit_version": i, **dict(zip(INPUTS[relation], row, strict=True))}
            )
            for i, (kind, row) in enumerate(changes, first)
        ]
        beside = path.with_name(f".{path.name}")
        beside.write_text("\n".join(lines) + "\n", encoding="utf-8")
        moment = 1_700_000_000 + len(self._files[relation])  # Spark takes files in the order of their times
        os.utime(beside, (moment, moment))
        beside.rename(path)

    def model(self, files: Mapping[str, int]) -> Model:
        """What holds after so many files of each stream."""
        facts = {relation: self._facts[relation][files[relation]] for relation in INPUTS}
        closed = {x for (x,) in facts["Closed"]}
        after: dict[int, set[int]] = {}
        for x, y in facts["Edge"]:
            after.setdefault(x, set())
            if y not in closed:
                after[x].add(y)
        reached = {x: _reached(x, after) for x in after}
        return {
            "Edge": set(facts["Edge"]),
            "Closed": set(facts["Closed"]),
            "Path": {(x, y) for x, found in reached.items() for y in found},
            "Reach": {(x, len(found)) for x, found in reached.items()},
        }


def _reached(start: int, after: Mapping[int, set[int]]) -> set[int]:
    found: set[int] = set()
    waiting = list(after[start])
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += after.get(node, ())
    return found
