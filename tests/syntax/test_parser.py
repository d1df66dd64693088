"""Text to tree: each construct of the language, in both styles."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.syntax.trees import HERE
from tidelog.syntax import ast
from tidelog.syntax.ast import Dialect, Role
from tidelog.syntax.errors import ProgramError
from tidelog.syntax.generate import TABLES, render
from tidelog.syntax.parser import parse, read


def expr(text: str, dialect: Dialect = Dialect.SOUFFLE) -> ast.Expr:
    """The tree of an expression: the argument of a fact."""
    declaration = ".decl r()" if dialect is Dialect.SOUFFLE else "relation R()"
    rule = parse(f"{declaration}\nfact({text}).").items[1]
    assert isinstance(rule, ast.Rule)
    return rule.heads[0].args[0].value


def body(text: str) -> tuple[ast.Literal, ...]:
    rule = parse(f"head() :- {text}.").items[0]
    assert isinstance(rule, ast.Rule)
    return rule.body


def var(name: str) -> ast.Var:
    return ast.Var(name, HERE)


def const(value: bool | int | float | str) -> ast.Const:
    return ast.Const(value, HERE)


def binary(op: str, left: ast.Expr, right: ast.Expr) -> ast.Binary:
    return ast.Binary(op, left, right, HERE)


def call(function: str, *args: ast.Expr) -> ast.Call:
    return ast.Call(function, args, HERE)


def atom(relation: str, *args: ast.Expr, **named: ast.Expr) -> ast.Atom:
    arguments = [ast.Argument(None, arg, HERE) for arg in args]
    arguments += [ast.Argument(name, arg, HERE) for name, arg in named.items()]
    return ast.Atom(relation, tuple(arguments), HERE, HERE)


def holds(relation: str, *args: ast.Expr) -> ast.Positive:
    return ast.Positive(atom(relation, *args), HERE)


X, Y, Z = var("x"), var("y"), var("z")
ANY = ast.Wildcard(HERE)


# --- declarations --------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("input relation R(a: s64, b: s64) primary key (x) x.a", ["a"]),
        ("input relation R(a: s64, b: s64) primary key (r) (r.b, r.a)\nR(1, 2).", ["b", "a"]),
        ("input relation R(a: s64, b: s64)\n  primary key (b)\nS(x) :- R(x, _).", ["b"]),
        (".decl r(a: number, b: number) btree primary key (a, b)\n.input r", ["a", "b"]),
        (".decl r(a: number, b: number)\nprimary(x) :- key(x).", []),
    ],
)
def test_primary_keys(text: str, key: list[str]) -> None:
    declaration = parse(text).items[0]
    assert isinstance(declaration, ast.RelationDecl)
    assert [column.name for column in declaration.key] == key
    assert all(column.span.text == column.name for column in declaration.key)


def test_a_primary_key_of_another_row() -> None:
    with pytest.raises(ProgramError) as caught:
        parse("input relation R(a: s64, b: s64) primary key (x) (x.a, y.b)")
    (problem,) = caught.value.diagnostics
    assert (problem.code, problem.message) == ("TL0003", "expected 'x.', found 'y.'")
    assert problem.span is not None and problem.span.text == "y.b"


def test_ddlog_declarations() -> None:
    module = parse(
        "input relation E(from: string, to: bit<32>)\noutput relation P(x: signed<7>)\nrelation Q()"
    )
    assert module.dialect is Dialect.DDLOG
    assert module.items == (
        ast.RelationDecl(
            "E", (ast.Column("from", "string", HERE), ast.Column("to", "u32", HERE)), Role.INPUT, HERE, HERE
        ),
        ast.RelationDecl("P", (ast.Column("x", "signed<7>", HERE),), Role.OUTPUT, HERE, HERE),
        ast.RelationDecl("Q", (), Role.INTERNAL, HERE, HERE),
    )


def test_souffle_declarations() -> None:
    module = parse(".decl e, f(x: number, count: unsigned) brie\n.decl g(a: symbol, b: float)\n.output g")
    assert module.dialect is Dialect.SOUFFLE
    columns = (ast.Column("x", "s64", HERE), ast.Column("count", "u64", HERE))
    assert module.items == (
        ast.RelationDecl("e", columns, Role.INTERNAL, HERE, HERE),
        ast.RelationDecl("f", columns, Role.INTERNAL, HERE, HERE),
        ast.RelationDecl(
            "g", (ast.Column("a", "string", HERE), ast.Column("b", "double", HERE)), Role.INTERNAL, HERE, HERE
        ),
        ast.Directive("output", ("g",), (), HERE),
    )


def test_directive_options() -> None:
    text = '.input e, f(IO=file, filename="a b.csv", delimiter="\\t", headers=true, n=3)\n.printsize e'
    assert parse(text).items == (
        ast.Directive(
            "input",
            ("e", "f"),
            (("IO", "file"), ("filename", "a b.csv"), ("delimiter", "\t"), ("headers", "true"), ("n", "3")),
            HERE,
        ),
        ast.Directive("printsize", ("e",), (), HERE),
    )


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("", Dialect.SOUFFLE),
        ("a(x) :- b(x), !c(x), x = 1.", Dialect.SOUFFLE),
        ("a(x) :- b(x), not c(x).", Dialect.DDLOG),
        ("a(x) :- b(x), x == 1.", Dialect.DDLOG),
        ("a(x) :- b(y), var x = y.", Dialect.DDLOG),
        ('a("not var == .decl"). // not\n/* relation R */', Dialect.SOUFFLE),
        (".decl a(x: number)\na(x) :- b(x), not c(x).", Dialect.SOUFFLE),
        ("relation A(x: s64)\nA(x) :- B(x), !C(x).", Dialect.DDLOG),
        ("A(.input = x, .decl=x) :- B(x, knot).", Dialect.SOUFFLE),
    ],
)
def test_dialect(text: str, dialect: Dialect) -> None:
    assert parse(text).dialect is dialect


# --- rules ---------------------------------------------------------------------


def test_rules() -> None:
    assert parse("a(1). a(x), b() :- c(x, _).d(x):-a(x).").items == (
        ast.Rule((atom("a", const(1)),), (), HERE),
        ast.Rule((atom("a", X), atom("b")), (holds("c", X, ANY),), HERE),
        ast.Rule((atom("d", X),), (holds("a", X),), HERE),
    )


def test_literals_of_both_styles() -> None:
    same = (ast.Negation(atom("r", X), HERE), ast.Condition(binary("==", X, const(1)), HERE))
    assert body("not r(x), x == 1") == body("!r(x), x = 1") == same


def test_named_fields() -> None:
    named: dict[str, ast.Expr] = {"from": X, "to": const(1)}
    assert body("r(.from = x, .to = 1), !r(.input = _)") == (
        ast.Positive(atom("r", **named), HERE),
        ast.Negation(atom("r", input=ANY), HERE),
    )


def test_let() -> None:
    assert body("var z = x + y") == (ast.Let("z", binary("+", X, Y), HERE),)


def test_call_in_parentheses_is_no_atom() -> None:
    assert body("(f(x)), not (f(x)), f(x) = 1") == (
        ast.Condition(call("f", X), HERE),
        ast.Condition(ast.Unary("not", call("f", X), HERE), HERE),
        ast.Condition(binary("==", call("f", X), const(1)), HERE),
    )


def test_tests_are_no_atoms() -> None:
    assert body("contains(x, y), not starts_with(x, y), contains(x)") == (
        ast.Condition(call("contains", X, Y), HERE),
        ast.Condition(ast.Unary("not", call("starts_with", X, Y), HERE), HERE),
        holds("contains", X),
    )


@pytest.mark.parametrize(
    "definition", ['contains("a", "b").', ".decl contains(x: symbol, y: symbol)", ".input contains"]
)
def test_relation_named_like_a_test(definition: str) -> None:
    rule = parse(f"a(x) :- contains(x, y).\n{definition}").items[0]
    assert rule == ast.Rule((atom("a", X),), (holds("contains", X, Y),), HERE)


# --- expressions ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("1_000", 1000),
        ("0xFf", 255),
        ("0b1_01", 5),
        ("7u", 7),
        ("-5", -5),
        ("- 5", -5),
        ("123456789012345678901234567890", 123456789012345678901234567890),
        ("1.5", 1.5),
        ("-2.5e-3", -0.0025),
        ("1e3", 1000.0),
        ("true", True),
        ("false", False),
        ('"a b"', "a b"),
        (r'"\n\t\r\0\\\"\'\u{e9}\u{1F600}"', "\n\t\r\0\\\"'é\U0001f600"),
        ('"// no comment"', "// no comment"),
    ],
)
def test_constants(text: str, value: bool | int | float | str) -> None:
    assert expr(text) == const(value)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("x + y * z", binary("+", X, binary("*", Y, Z))),
        ("(x + y) * z", binary("*", binary("+", X, Y), Z)),
        ("x - y - z", binary("-", binary("-", X, Y), Z)),
        ("x -5", binary("-", X, const(5))),
        ("x - -5", binary("-", X, const(-5))),
        ("-(5)", ast.Unary("-", const(5), HERE)),
        ("-x", ast.Unary("-", X, HERE)),
        ('x ++ "a"', binary("++", X, const("a"))),
        ("x % y / z", binary("/", binary("%", X, Y), Z)),
        ("x or y and z", binary("or", X, binary("and", Y, Z))),
        ("x || y && z", binary("or", X, binary("and", Y, Z))),
        ("x lor y land z", binary("or", X, binary("and", Y, Z))),
        ("not x = y", ast.Unary("not", binary("==", X, Y), HERE)),
        ("x < y and y >= z", binary("and", binary("<", X, Y), binary(">=", Y, Z))),
        ("x | y & z << 1", binary("|", X, binary("&", Y, binary("<<", Z, const(1))))),
        ("x bor y bxor z", binary("|", X, binary("^", Y, Z))),
        ("x band y bshr z", binary("&", X, binary(">>", Y, Z))),
        ("bnot x", ast.Unary("~", X, HERE)),
        ("~-x", ast.Unary("~", ast.Unary("-", X, HERE), HERE)),
        ("x as u8 + y", binary("+", ast.Cast(X, "u8", HERE), Y)),
        ("x as bit<12> < y", binary("<", ast.Cast(X, "bit<12>", HERE), Y)),
        ("as(x + y, number)", ast.Cast(binary("+", X, Y), "s64", HERE)),
        ("32'd10", ast.Cast(const(10), "u32", HERE)),
        ("8'sh7f", ast.Cast(const(127), "s8", HERE)),
        ("f()", call("f")),
        ("min(x, y)", call("min", X, Y)),
        ("max(x)", call("max", X)),
        ("if (x) y else z + 1", ast.Conditional(X, Y, binary("+", Z, const(1)), HERE)),
        ("x = if (y) 1 else 2", binary("==", X, ast.Conditional(Y, const(1), const(2), HERE))),
        ("(if (x) y else z) + 1", binary("+", ast.Conditional(X, Y, Z, HERE), const(1))),
        ("count + sum - min", binary("-", binary("+", var("count"), var("sum")), var("min"))),
        ("?x", var("?x")),
        ("x<-1", binary("<", X, const(-1))),
    ],
)
def test_expressions(text: str, tree: ast.Expr) -> None:
    assert expr(text) == tree


def test_caret_is_power_or_exclusive_or() -> None:
    power = call("pow", X, call("pow", Y, Z))
    assert expr("-x ^ y ^ z") == ast.Unary("-", power, HERE)
    assert expr("x ^ -y") == call("pow", X, ast.Unary("-", Y, HERE))
    assert expr("x + y ^ z", Dialect.DDLOG) == binary("^", binary("+", X, Y), Z)


def test_float_is_double_in_souffle() -> None:
    assert expr("as(x, float)") == ast.Cast(X, "double", HERE)
    assert expr("x as float", Dialect.DDLOG) == ast.Cast(X, "float", HERE)


# --- aggregates ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("count : { r(x), x < y }", ("count", None, (holds("r", X), ast.Condition(binary("<", X, Y), HERE)))),
        ("count : r(x)", ("count", None, (holds("r", X),))),
        ("sum x : { r(x) }", ("sum", X, (holds("r", X),))),
        ("mean x * y : { r(x, y) }", ("mean", binary("*", X, Y), (holds("r", X, Y),))),
        ("max (x + y) : { r(x, y) }", ("max", binary("+", X, Y), (holds("r", X, Y),))),
        ("min(x) : r(x)", ("min", X, (holds("r", X),))),
        ("sum f(x) : r(x)", ("sum", call("f", X), (holds("r", X),))),
    ],
)
def test_aggregates(text: str, tree: tuple[str, ast.Expr | None, tuple[ast.Literal, ...]]) -> None:
    assert expr(text) == ast.Aggregate(*tree, HERE)


def test_groups() -> None:
    text = """
        var a = x.group_by(y).min(), var b = (x + 1).group_by((y, z)).sum(), var c = x.group_by(()).count(),
        var d = Aggregate((y), max(x)),
        var e = Aggregate((), count()), var f = Aggregate((y, z), group_sum(x))
    """
    assert body(text) == (
        ast.GroupBy("a", "min", X, (Y,), HERE),
        ast.GroupBy("b", "sum", binary("+", X, const(1)), (Y, Z), HERE),
        ast.GroupBy("c", "count", X, (), HERE),
        ast.GroupBy("d", "max", X, (Y,), HERE),
        ast.GroupBy("e", "count", None, (), HERE),
        ast.GroupBy("f", "sum", X, (Y, Z), HERE),
    )


# --- spans, files, tables --------------------------------------------------------


def test_spans() -> None:
    text = (
        "// c\n.decl edge(x: number)\npath(x, z) :- edge(x), !edge(.x = z), z = (x + 1) * count : { e(_) }.\n"
    )
    declaration, rule = parse(text).items
    assert isinstance(declaration, ast.RelationDecl) and isinstance(rule, ast.Rule)
    assert declaration.span.text == ".decl edge(x: number)"
    assert declaration.name_span.text == "edge"
    assert declaration.columns[0].span.text == "x: number"
    assert rule.span.text == text.splitlines()[2]
    assert rule.heads[0].span.text == "path(x, z)"
    assert rule.heads[0].name_span.text == "path"
    assert [literal.span.text for literal in rule.body] == [
        "edge(x)",
        "!edge(.x = z)",
        "z = (x + 1) * count : { e(_) }",
    ]
    assert str(rule.body[1].span) == "<text>:3:24"
    negated = rule.body[1]
    assert isinstance(negated, ast.Negation)
    assert negated.atom.args[0].span.text == ".x = z"


def test_plain_facts_are_what_the_grammar_says() -> None:
    """Facts are read by a short cut; a comment before the '.' makes the grammar read them."""
    facts = [
        "a(1).",
        'a(-12, "b c", 0).',
        "long_name(1.5,-2.25).",
        'é("ü").',
        "count(1).",
        "not(2).",
        "max(1, 2).",
    ]
    for text in facts:
        quick = parse(text).items[0]
        slow = parse(text[:-1] + "/**/.").items[0]
        assert quick == slow
        assert isinstance(quick, ast.Rule) and isinstance(slow, ast.Rule)
        assert quick.span.text == text
        for one, other in zip(quick.heads, slow.heads, strict=True):
            assert (one.span.text, one.name_span.text) == (other.span.text, other.name_span.text)
            values = [(a.span.text, a.value.span.text) for a in one.args]
            assert values == [(a.span.text, a.value.span.text) for a in other.args]


def test_read(tmp_path: Path) -> None:
    path = tmp_path / "program.dl"
    path.write_bytes(b"\xef\xbb\xbfa(1).\r\n")
    module = read(path)
    assert module == parse("a(1).")
    assert str(module.items[0].span) == f"{path}:1:1"


def test_tables_are_those_of_the_grammar() -> None:
    assert TABLES.read_text(encoding="utf-8") == render(), "run python -m tidelog.syntax.generate"
