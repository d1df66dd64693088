"""Trees to text: as few parentheses as the grammar allows, long rules over several lines."""

from __future__ import annotations

import pytest

from tidelog.syntax import ast
from tidelog.syntax.ast import Dialect
from tidelog.syntax.parser import parse
from tidelog.syntax.printer import print_expr, print_literal, print_module, print_rule

DDLOG = """\
input relation Edge(from: string, to: string, weight: u32)
output relation Path(from: string, to: string)

Path(x, y) :- Edge(x, y, _).
Path(x, z) :- Path(x, y), Edge(.from = y, .to = z), not Cut(z), x != z.
Far(x, m) :- Edge(x, y, w), var v = w * 2 + 1, var m = v.group_by(x).max().
All(n) :- Edge(_, _, _), var n = Aggregate((), count()).
Edge("a", "b\\n", 1).
"""

SOUFFLE = """\
.decl edge(x: number, y: number, w: float)
.decl flag()
.input edge(IO=file, filename="a b.csv", delimiter="\\t")
.output path, far

path(x, y) :- edge(x, y, _).
path(x, z) :- path(x, y), edge(y, z, _), !cut(z), x != z, z = x ^ 2.
far(x, n) :- edge(x, _, _), n = count : { edge(x, y, w), y > 3 } + sum (w * 2.0) : { e(w) }.
flag().
"""


@pytest.mark.parametrize("text", [DDLOG, SOUFFLE])
def test_tidy_text_stays_as_it_is(text: str) -> None:
    assert print_module(parse(text)) == text


def test_empty_module() -> None:
    assert print_module(parse("// nothing\n")) == ""


def test_long_rule() -> None:
    text = "a(x) :- " + ", ".join(f"relation_{i}(x, y)" for i in range(6)) + "."
    assert print_module(parse(text)) == (
        "a(x) :-\n"
        "    relation_0(x, y),\n"
        "    relation_1(x, y),\n"
        "    relation_2(x, y),\n"
        "    relation_3(x, y),\n"
        "    relation_4(x, y),\n"
        "    relation_5(x, y).\n"
    )


def test_long_declaration() -> None:
    columns = [f"a_long_column_name_{i}: number" for i in range(4)]
    assert print_module(parse(f".decl r({', '.join(columns)})")) == (
        ".decl r(\n"
        "    a_long_column_name_0: number,\n"
        "    a_long_column_name_1: number,\n"
        "    a_long_column_name_2: number,\n"
        "    a_long_column_name_3: number\n"
        ")\n"
    )


@pytest.mark.parametrize(
    ("text", "ddlog", "souffle"),
    [
        ("((x + (y * z)))", "x + y * z", "x + y * z"),
        ("x - (y - z)", "x - (y - z)", "x - (y - z)"),
        ("(x - y) - z", "x - y - z", "x - y - z"),
        ("(x or y) and not (x = y)", "(x or y) and not x == y", "(x || y) && !(x = y)"),
        ("(x < y) = true", "(x < y) == true", "(x < y) = true"),
        ("(x bor y) bxor 1", "(x | y) ^ 1", "(x bor y) bxor 1"),
        ("as(x, number) + 1", "x as s64 + 1", "as(x, number) + 1"),
        ("as(-x, float)", "-x as double", "as(-x, float)"),
        ("pow(-5, x + 1)", "pow(-5, x + 1)", "(-5) ^ (x + 1)"),
        ("-(5)", "-(5)", "-(5)"),
        ("-(-x)", "--x", "--x"),
        ("bnot x", "~x", "bnot x"),
        ("x = (if (y) 1 else 2)", "x == if (y) 1 else 2", "x = if (y) 1 else 2"),
        ("1 + (if (y) 1 else 2)", "1 + (if (y) 1 else 2)", "1 + (if (y) 1 else 2)"),
        ("sum x : r(x)", "sum x : { r(x) }", "sum x : { r(x) }"),
        ("1e100", "1e+100", "1e+100"),
        ('"\\u{7}é"', '"\\u{7}é"', '"\\u{7}é"'),
    ],
)
def test_expressions(text: str, ddlog: str, souffle: str) -> None:
    rule = parse(f".decl r()\nfact({text}).").items[1]
    assert isinstance(rule, ast.Rule)
    value = rule.heads[0].args[0].value
    assert print_expr(value, Dialect.DDLOG) == ddlog
    assert print_expr(value, Dialect.SOUFFLE) == souffle


def test_literals_and_rules() -> None:
    rule = parse('a(x) :- b(x), !c(x), (f(x)), !(g(x)), contains("a", x).').items[0]
    assert isinstance(rule, ast.Rule)
    assert [print_literal(literal) for literal in rule.body] == [
        "b(x)",
        "not c(x)",
        "(f(x))",
        "not (g(x))",
        'contains("a", x)',
    ]
    assert print_rule(rule, Dialect.SOUFFLE) == 'a(x) :- b(x), !c(x), (f(x)), !(g(x)), contains("a", x).'


def test_relation_named_like_a_test() -> None:
    text = 'contains("a", "b").\na(x) :- contains("a", x), (contains("b", x)).\n'
    assert print_module(parse(text)) == text
