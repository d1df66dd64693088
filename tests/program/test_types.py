"""Types: where they come from, and what stays open."""

from __future__ import annotations

from tests.program.showing import checked, problems, rules, types
from tidelog.program.model import Const, Filter
from tidelog.program.types import DOUBLE, S64, STRING, U64, UNKNOWN


def test_untyped_from_facts() -> None:
    text = (
        'edge(1, 2). name(1, "a", 1.5, true). tc(x, y) :- edge(x, y). named(y) :- tc(x, _), name(x, y, _, _).'
    )
    assert types(checked(text)) == {
        "edge": "s64 s64",
        "name": "s64 string double bool",
        "tc": "s64 s64",
        "named": "string",
    }


def test_untyped_through_many_rules_whatever_the_order() -> None:
    text = "c(x) :- b(x). b(x) :- a(x). d(x, n) :- c(x), n = strlen(x)."
    assert types(checked(text)) == {"c": "string", "b": "string", "a": "string", "d": "string s64"}


def test_integers_and_floats_in_one_column() -> None:
    program = checked("a(1). a(2.5). a(-3).")
    assert types(program) == {"a": "double"}
    assert [fact.row for fact in program.facts] == [(1.0,), (2.5,), (-3.0,)]
    assert [type(fact.row[0]) for fact in program.facts] == [float, float, float]


def test_known_from_facts_given() -> None:
    program = checked("p(x) :- e(x, _), x > 3.", {"e": (U64, STRING), "other": (DOUBLE,)})
    assert types(program) == {"e": "u64 string", "other": "double", "p": "u64"}
    assert [r.name for r in program.relations.values() if r.is_input] == ["e", "other"]
    assert program.rules[0].body[1] == Filter(program.rules[0].body[1].condition)  # type: ignore[union-attr]
    assert Const(3, U64) in program.rules[0].body[1].condition.args  # type: ignore[union-attr]


def test_known_conflicts_with_program() -> None:
    assert problems('p(x) :- e(x, "a").', {"e": (S64, S64)}) == [
        "TL0202 1:14 column `c1` of `e` is s64, but this is string"
    ]
    assert problems("p(x) :- e(x).", {"e": (S64, S64)}) == ["TL0102 1:9 `e` has 2 columns, not 1"]


def test_open_columns() -> None:
    assert types(checked("p(x) :- q(x).")) == {"p": "unknown", "q": "unknown"}
    assert types(checked("p(x) :- q(x).", default=STRING)) == {"p": "string", "q": "string"}
    # arithmetic leaves only numbers, so the default does not fit
    assert types(checked("p(x * y) :- q(x, y).", default=STRING)) == {"p": "s64", "q": "s64 s64"}
    assert types(checked("p(x) :- q(x).", {"q": (UNKNOWN,)})) == {"q": "unknown", "p": "unknown"}


def test_literals_adapt() -> None:
    text = """
    relation A(x: u8, y: float, z: bigint)
    relation B(x: u8)
    A(255, 1, 100000000000000000000000).
    B(x + 1) :- A(x, y, _), y < 2.5, 3 < x.
    """
    program = checked(text)
    assert program.facts[0].row == (255, 1.0, 10**23)
    assert not problems(text)


def test_float_is_rounded_to_its_type() -> None:
    assert checked("relation A(x: float)\nA(0.1).").facts[0].row == (0.10000000149011612,)


def test_plus_on_strings_joins() -> None:
    assert rules('.decl a(x: symbol)\n.decl b(x: symbol)\nb(x + "!") :- a(x).') == [
        "b($1) :- a(x), $1 := concat(x, '!')"
    ]


def test_cast_of_a_literal_is_the_literal() -> None:
    text = "relation A(x: u64)\nA(64'd18446744073709551615).\nA(7 as u64)."
    assert [fact.row for fact in checked(text).facts] == [(2**64 - 1,), (7,)]


def test_count_takes_the_type_it_meets() -> None:
    text = ".decl e(x: number)\n.decl n(x: unsigned)\nn(c) :- c = count : { e(_) }."
    assert rules(text)[-1] == "n(c) :- n$1$count$all($3), c := cast($3, u64)"


def test_roles() -> None:
    def roles(text: str) -> dict[str, str]:
        return {
            r.name: ("i" if r.is_input else "") + ("o" if r.is_output else "") + ("s" if r.printsize else "")
            for r in checked(text).relations.values()
        }

    assert roles("e(1). p(x) :- e(x), f(x).") == {"e": "", "p": "o", "f": "i"}
    assert roles("p(x) :- f(x). q(x) :- p(x).\n.output q") == {"p": "", "f": "i", "q": "o"}
    assert roles(".decl a(x: number)\n.input a\n.output a\n.printsize a") == {"a": "ios"}
    assert roles("input relation A(x: s64)\noutput relation B(x: s64)\nrelation C(x: s64)") == {
        "A": "i",
        "B": "o",
        "C": "",
    }


def test_directive_options() -> None:
    text = '.decl a(x: number)\n.input a(filename="x.csv", delimiter=",")\n.output a(IO=stdout)'
    relation = checked(text).relations["a"]
    assert relation.input_options == (("filename", "x.csv"), ("delimiter", ","))
    assert relation.output_options == (("IO", "stdout"),)


def test_function_of_a_dialect() -> None:
    souffle = '.decl a(x: symbol)\n.decl b(x: symbol)\nb(substr(x, 1, 2)) :- a(x), contains("q", x).'
    assert rules(souffle) == ["b($1) :- a(x), contains(x, 'q'), $1 := substring(x, 1, 2)"]
    ddlog = 'relation A(x: string)\nrelation B(x: string)\nB(substr(x, 1, 2)) :- A(x), contains(x, "q").'
    assert rules(ddlog) == ["B($1) :- A(x), contains(x, 'q'), $1 := substring(x, 1, sub(max(1, 2), 1))"]


def test_relation_named_like_a_function() -> None:
    assert rules("p(x) :- contains(x, y). contains(1, 2).") == ["p(x) :- contains(x, y)"]
    assert rules("p(x) :- string_contains(x, y), q(x, y).") == ["p(x) :- contains(x, y), q(x, y)"]


def test_facts_keep_their_order_and_their_checks() -> None:
    program = checked('e(1, "a"). f(2). e(3, "b"). e(1 + 3, "c"). f(5). e(6, "d").')
    assert [(fact.relation, *fact.row) for fact in program.facts] == [
        ("e", 1, "a"),
        ("f", 2),
        ("e", 3, "b"),
        ("e", 4, "c"),
        ("f", 5),
        ("e", 6, "d"),
    ]
    assert problems("e(1). e(2). e(9223372036854775808). e(-9223372036854775809).") == [
        "TL0203 1:15 9223372036854775808 is out of range for s64",
        "TL0203 1:39 -9223372036854775809 is out of range for s64",
    ]
    assert problems("relation A(x: u8)\nA(1).\nA(255).\nA(256).") == ["TL0203 4:3 256 is out of range for u8"]


def test_types_of_facts_are_settled_by_rules() -> None:
    program = checked("e(1). e(2). e(3). p(x) :- e(x), x < 2.5.")
    assert [repr(fact.row) for fact in program.facts] == ["(1.0,)", "(2.0,)", "(3.0,)"]


def test_integers_longer_than_a_bigint() -> None:
    long = "9" * 5000
    assert problems(f"relation A(x: bigint)\nA({long}).") == ["TL0006 2:3 number of more than 1000 digits"]
    assert problems("relation A(x: bigint)\nA(1 << 13000).") == [
        "TL0208 2:3 this has no value: integer overflow"
    ]
