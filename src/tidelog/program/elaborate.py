"""From syntax to drafts: resolve names, and collect what is known of types.

Atoms come before conditions and heads last, whatever their order in the text, so
that variables get their types from columns and a conflict is reported where the
user would look for it.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidelog.program.cells import Cell, Origin, broken, unify
from tidelog.program.declare import RelationInfo, direct_names
from tidelog.program.draft import (
    Body,
    DApply,
    DAtom,
    DCondition,
    DConst,
    DExpr,
    DGroup,
    DLet,
    DLiteral,
    DRule,
    DVar,
    DWild,
    Scope,
    Variable,
)
from tidelog.program.expressions import Expressions
from tidelog.program.problems import did_you_mean, plural, quoted
from tidelog.syntax import ast
from tidelog.syntax.errors import Label

MAX_GROUPS = 20  # group_by's in one body: each holds the one before it, and later stages recurse


class Elaborator(Expressions):
    """Makes drafts of rules; types and literals to look at later collect in it."""

    def rule(self, rule: ast.Rule) -> DRule | None:
        """The draft of a rule or fact; None when it is too much to look at."""
        groups = [literal for literal in rule.body if isinstance(literal, ast.GroupBy)]
        if len(groups) > MAX_GROUPS:
            self.problems.add(
                "TL0113",
                f"more than {MAX_GROUPS} `group_by`s in one rule",
                groups[MAX_GROUPS].span,
                hint="derive some of the groups in relations of their own",
            )
            return None
        self.fresh = 0
        head_names = direct_names([a.value for head in rule.heads for a in head.args])
        body = self.body(rule.body, None, frozenset(head_names))
        heads = []
        for index, head in enumerate(rule.heads):
            atom = self._atom(head, body.scope, head=True)
            info = self.relations.by_name.get(head.relation)
            if info is not None:
                info.rule_span = info.rule_span or (head.span if rule.body else None)
                info.has_fact = info.has_fact or not rule.body
            args = tuple(self._head_argument(arg, index, body) for arg in atom.args)
            heads.append(DAtom(atom.relation, args, atom.span, atom.name_span))
        return DRule(heads, body, rule, self.fresh)

    def _head_argument(self, arg: DExpr, index: int, body: Body) -> DExpr:
        """A computed argument of a head becomes a variable that the body binds."""
        if isinstance(arg, DVar | DConst | DWild):
            return arg
        variable = self.fresh_variable(arg, body.scope)
        body.literals.append(DLet(variable, arg, arg.span, head=index))
        return DVar(variable, arg.span)

    def fresh_variable(self, value: DExpr, scope: Scope) -> Variable:
        """A variable that no user can write."""
        self.fresh += 1
        return Variable(f"${self.fresh}", value.span, scope, value.cell)

    # --- bodies --------------------------------------------------------------

    def body(self, literals: tuple[ast.Literal, ...], parent: Scope | None, used: frozenset[str]) -> Body:
        """The draft of a body; `used` are names that occur beside it: in heads, in an aggregate's value.

        A group_by ends the scope of what stands before it; only its keys and its
        result go on.
        """
        done: Body | None = None
        segment: list[ast.Literal] = []
        group: ast.GroupBy | None = None
        for literal in literals:
            if isinstance(literal, ast.GroupBy) and parent is None:
                done = self._segment(
                    segment, done, group, parent, direct_names([literal.value, *literal.keys])
                )
                segment, group = [], literal
            else:
                segment.append(literal)
        return self._segment(segment, done, group, parent, used)

    def _segment(
        self,
        literals: list[ast.Literal],
        before: Body | None,
        group: ast.GroupBy | None,
        parent: Scope | None,
        used: Iterable[str],
    ) -> Body:
        names = direct_names(literals) | set(used)
        grouped: list[DLiteral] = []
        scope = Scope(frozenset(names), parent)
        if group is not None and before is not None:
            grouped = [self._group(group, before, scope)]
        slots: list[list[DLiteral]] = [[] for _ in literals]
        for phase in (_is_positive, _is_negated, _is_other):
            for slot, literal in zip(slots, literals, strict=True):
                if phase(literal):
                    slot.extend(self._literal(literal, scope))
        return Body([*grouped, *(lit for slot in slots for lit in slot)], scope)

    def _literal(self, literal: ast.Literal, scope: Scope) -> list[DLiteral]:
        if isinstance(literal, ast.Positive | ast.Negation):
            call = self.relations.as_call(literal.atom, self.dialect)
            if call is None:
                return [self._atom(literal.atom, scope, negated=isinstance(literal, ast.Negation))]
            expr: ast.Expr = call
            if isinstance(literal, ast.Negation):
                expr = ast.Unary("not", call, literal.span)
            return self._condition(expr, scope)
        if isinstance(literal, ast.Condition):
            return self._condition(literal.expr, scope)
        if isinstance(literal, ast.Let):
            value = self.expr(literal.value, scope)
            variable = scope.find(literal.name, literal.span)
            if variable.typed is None and not self.same_type(DVar(variable, literal.span), value, "var"):
                variable.cell = broken()
            # typed already: it is bound elsewhere too, which `safety` reports
            return [DLet(variable, value, literal.span)]
        self.problems.add(
            "TL0309",
            "`group_by` cannot stand inside an aggregate",
            literal.span,
            hint="derive the groups in a relation of their own, and aggregate over that",
        )
        result = scope.find(literal.name, literal.span)
        return [DLet(result, DWild(broken(), literal.span), literal.span)]

    def _condition(self, expr: ast.Expr, scope: Scope) -> list[DLiteral]:
        """One condition for each side of a top-level `and`."""
        if isinstance(expr, ast.Binary) and expr.op == "and":
            return self._condition(expr.left, scope) + self._condition(expr.right, scope)
        made = self.expr(expr, scope)
        self.must_be_bool(made)
        return [DCondition(made, made.span)]

    def _group(self, group: ast.GroupBy, before: Body, scope: Scope) -> DGroup:
        keys = tuple(self.expr(key, before.scope) for key in group.keys)
        value = self.expr(group.value, before.scope) if group.value is not None else None
        kept = {key.variable.name: key.variable for key in keys if isinstance(key, DVar)}
        scope.variables.update(kept)
        for name, variable in before.scope.variables.items():
            if name not in kept and name != group.name:
                scope.hidden[name] = variable.span
        if group.name in kept:
            self.problems.add(
                "TL0304",
                f"`{group.name}` is bound twice",
                group.span,
                "the result of `group_by` needs a name of its own",
                others=[Label(kept[group.name].span, "bound here")],
            )
            del scope.variables[group.name]
        variable = scope.find(group.name, group.span)
        cell = self.aggregate_type(group.op, value, group.span)
        unify(variable.cell, cell)
        return DGroup(variable, group.op, value, keys, before, cell, group.span)

    # --- atoms ---------------------------------------------------------------

    def _atom(self, atom: ast.Atom, scope: Scope, *, negated: bool = False, head: bool = False) -> DAtom:
        info = self.relations.mention(atom)
        values = self._arrange(atom, info, head) if info is not None else None
        args: list[DExpr] = []
        if values is None or info is None:  # reported: its variables count as bound, of any type
            args = [self._term(a.value, scope, head) for a in atom.args]
        else:
            known = {c.name for c in info.columns}
            args = [self._term(a.value, scope, head) for a in atom.args if a.name not in (*known, None)]
            for index, value in enumerate(values):
                if value is None:
                    args.append(DWild(info.cell(index), atom.span))
                else:
                    arg = self._term(value, scope, head)
                    self._fits_column(arg, info, index)
                    args.append(arg)
                    if isinstance(arg, DApply):
                        self.computed.append(arg)
        return DAtom(atom.relation, tuple(args), atom.span, atom.name_span, negated)

    def _term(self, value: ast.Expr, scope: Scope, head: bool) -> DExpr:
        if isinstance(value, ast.Wildcard) and not head:
            return DWild(Cell(), value.span)
        return self.expr(value, scope, "a head" if head else "an expression")

    def _arrange(self, atom: ast.Atom, info: RelationInfo, head: bool) -> list[ast.Expr | None] | None:
        """The arguments by position; a field left out is None. Not in order: None."""
        named = [a for a in atom.args if a.name is not None]
        if not named:
            if len(atom.args) == len(info.columns):
                return [a.value for a in atom.args]
            self._wrong_arity(atom, info)
            return None
        names = [c.name for c in info.columns]
        given: dict[str, ast.Argument] = {}
        good = True
        for arg in atom.args:
            if arg.name is None or arg.name not in names:
                good = False
                self._unknown_field(arg, info, names)
            elif arg.name in given:
                good = False
                self.problems.add(
                    "TL0104",
                    f"field `{arg.name}` is given twice",
                    arg.span,
                    "given again here",
                    others=[Label(given[arg.name].span, "first given here")],
                )
            else:
                given[arg.name] = arg
        missing = [name for name in names if name not in given]
        if head and missing and good:
            self.problems.add(
                "TL0105",
                f"the head leaves out {quoted(missing)} of `{atom.relation}`",
                atom.span,
                others=[info.place(f"`{atom.relation}` has the columns {', '.join(names)}")],
                notes=["a head gives every column a value; in a body a field left out means `_`"],
            )
        return [given[name].value if name in given else None for name in names]

    def _unknown_field(self, arg: ast.Argument, info: RelationInfo, names: list[str]) -> None:
        if arg.name is None:
            self.problems.add(
                "TL0103",
                "an argument without a name among named ones",
                arg.span,
                hint=f"write it as `.field = value`; the fields are {', '.join(names)}",
            )
            return
        self.problems.add(
            "TL0103",
            f"`{info.name}` has no field `{arg.name}`",
            arg.span,
            others=[info.place(f"its columns are {', '.join(names)}" if names else "it has no columns")],
            hint=did_you_mean(arg.name, names),
        )

    def _wrong_arity(self, atom: ast.Atom, info: RelationInfo) -> None:
        columns, given = len(info.columns), plural(len(atom.args), "argument")
        where = "declared" if info.declared else "first used"
        self.problems.add(
            "TL0102",
            f"`{info.name}` has {plural(columns, 'column')}, not {len(atom.args)}",
            atom.span,
            given,
            others=[info.place(f"{where} here with {plural(columns, 'column')}")],
            notes=[]
            if info.span
            else [f"the facts given for `{info.name}` have {plural(columns, 'column')}"],
        )

    def _fits_column(self, arg: DExpr, info: RelationInfo, index: int) -> None:
        """An argument has the type of its column."""
        cell, column = info.cell(index), info.columns[index]
        if isinstance(arg, DVar):
            variable = arg.variable
            if unify(variable.cell, cell):
                found = variable.cell.find().type
                if variable.typed is None and found is not None:
                    variable.typed = Origin(arg.span, f"{found}, as column `{column.name}` of `{info.name}`")
                return
            old = variable.typed or variable.cell.find().origin
            self._conflict(
                "TL0201",
                f"`{variable.name}` cannot be both {variable.cell.told()} and {cell.told()}",
                arg.span,
                f"{cell.told()}, as column `{column.name}` of `{info.name}`",
                (old, info.origin(index) if old is None else None),
                hint=self.cast_hint(arg, cell),
            )
            variable.cell = broken()  # further uses of it say nothing new
            return
        if not unify(arg.cell, cell):
            told = (info.name, index, arg.cell.told(), cell.told())
            if not info.declared and told in self.told:
                return
            self.told.add(told)
            self._conflict(
                "TL0202",
                f"column `{column.name}` of `{info.name}` is {cell.told()}, but this is {arg.cell.told()}",
                arg.span,
                arg.cell.told(),
                (info.origin(index),),
                hint=self.cast_hint(arg, cell),
            )


def _is_positive(literal: ast.Literal) -> bool:
    return isinstance(literal, ast.Positive)


def _is_negated(literal: ast.Literal) -> bool:
    return isinstance(literal, ast.Negation)


def _is_other(literal: ast.Literal) -> bool:
    return not isinstance(literal, ast.Positive | ast.Negation)
