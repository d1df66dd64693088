"""Making a failing history smaller, and printing it as a script that anybody can run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from time import monotonic

from tests.properties.histories import (
    FAILING,
    AddRule,
    Delete,
    History,
    Insert,
    Operation,
    RemoveRule,
    State,
    Transaction,
    names_in,
)

Fails = Callable[[History], bool]
PATIENCE = 120.0


def shrink(history: History, fails: Fails, patience: float = PATIENCE) -> History:
    """The smallest history found on which `fails` still holds, looking for `patience` seconds.

    Larger pieces go first: transactions, then operations, rules, literals of rules. Whatever goes takes
    with it what cannot be done without it.
    """
    deadline = monotonic() + patience
    shrinking = True
    while shrinking:
        shrinking = False
        for smaller in _smaller(history):
            if monotonic() > deadline:
                return history
            tried = tidied(smaller)
            if _size(tried) < _size(history) and fails(tried):
                history, shrinking = tried, True
                break
    return history


def tidied(history: History) -> History:
    """The history without operations that have become impossible, and without empty transactions."""
    given = " ".join(name for name, _ in history.facts)
    named = names_in(" ".join((*history.rules, *_texts(history), given)))
    lines = tuple(line for line in history.declarations if names_in(line) & named)
    late = (history.late & named) - names_in(" ".join(history.rules))
    history = replace(history, declarations=lines, late=late)
    state, kept = history.beginning, []
    for transaction in history.transactions:
        reached, operations = state, list[Operation]()
        for operation in transaction.operations:
            if isinstance(operation, AddRule):
                operation = history.adding(operation.rule, reached)
            if _possible(operation, reached):
                operations.append(operation)
                reached = reached.after(operation)
        if operations:
            kept.append(replace(transaction, operations=tuple(operations)))
            state = reached if transaction.ending == "commit" else state
    return replace(history, transactions=tuple(kept))


def _possible(operation: Operation, state: State) -> bool:
    match operation:
        case AddRule(rule):
            return rule not in state.rules
        case RemoveRule(rule):
            return rule in state.rules
        case Insert(relation, _) | Delete(relation, _):
            return relation not in state.missing


def _texts(history: History) -> Iterator[str]:
    """The rules and the names of relations that operations speak of."""
    for transaction in history.transactions:
        for operation in transaction.operations:
            match operation:
                case Insert(relation, _) | Delete(relation, _):
                    yield relation
                case AddRule(rule) | RemoveRule(rule):
                    yield rule


def _size(history: History) -> tuple[int, int, int, int]:
    operations = [o for t in history.transactions for o in t.operations]
    texts = [*history.rules, *(o.rule for o in operations if isinstance(o, AddRule))]
    endings = sum(transaction.ending != "commit" for transaction in history.transactions)
    return (
        len(operations) + len(history.rules) + len(history.facts),
        len(history.transactions) + endings + len(history.late),
        sum(map(len, texts)),
        len(history.declarations),
    )


def _smaller(history: History) -> Iterator[History]:
    """Histories with something taken away, the largest pieces first."""
    yield replace(history, late=frozenset())
    for i in reversed(range(len(history.transactions))):
        yield _with(history, i, ())
    for i in reversed(range(len(history.transactions) - 1)):  # one with the next
        first, second = history.transactions[i : i + 2]
        if first.ending == "commit":
            joined = replace(second, operations=(*first.operations, *second.operations))
            yield _with(_with(history, i + 1, (joined,)), i, ())
    for i, transaction in enumerate(history.transactions):
        if transaction.ending == "rollback":
            yield _with(history, i, (replace(transaction, ending="commit"),))
        end = len(transaction.operations) - FAILING * (transaction.ending == "failure")
        operations, wrong = transaction.operations[:end], transaction.operations[end:]
        for length in (len(operations) // 2, len(operations) // 4, 1):
            for start in range(0, len(operations), length) if length else ():
                fewer = (*operations[:start], *operations[start + length :], *wrong)
                yield _with(history, i, (replace(transaction, operations=fewer),))
    for i in range(len(history.facts)):
        yield replace(history, facts=(*history.facts[:i], *history.facts[i + 1 :]))
    for i in range(len(history.rules)):
        yield replace(history, rules=(*history.rules[:i], *history.rules[i + 1 :]))
    for rule in dict.fromkeys([*history.rules, *_added(history)]):
        for shorter in _shorter(rule):
            yield _rewritten(history, rule, shorter)


def _with(history: History, i: int, instead: tuple[Transaction, ...]) -> History:
    """The history with other transactions instead of transaction i."""
    return replace(
        history, transactions=(*history.transactions[:i], *instead, *history.transactions[i + 1 :])
    )


def _added(history: History) -> list[str]:
    committed = [t for t in history.transactions if t.ending == "commit"]
    return [o.rule for t in committed for o in t.operations if isinstance(o, AddRule)]


def _shorter(rule: str) -> Iterator[str]:
    """The rule without one of its literals."""
    head, _, body = rule.removesuffix(".").partition(" :- ")
    literals, depth = [""], 0
    for letter in body:
        depth += (letter in "({") - (letter in ")}")
        if letter == "," and depth == 0:
            literals.append("")
        else:
            literals[-1] += letter
    if len(literals) > 1:
        for i in range(len(literals)):
            yield f"{head} :- {', '.join(lit.strip() for j, lit in enumerate(literals) if j != i)}."


def _rewritten(history: History, rule: str, other: str) -> History:
    def change(operation: Operation) -> Operation:
        match operation:
            case AddRule(text) if text == rule:
                return AddRule(other)  # what it has to declare is found out by `tidied`
            case RemoveRule(text) if text == rule:
                return RemoveRule(other)
            case _:
                return operation

    return replace(
        history,
        rules=tuple(dict.fromkeys(other if text == rule else text for text in history.rules)),
        transactions=tuple(
            replace(t, operations=tuple(map(change, t.operations))) for t in history.transactions
        ),
    )


# --- as a script ----------------------------------------------------------------


def script(history: History, database: str, turns: Callable[[Transaction], str | None], expected: str) -> str:
    """A Python script that does what the history says. `database` are the arguments after the program.

    `turns` gives the algorithm that a transaction switches to, if any.
    """
    text = "\n".join(["import tidelog", "", 'db = tidelog.Database(r"""', f'{history.text}""", {database})'])
    for transaction in history.transactions:
        switch = turns(transaction)
        text += f"\ndb.algorithm = {switch!r}" if switch else ""
        if transaction.ending == "failure":
            text += "\ntry:" + _block(transaction).replace("\n", "\n    ")
            text += "\nexcept tidelog.TidelogError as error:\n    print('fails, as it should:', error)"
        else:
            text += _block(transaction)
    return f"{text}\n{expected}\n"


def _block(transaction: Transaction) -> str:
    lines = ["", "with db.transaction() as tx:"]
    for operation in transaction.operations:
        match operation:
            case Insert(relation, row):
                lines.append(f"    tx.insert({relation!r}, [{row!r}])")
            case Delete(relation, row):
                lines.append(f"    tx.delete({relation!r}, [{row!r}])")
            case AddRule():
                lines.append(f"    tx.add_rule({operation.text!r})")
            case RemoveRule(rule):
                lines.append(f"    tx.remove_rule({rule!r})")
    if transaction.ending == "rollback":
        lines.append("    tx.rollback()")
    elif transaction.ending == "commit":
        lines.append("print(tx.changes)")
    return "\n".join(lines)
