"""Expressions from syntax to drafts, with the types that functions and literals ask for."""

from __future__ import annotations

from collections.abc import Sequence

from tidelog.program.cells import (
    FLOATING,
    INTEGRAL,
    NUMERIC,
    ORDERED,
    Cell,
    Origin,
    broken,
    fixed,
    unify,
)
from tidelog.program.declare import Relations, direct_names, unknown_type
from tidelog.program.draft import Body, DAggregate, DApply, DConst, DExpr, DVar, DWild, Scope
from tidelog.program.functions import is_pattern
from tidelog.program.names import ABSENT, BINARY, CLASSES, SIGNATURES, UNARY, Signature, instance
from tidelog.program.problems import Problems, did_you_mean, plural
from tidelog.program.types import BOOL, DOUBLE, STRING, Type, parse_type
from tidelog.syntax import ast
from tidelog.syntax.dialect import written_type
from tidelog.syntax.errors import Label
from tidelog.syntax.source import Span

AGGREGATES = ("count", "sum", "min", "max", "mean")


class Expressions:
    """The part of elaboration that looks at expressions."""

    def __init__(self, relations: Relations, problems: Problems, dialect: ast.Dialect) -> None:
        self.relations = relations
        self.problems = problems
        self.dialect = dialect
        self.literals: list[DConst] = []  # to be looked at once types are known
        self.casts: list[tuple[DExpr, Type, Span]] = []
        self.computed: list[DExpr] = []
        self.told: set[tuple[str, int, str, str]] = set()
        self.unknown: dict[str, list[Span]] = {}
        self.fresh = 0

    def body(self, literals: tuple[ast.Literal, ...], parent: Scope | None, used: frozenset[str]) -> Body:
        """The draft of a body (see `elaborate`)."""
        raise NotImplementedError

    def expr(self, node: ast.Expr, scope: Scope, where: str = "an expression") -> DExpr:
        """The draft of an expression."""
        match node:
            case ast.Var(name=name, span=span):
                return DVar(scope.find(name, span), span)
            case ast.Const(value=value, span=span):
                return self._literal_value(value, span)
            case ast.Wildcard(span=span):
                self.problems.add(
                    "TL0112",
                    f"`_` cannot stand in {where}",
                    span,
                    "a value is needed here",
                    notes=["`_` means any value: it can be an argument of an atom in a body, nowhere else"],
                )
                return DWild(broken(), span)
            case ast.Unary(op="-", operand=ast.Const(value=value), span=span) if type(value) in (int, float):
                return self._literal_value(-value, span)  # type: ignore[operator]
            case ast.Unary(op=op, operand=operand, span=span):
                return self._call(UNARY[op], [self.expr(operand, scope)], span)
            case ast.Binary(op=op, left=left, right=right, span=span):
                sides = [self.expr(left, scope), self.expr(right, scope)]
                return self._call(BINARY[op], sides, span, _written(op, left.span, right.span))
            case ast.Call(function=function, args=args, span=span):
                return self._named_call(function, [self.expr(a, scope) for a in args], span)
            case ast.Conditional(condition=condition, then=then, otherwise=otherwise, span=span):
                test, yes, no = (self.expr(e, scope) for e in (condition, then, otherwise))
                self.must_be_bool(test)
                same = self.same_type(yes, no, "if")
                return DApply("if", (test, yes, no), yes.cell if same else broken(), span)
            case ast.Cast(operand=operand, type=name, span=span):
                return self._cast(self.expr(operand, scope), name, span)
            case ast.Aggregate():
                return self._aggregate(node, scope)

    def _literal_value(self, value: bool | int | float | str, span: Span) -> DConst:
        if isinstance(value, bool):
            cell = fixed(BOOL, Origin(span, "a boolean"))
        elif isinstance(value, str):
            cell = fixed(STRING, Origin(span, "a string"))
        elif isinstance(value, float):
            cell = Cell(FLOATING, origin=Origin(span, "a float"), literal=True)
        else:
            cell = Cell(NUMERIC, origin=Origin(span, "an integer"), literal=True)
        made = DConst(value, cell, span)
        self.literals.append(made)
        return made

    def _cast(self, operand: DExpr, name: str, span: Span) -> DExpr:
        target = parse_type(name)
        if target is None:
            unknown_type(name, span, self.problems)
            return DApply("cast", (operand,), broken(), span)
        if isinstance(operand, DConst) and unify(
            operand.cell, fixed(target, Origin(span, f"cast to {target}"))
        ):
            return operand  # a literal simply has the type; it never was of another
        self.casts.append((operand, target, span))
        return DApply("cast", (operand,), fixed(target, Origin(span, f"cast to {target}")), span)

    # --- aggregates ----------------------------------------------------------

    def _aggregate(self, node: ast.Aggregate, scope: Scope) -> DExpr:
        used = direct_names([node.value]) if node.value is not None else set()
        body = self.body(node.body, scope, frozenset(used))
        value = self.expr(node.value, body.scope) if node.value is not None else None
        return DAggregate(node.op, value, body, self.aggregate_type(node.op, value, node.span), node.span)

    def aggregate_type(self, op: str, value: DExpr | None, span: Span) -> Cell:
        """The type of an aggregate's result."""
        if op not in AGGREGATES:
            self.problems.add(
                "TL0309",
                f"unknown aggregate `{op}`",
                span,
                hint=did_you_mean(op, AGGREGATES) or "aggregates are count, sum, min, max and mean",
            )
            return broken()
        if op == "count":
            return Cell(INTEGRAL, origin=Origin(span, "a count is an integer"), literal=True)
        if value is None:
            self.problems.add("TL0309", f"`{op}` needs a value to aggregate", span)
            return broken()
        if op in ("sum", "mean") and not unify(Cell(NUMERIC), value.cell):
            self._mismatch("TL0204", f"`{op}` needs numbers, but this is {value.cell.told()}", value)
            return broken()
        if op in ("min", "max") and not unify(Cell(ORDERED), value.cell):
            needs = _NEEDS["ordered"]
            self._mismatch("TL0204", f"`{op}` needs {needs}, but this is {value.cell.told()}", value)
            return broken()
        return fixed(DOUBLE, Origin(span, "a mean is a double")) if op == "mean" else value.cell

    # --- calls ---------------------------------------------------------------

    def _named_call(self, name: str, args: list[DExpr], span: Span) -> DExpr:
        signature = SIGNATURES[self.dialect].get(name)
        if signature is None:
            self.unknown.setdefault(name, []).append(Span(span.source, span.start, span.start + len(name)))
            return DApply("eq", tuple(args), broken(), span)
        return self._call(signature, args, span)

    def report_unknown(self) -> None:
        """One problem for each unknown function, however often it is called."""
        names = SIGNATURES[self.dialect]
        for name, spans in self.unknown.items():
            hint = did_you_mean(name, names)
            if hint is None and name in AGGREGATES:
                hint = f"an aggregate is written `{name} x : {{ ... }}` or `x.group_by(key).{name}()`"
            elif hint is None and name in self.relations.by_name:
                hint = f"`{name}` is a relation: an atom cannot be part of an expression"
            self.problems.add(
                "TL0109",
                f"unknown function `{name}`",
                spans[0],
                others=[Label(span, "and here") for span in spans[1:3]],
                notes=[ABSENT[name]] if name in ABSENT else [],
                hint=hint,
            )

    def _call(self, signature: Signature, args: Sequence[DExpr], span: Span, written: str = "") -> DExpr:
        """A function or operator applied; `written` is how the user wrote its name."""
        wanted = len(signature.params)
        if len(args) < wanted or (len(args) > wanted and not signature.variadic):
            self.problems.add(
                "TL0110",
                f"`{signature.name}` takes {'at least ' if signature.variadic else ''}"
                f"{plural(wanted, 'argument')}, but {len(args)} {'is' if len(args) == 1 else 'are'} given",
                span,
                notes=[f"it is called as {signature}"],
            )
            return DApply("eq", tuple(args), broken(), span)
        params, result = instance(signature, len(args), self.dialect)
        good = True
        for index, param in enumerate(params):
            if good and not self._takes(signature, param, index, args, written or signature.name):
                good = False
        found = result.find().type
        if found is not None:
            result.origin = Origin(span, f"{found}, the result of `{written or signature.name}`")
        elif not good:
            result = broken()
        if (
            signature.name in ("match", "matches")
            and isinstance(args[0], DConst)
            and isinstance(args[0].value, str)
        ):
            self._check_pattern(args[0].value, args[0].span)
        return signature.build(tuple(args), result, span)

    def _takes(self, signature: Signature, param: Cell, index: int, args: Sequence[DExpr], name: str) -> bool:
        arg = args[index]
        if unify(param, arg.cell):
            found = arg.cell.find().type
            if isinstance(arg, DVar) and arg.variable.typed is None and found is not None:
                arg.variable.typed = Origin(arg.span, f"{found}, as an argument of `{name}`")
            return True
        word = signature.params[min(index, len(signature.params) - 1)]
        kinds = CLASSES.get(word)
        if kinds is not None and arg.cell.find().kinds & kinds and index > 0:
            self.sides_differ(name, args[0], arg)
        else:
            needs = _NEEDS.get(word, param.told())
            called = [f"it is called as {signature}"] if signature.name in SIGNATURES[self.dialect] else []
            self._mismatch("TL0204", f"`{name}` needs {needs}, but this is {arg.cell.told()}", arg, called)
        return False

    def _check_pattern(self, text: str, span: Span) -> None:
        if not is_pattern(text):
            self.problems.add("TL0208", "this is not a regular expression", span)

    # --- types ---------------------------------------------------------------

    def must_be_bool(self, expr: DExpr) -> None:
        """A condition is a boolean."""
        if not unify(expr.cell, fixed(BOOL, Origin(expr.span, "a condition is a boolean"))):
            self._mismatch("TL0205", f"a condition must be a boolean, but this is {expr.cell.told()}", expr)

    def same_type(self, left: DExpr, right: DExpr, name: str) -> bool:
        """Two expressions have one type."""
        if unify(left.cell, right.cell):
            return True
        self.sides_differ(name, left, right)
        return False

    def sides_differ(self, name: str, left: DExpr, right: DExpr) -> None:
        """Report two expressions of different types."""
        sides = {"if": "the branches of `if`", "var": "the variable and its value"}.get(name)
        if sides is None:
            sides = f"the arguments of `{name}`" if name.isidentifier() else f"the two sides of `{name}`"
        self._conflict(
            "TL0206",
            f"{sides} have different types: {left.cell.told()} and {right.cell.told()}",
            right.span,
            f"this is {right.cell.told()}",
            (Origin(left.span, f"this is {left.cell.told()}"),),
            [note for side in (left, right) if (note := _why(side))],
            self.cast_hint(right, left.cell)
            if _width(left) >= _width(right)
            else self.cast_hint(left, right.cell),
        )

    def _mismatch(self, code: str, message: str, expr: DExpr, notes: Sequence[str] = ()) -> None:
        self._conflict(
            code,
            message,
            expr.span,
            f"this is {expr.cell.told()}",
            (_source(expr),),
            notes,
        )

    def _conflict(
        self,
        code: str,
        message: str,
        span: Span,
        label: str,
        origins: Sequence[Origin | None],
        notes: Sequence[str] = (),
        hint: str | None = None,
    ) -> None:
        """Report a conflict with the places it comes from; one without a place is told in a note."""
        told = [o.text for o in origins if o is not None and o.span is None]
        others = [o.label() for o in origins if o is not None]
        self.problems.add(code, message, span, label, others=others, notes=[*told, *notes], hint=hint)

    def cast_hint(self, expr: DExpr, wanted: Cell) -> str | None:
        """The cast that would make an expression fit, where one number meets another."""
        target, source = wanted.find().type, expr.cell.find().type
        if target is None or source is None or not (target.is_numeric and source.is_numeric):
            return None
        text = expr.span.text if isinstance(expr, DVar) else f"({expr.span.text})"
        if len(text) > 30 or isinstance(expr, DConst):
            return None
        name = written_type(str(target), self.dialect)
        if self.dialect is ast.Dialect.SOUFFLE:
            return f"convert it: `as({text.strip('()')}, {name})`"
        return f"convert it: `{text} as {name}`"


_NEEDS = {
    "add": "numbers or strings",
    "num": "numbers",
    "ordered": "bools, numbers or strings",
    "int": "integers",
    "shift": "integers",
    "string": "a string",
    "bool": "a boolean",
}


def _written(op: str, left: Span, right: Span) -> str:
    """An operator as it stands in the text: `band` rather than `&`, `=` rather than `==`."""
    words = left.source.text[left.end : right.start].strip(" \t\r\n()").split()
    return words[0] if len(words) == 1 else op


def _width(expr: DExpr) -> tuple[int, int]:
    """How much a numeric type holds: a cast should lose as little as it can."""
    type = expr.cell.find().type
    if type is None or type.kind not in ("int", "bigint", "float"):
        return (-1, 0)
    return ("int", "bigint", "float").index(type.kind), type.bits


def _why(expr: DExpr) -> str | None:
    """Where a variable got its type, as a note."""
    if isinstance(expr, DVar) and expr.variable.typed is not None:
        return f"`{expr.variable.name}` is {expr.variable.typed.text}"
    return None


def _source(expr: DExpr) -> Origin | None:
    """Where an expression got its type, if not from itself."""
    if isinstance(expr, DVar):
        return expr.variable.typed or expr.cell.find().origin
    return None
