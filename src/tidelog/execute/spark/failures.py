"""Failing expressions: how a worker tells the driver which values a rule failed on.

A row on which an expression is null has failed. `guard` makes Spark stop there with
a message that carries the number of the guard and the values; the driver evaluates
the expression on those values again and so finds the reason (`Guards.explain`).

The filter that does this is marked as depending on the row's position. Without that
Spark would move it before joins that come earlier in the plan, where it would also
see rows that the rest of the body excludes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidelog.execute.spark.cells import representation
from tidelog.program.functions import FunctionFailure, evaluate, round_float
from tidelog.program.model import AggregateRule, Expr, Rule, Value, Var, variables
from tidelog.syntax.errors import EvaluationError, InternalError

_MESSAGE = re.compile(r"tidelog-failure:(\d+):([0-9A-F]*);")


@dataclass(frozen=True)
class Guard:
    """What is reported when a guarded value is null: `reason` finds the message from the values."""

    rule: Rule | AggregateRule
    variables: tuple[Var, ...]
    reason: Callable[[Mapping[str, Value]], str]


def reason_of(expr: Expr) -> Callable[[Mapping[str, Value]], str]:
    """Why an expression fails on some values."""

    def reason(values: Mapping[str, Value]) -> str:
        try:
            value = evaluate(expr, values)
        except FunctionFailure as failure:
            return str(failure)
        raise InternalError(f"Spark found no value where Python finds {value!r}, with {dict(values)}")

    return reason


class Guards:
    """The guards of one task."""

    def __init__(self) -> None:
        self._guards: list[Guard] = []

    def expression(
        self, frame: DataFrame, value: Column, expr: Expr, rule: Rule, columns: Mapping[str, Column]
    ) -> DataFrame:
        """The frame, failing where `value`, which is `expr` in a rule, is null."""
        used = variables(expr)
        guard = Guard(rule, used, reason_of(expr))
        return self.guard(frame, value, guard, [columns[v.name] for v in used])

    def guard(self, frame: DataFrame, value: Column, guard: Guard, shown: Sequence[Column]) -> DataFrame:
        """The frame, failing where `value` is null; `shown` are the columns of the guard's variables."""
        number = len(self._guards)
        self._guards.append(guard)
        texts = F.array(*[column.cast("string") for column in shown]) if shown else F.lit(None)
        encoded = F.hex(F.encode(F.to_json(texts), "UTF-8")) if shown else F.lit("")
        message = F.concat(F.lit(f"tidelog-failure:{number}:"), encoded, F.lit(";"))
        fails = F.raise_error(message).cast("boolean")
        here = F.monotonically_increasing_id() >= F.lit(0)
        return frame.filter(here & F.when(value.isNull(), fails).otherwise(F.lit(True)))

    def explain(self, error: Exception) -> EvaluationError | None:
        """The failure that a Spark error reports, if it is one of ours."""
        found = _MESSAGE.search(str(error))
        if found is None:
            return None
        guard = self._guards[int(found[1])]
        texts = json.loads(bytes.fromhex(found[2]).decode()) if found[2] else []
        values = {v.name: _value(text, v) for v, text in zip(guard.variables, texts, strict=True)}
        return EvaluationError(guard.reason(values), guard.rule.text, dict(values), guard.rule.span)


def _value(text: str, variable: Var) -> Value:
    """A value from Spark's text of it."""
    match representation(variable.type):
        case "boolean":
            return text == "true"
        case "float" | "double":
            return round_float(float(text), variable.type)
        case "string":
            return text
        case _:
            return int(text)
