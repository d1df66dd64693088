"""Random syntax trees for Hypothesis: each is one that some text parses to."""

from __future__ import annotations

from hypothesis import strategies as st

from tidelog.syntax import ast
from tidelog.syntax.ast import Dialect, Role
from tidelog.syntax.source import Source, Span

HERE = Span(Source("<made>", ""), 0, 0)

# Words that are reserved in some places and names in others are here on purpose.
RELATIONS = st.sampled_from(["edge", "Path", "r2", "input", "relation", "max", "count"])
VARIABLES = st.sampled_from(["x", "y2", "_z", "?w", "long_name", "sum", "bit", "count", "größe"])
FIELDS = st.sampled_from(["from", "to", "type", "input", "not", "if", "decl"])
FUNCTIONS = st.sampled_from(["f", "pow", "min", "sum", "contains", "length"])
TYPES = st.sampled_from(
    ["s8", "s64", "u64", "u128", "bit<12>", "signed<7>", "bigint", "double", "string", "bool"]
)
OPERATORS = st.sampled_from([op for ops in ast.BINARY_OPERATORS for op in ops])
FOLDS = st.sampled_from(["sum", "min", "max", "mean"])
TEXTS = st.text(st.characters(codec="utf-8"), max_size=6)
NUMBERS = st.integers(-(2**130), 2**130) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.one_of(st.booleans(), NUMBERS, TEXTS)

LEAVES = ("variable", "variable", "constant", "wildcard")
NODES = (*LEAVES, "unary", "binary", "binary", "call", "conditional", "cast", "count", "fold")


@st.composite
def expressions(draw: st.DrawFn, depth: int = 4) -> ast.Expr:
    """An expression of at most the given depth."""
    inner = expressions(depth - 1)
    match draw(st.sampled_from(NODES if depth > 0 else LEAVES)):
        case "variable":
            return ast.Var(draw(VARIABLES), HERE)
        case "constant":
            return ast.Const(draw(VALUES), HERE)
        case "wildcard":
            return ast.Wildcard(HERE)
        case "unary":
            return ast.Unary(draw(st.sampled_from(ast.UNARY_OPERATORS)), draw(inner), HERE)
        case "binary":
            return ast.Binary(draw(OPERATORS), draw(inner), draw(inner), HERE)
        case "call":
            return ast.Call(draw(FUNCTIONS), tuple(draw(st.lists(inner, max_size=3))), HERE)
        case "conditional":
            return ast.Conditional(draw(inner), draw(inner), draw(inner), HERE)
        case "cast":
            return ast.Cast(draw(inner), draw(TYPES), HERE)
        case "count":
            return ast.Aggregate("count", None, draw(bodies(depth - 1)), HERE)
        case _:
            return ast.Aggregate(draw(FOLDS), draw(inner), draw(bodies(depth - 1)), HERE)


@st.composite
def bodies(draw: st.DrawFn, depth: int, longest: int = 2) -> tuple[ast.Literal, ...]:
    """One literal or more."""
    return tuple(draw(st.lists(literals(depth), min_size=1, max_size=longest)))


@st.composite
def literals(draw: st.DrawFn, depth: int) -> ast.Literal:
    """A literal with expressions of at most the given depth."""
    inner = expressions(depth)
    match draw(st.sampled_from(("positive", "negation", "condition", "let", "group", "group_all"))):
        case "positive":
            return ast.Positive(draw(atoms(depth)), HERE)
        case "negation":
            return ast.Negation(draw(atoms(depth)), HERE)
        case "condition":
            return ast.Condition(draw(inner), HERE)
        case "let":
            return ast.Let(draw(VARIABLES), draw(inner), HERE)
        case "group":
            keys = tuple(draw(st.lists(inner, max_size=3)))
            return ast.GroupBy(draw(VARIABLES), draw(FOLDS | st.just("count")), draw(inner), keys, HERE)
        case _:
            return ast.GroupBy(draw(VARIABLES), "count", None, tuple(draw(st.lists(inner, max_size=3))), HERE)


@st.composite
def atoms(draw: st.DrawFn, depth: int) -> ast.Atom:
    """An atom, its arguments all by position or all by name."""
    names: list[str | None] = [None] * draw(st.integers(0, 3))
    if draw(st.booleans()):
        names = list(draw(st.lists(FIELDS, min_size=1, max_size=3, unique=True)))
    arguments = tuple(ast.Argument(name, draw(expressions(depth)), HERE) for name in names)
    return ast.Atom(draw(RELATIONS), arguments, HERE, HERE)


@st.composite
def rules(draw: st.DrawFn) -> ast.Rule:
    """A rule or a fact."""
    heads = tuple(draw(st.lists(atoms(2), min_size=1, max_size=2)))
    return ast.Rule(heads, draw(bodies(3, 4)) if draw(st.booleans()) else (), HERE)


@st.composite
def declarations(draw: st.DrawFn, dialect: Dialect) -> ast.RelationDecl:
    """A declaration of either style."""
    is_souffle = dialect is Dialect.SOUFFLE
    role = Role.INTERNAL if is_souffle else draw(st.sampled_from(Role))
    types = TYPES if is_souffle else TYPES | st.just("float")  # Soufflé's float is double
    columns = [ast.Column(draw(FIELDS), draw(types), HERE) for _ in range(draw(st.integers(0, 8)))]
    key = tuple(ast.KeyColumn(name, HERE) for name in draw(st.lists(FIELDS, max_size=2)))
    return ast.RelationDecl(draw(RELATIONS), tuple(columns), role, HERE, HERE, key)


@st.composite
def directives(draw: st.DrawFn) -> ast.Directive:
    """A directive with options."""
    kind = draw(st.sampled_from(["input", "output", "printsize"]))
    options = draw(st.lists(st.tuples(FIELDS, TEXTS | st.sampled_from(["file", "true", "_"])), max_size=3))
    return ast.Directive(kind, tuple(draw(st.lists(RELATIONS, min_size=1, max_size=3))), tuple(options), HERE)


@st.composite
def modules(draw: st.DrawFn, dialect: Dialect) -> ast.Module:
    """A module with a declaration, so that its dialect can be told."""
    items: list[st.SearchStrategy[ast.Item]] = [declarations(dialect), rules()]
    if dialect is Dialect.SOUFFLE:
        items.append(directives())
    rest = draw(st.lists(st.one_of(items), max_size=4))
    return ast.Module(dialect, (draw(declarations(dialect)), *rest), HERE)
