"""How maintenance reads a rule: the readings that together find each instance once.

Three patterns serve all algorithms.

*Driven.* To find the instances with at least one body atom in a small set (deleted
facts, new facts, the facts of the last round) without finding any of them twice, the
rule is read once for each atom that can match the set: that atom drives, the atoms
before it stay outside of the set, and those after it are free. A negative literal can
drive too: what makes it fail, or hold, is a change of its relation.

*Whole.* All instances of a rule: for a rule that is added or removed.

*Backward.* The instances with a given head: the head itself is put before the body,
as one more atom, and drives.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

from tidelog.plan.maintenance import Reading
from tidelog.plan.parts import AFTER, BEFORE, GAINED, KEPT, LOST, Part
from tidelog.program.model import Literal, Negative, Positive, Rule


def whole(rule: Rule, positive: Part, negative: Part) -> Reading:
    """Every instance: atoms match `positive`, nothing of `negative` matches a negated atom."""
    return Reading(rule, tuple(_part(literal, positive, negative) for literal in rule.body))


def lost_readings(rule: Rule, own: Set[str] = frozenset()) -> tuple[Reading, ...]:
    """The instances of the answers before the commit that changes of other strata have ended.

    Atoms over `own` relations are read as they were before, and do not drive.
    """
    return _changed(rule, own, at=LOST, not_at=GAINED, whole_part=BEFORE)


def gained_readings(rule: Rule, own: Set[str] = frozenset(), own_part: Part = AFTER) -> tuple[Reading, ...]:
    """The instances of the answers after the commit that changes of other strata have made possible."""
    return _changed(rule, own, at=GAINED, not_at=LOST, whole_part=AFTER, own_part=own_part)


def _changed(
    rule: Rule, own: Set[str], at: Part, not_at: Part, whole_part: Part, own_part: Part | None = None
) -> tuple[Reading, ...]:
    """Readings driven by each literal of another stratum; earlier such literals are unchanged.

    A positive literal drives with the tuples in `at`, a negative one with those in `not_at`. A
    negative literal before the driver is unchanged if its tuple is in neither BEFORE nor AFTER.
    """
    positions = [i for i, literal in enumerate(rule.body) if _relation(literal) not in (None, *own)]
    found = []
    for driver in positions:
        body = list(rule.body)
        parts: list[Part | None] = []
        for i, literal in enumerate(rule.body):
            match literal:
                case Positive(atom) if atom.relation in own:
                    parts.append(whole_part if own_part is None else own_part)
                case Positive():
                    parts.append(at if i == driver else KEPT if i < driver else whole_part)
                case Negative(atom) if i == driver:
                    body[i] = Positive(atom)
                    parts.append(not_at)
                case Negative():
                    parts.append(BEFORE | AFTER if i < driver else whole_part)
                case _:
                    parts.append(None)
        negated = isinstance(rule.body[driver], Negative)
        found.append(Reading(replace(rule, body=tuple(body)), tuple(parts), driver, negated))
    return tuple(found)


def driven(
    rule: Rule, own: Set[str], at: Part, before: Part, after: Part, positive: Part, negative: Part
) -> tuple[Reading, ...]:
    """Readings driven by each atom over `own` relations, at `at`.

    Atoms over `own` before the driver read `before`, those behind it `after`; atoms over other
    relations read `positive` and negated ones `negative`.
    """
    positions = [
        i for i, lit in enumerate(rule.body) if isinstance(lit, Positive) and lit.atom.relation in own
    ]

    def part(i: int, literal: Literal, driver: int) -> Part | None:
        if i in positions:
            return at if i == driver else before if i < driver else after
        return _part(literal, positive, negative)

    return tuple(
        Reading(rule, tuple(part(i, literal, driver) for i, literal in enumerate(rule.body)), driver)
        for driver in positions
    )


def backward(
    rule: Rule, candidates: Part, own: Set[str], own_part: Part, positive: Part, negative: Part
) -> Reading:
    """The instances whose head is a given tuple of `candidates`.

    Atoms over `own` relations read `own_part`, others `positive`, negated ones `negative`.
    """

    def part(literal: Literal) -> Part | None:
        if isinstance(literal, Positive) and literal.atom.relation in own:
            return own_part
        return _part(literal, positive, negative)

    body = (Positive(rule.head), *rule.body)
    return Reading(replace(rule, body=body), (candidates, *(part(lit) for lit in rule.body)), 0)


def reads_own(rule: Rule, own: Sequence[str] | Set[str]) -> bool:
    """Whether a rule has an atom over one of these relations."""
    return any(_relation(literal) in own for literal in rule.body)


def _relation(literal: Literal) -> str | None:
    return literal.atom.relation if isinstance(literal, Positive | Negative) else None


def _part(literal: Literal, positive: Part, negative: Part) -> Part | None:
    match literal:
        case Positive():
            return positive
        case Negative():
            return negative
        case _:
            return None
