"""Rule instances with all tuples that they match, for tasks that have to know them apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tidelog.execute.spark.failures import Guards
from tidelog.execute.spark.keep.entries import Cell, Row, constant, rows_of
from tidelog.execute.spark.keep.fetch import Query, fetch
from tidelog.execute.spark.keep.query import Literal, number_of, query
from tidelog.execute.spark.keep.relation import KeptRelation, Limits
from tidelog.plan.maintenance import Reading
from tidelog.program.model import Atom, Const, Negative, Positive, Rule, Term, Var, Wildcard
from tidelog.program.types import S64

Ref = tuple[str, Row]  # a tuple: its relation, and its row
Making = Callable[[Row], Row]


@dataclass(frozen=True)
class Instance:
    """A rule instance: its head, and the tuples that positive literals matched.

    `matched` and `numbers`, their ranks or first iterations where these were asked for, are by
    position; `denied` has the cells that each negative literal was asked with.
    """

    reading: Reading
    head: Ref
    matched: Mapping[int, Ref]
    numbers: Mapping[int, int]
    denied: Mapping[int, Row]


def spelt_out(reading: Reading, relations: Mapping[str, KeptRelation]) -> Reading:
    """The reading with a variable for each `_` of a positive literal."""

    def spelt(position: int, atom: Atom) -> Atom:
        types = relations[atom.relation].types
        terms = [
            Var(f"_{position}_{i}", types[i]) if isinstance(term, Wildcard) else term
            for i, term in enumerate(atom.terms)
        ]
        return Atom(atom.relation, tuple(terms))

    body = tuple(
        Positive(spelt(i, literal.atom)) if isinstance(literal, Positive) else literal
        for i, literal in enumerate(reading.rule.body)
    )
    return replace(reading, rule=replace(reading.rule, body=body))


def instances(
    asked: Iterable[tuple[Reading, Mapping[int, Literal | None]]],
    relations: Mapping[str, KeptRelation],
    guards: Guards,
    limits: Limits,
) -> list[Instance]:
    """All instances of some readings over what their atoms read: one Spark job at most."""
    queries: list[Query] = []
    readers: list[_Reader] = []
    spark = None
    for reading, sources in asked:
        reader = _Reader(spelt_out(reading, relations), reading, sources)
        kept = relations[reading.rule.head.relation]
        spark = kept.spark
        frame = query(spark, reader.spelt, sources, reader.outputs, guards)
        if frame is not None:
            readers.append(reader)
            queries.append((frame, [term.type for term in reader.outputs]))
    if spark is None:
        return []
    tables = fetch(spark, queries, limits.touched)
    found = []
    for reader, (_, types), table in zip(readers, queries, tables, strict=True):
        found += [reader.instance(row) for row in rows_of(table, types)]
    return found


class _Reader:
    """What to ask for, and how instances are made of the answers."""

    def __init__(self, spelt: Reading, reading: Reading, sources: Mapping[int, Literal | None]) -> None:
        self.spelt, self.reading = spelt, reading
        rule = spelt.rule
        variables = dict.fromkeys(
            term for atom in _atoms(rule) for term in atom.terms if isinstance(term, Var)
        )
        counted = [i for i, source in sources.items() if source is not None and source.numbers]
        outputs: list[Var | Const] = [*variables, *(number_of(i) for i in counted)]
        self.outputs = outputs or [Const(0, S64)]
        at = {term: i for i, term in enumerate(self.outputs) if isinstance(term, Var)}
        self._numbers = [(i, at[number_of(i)]) for i in counted]
        self._head = _maker(rule.head.terms, at)
        self._matched = [
            (i, literal.atom.relation, _maker(literal.atom.terms, at))
            for i, literal in enumerate(rule.body)
            if isinstance(literal, Positive)
        ]
        self._denied = [
            (i, _maker([t for t in literal.atom.terms if not isinstance(t, Wildcard)], at, hidden=False))
            for i, literal in enumerate(rule.body)
            if isinstance(literal, Negative)
        ]

    def instance(self, row: Row) -> Instance:
        """The instance with these values."""
        numbers = {i: row[at] for i, at in self._numbers}
        return Instance(
            self.reading,
            (self.reading.rule.head.relation, self._head(row)),
            {i: (name, make(row)) for i, name, make in self._matched},
            numbers,  # type: ignore[arg-type]
            {i: make(row) for i, make in self._denied},
        )


def _atoms(rule: Rule) -> list[Atom]:
    bodies = [literal.atom for literal in rule.body if isinstance(literal, Positive | Negative)]
    return [rule.head, *bodies]


def _maker(terms: Sequence[Term], at: Mapping[Var, int], *, hidden: bool = True) -> Making:
    """From the values of the outputs to a row."""
    if not terms:
        return lambda values: (True,) if hidden else ()
    parts: list[tuple[int | None, Cell]] = [
        (None, constant(term.value, term.type)) if isinstance(term, Const) else (at[term], False)  # type: ignore[index]
        for term in terms
    ]
    return lambda values: tuple(cell if i is None else values[i] for i, cell in parts)
