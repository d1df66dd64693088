"""What has to be known of strata to go on with tuples that another process has left.

Tuples carry the numbers of the algorithm that last brought their stratum up to date. A *note* says of a
stratum whose numbers these are; the *fingerprint* of all rules tells whether they are about the same ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tidelog.program.model import Relation, Stratum
from tidelog.program.strata import body_relations

USELESS = "useless"  # numbers that nobody can go on with


@dataclass(frozen=True)
class Note:
    """The numbers that relations carry, of a stratum that has just these, and who made them.

    `cost` is what starting the stratum has cost, where the algorithm goes by that (see `Weighing`).
    """

    relations: tuple[str, ...]
    kind: str
    algorithm: str
    cost: float | None = None


class Unfit(Exception):
    """What has been left cannot be gone on with; it says why."""


def fingerprint(strata: Iterable[Stratum], relations: Mapping[str, Relation]) -> str:
    """A digest of rules, and of the columns of what they speak of; not of their numbers, texts or order."""
    parts: list[str] = []
    named: set[str] = set()
    for stratum in strata:
        named.update(stratum.relations)
        for rule in (*stratum.base, *stratum.recursive):
            named.update(body_relations(rule))
            parts.append(repr((rule.head, rule.body)))
        if (group := stratum.aggregate) is not None:
            named.add(group.source)
            parts.append(repr((group.head, group.source, group.keys, group.op.value, group.value)))
    parts += [repr((name, relations[name].columns)) for name in named]
    return hashlib.sha256("\n".join(sorted(parts)).encode()).hexdigest()


def stratum_of(note: Note, strata: Sequence[Stratum]) -> Stratum:
    """The stratum that a note is about. Raises Unfit."""
    if note.kind == USELESS:
        return Stratum(-1, note.relations, (), ())
    for stratum in strata:
        if set(stratum.relations) == set(note.relations):
            return stratum
    raise Unfit(f"there is no stratum of {', '.join(note.relations)}")
