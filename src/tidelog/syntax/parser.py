"""Text to syntax tree: a table-driven LALR(1) parser that reports all mistakes at once.

The tables come from `grammar.lark` (see `generate.py`). The loop here keeps a stack
of states and of values, asks the table what to do with each word, and at a word it
cannot place has `mistakes.py` explain it, then goes on with the next item.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidelog.syntax import ast
from tidelog.syntax.build import Action, Builder, Values
from tidelog.syntax.depth import MAX_DEPTH, nesting, too_deep
from tidelog.syntax.dialect import recognise
from tidelog.syntax.errors import SHOWN_PROBLEMS, Diagnostic, ProgramError
from tidelog.syntax.facts import is_plain, read_facts
from tidelog.syntax.lexer import CARET, END, GRAMMAR, KINDS, NAME, POWER, WILDCARD, next_item, words
from tidelog.syntax.mistakes import Stuck, explain
from tidelog.syntax.source import Source, Span

COUNTED_PROBLEMS = 1_000  # then parsing stops: it is not a program
MAX_ITEM_WORDS = 200_000
# A bound on the parser's stack. Each level of nesting takes several places on it, so this
# is never what limits a program that `too_deep` accepts.
MAX_STACK = 10 * MAX_DEPTH


def parse(
    text: str,
    name: str = "<text>",
    *,
    dialect: ast.Dialect | None = None,
    relations: frozenset[str] = frozenset(),
) -> ast.Module:
    """Parse a program; raises `ProgramError` with every syntax mistake in it.

    A text that belongs to a larger program is read in that program's `dialect`; `relations` are
    names that are certainly relations there.
    """
    source = Source(name, text)
    whole = Span(source, 0, len(text))
    if not text.isascii() and (surrogate := re.search("[\ud800-\udfff]", text)):
        span = Span(source, surrogate.start(), surrogate.end())
        raise ProgramError([Diagnostic("TL0001", "half of a character (a lone surrogate)", span)])
    recognised, problems = recognise(source)
    dialect = dialect or recognised
    with _no_collection():
        builder = Builder(source, dialect, relations)
        _Parser(builder).run()
        if builder.defined & builder.tested:  # a relation is named like a test: read its atoms as atoms
            builder = Builder(source, dialect, relations | builder.defined)
            _Parser(builder).run()
    problems += builder.problems
    if problems:
        raise ProgramError(_shown(problems))
    return ast.Module(dialect, tuple(builder.items), whole)


def read(path: str | Path) -> ast.Module:
    """Parse a file; a file that cannot be read as UTF-8 text is a `ProgramError` too."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        message = f"cannot read {path}: {error.strerror or error}"
        raise ProgramError([Diagnostic("TL0001", message)]) from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        good = data[: error.start].decode("utf-8", "replace").lstrip("\ufeff")
        source = Source(str(path), good + "\ufffd")
        span = Span(source, len(good), len(good) + 1)
        note = f"byte {error.start} (hexadecimal {data[error.start]:02x}) is not part of any character"
        problem = Diagnostic("TL0001", "the file is not UTF-8 text", span, notes=(note,))
        raise ProgramError([problem]) from None
    return parse(text, str(path))


@contextmanager
def _no_collection() -> Iterator[None]:
    """Pause Python's search for cycles: a large tree has none, and looking takes half of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _shown(problems: list[Diagnostic]) -> list[Diagnostic]:
    problems = sorted(problems, key=lambda problem: problem.span.start if problem.span else 0)
    more = len(problems) - SHOWN_PROBLEMS
    if more <= 0:
        return problems
    count = f"{more} more problems" if len(problems) < COUNTED_PROBLEMS else f"at least {more} more problems"
    return [*problems[:SHOWN_PROBLEMS], Diagnostic("TL0000", f"{count}, not shown")]


class _Parser:
    """The state of one run over a text."""

    # (state, nonterminal, next word) -> state after passing on single children; the same for all runs
    jumps: dict[tuple[int, int, int], int] = {}  # noqa: RUF012

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.text = builder.source.text
        actions = builder.actions()
        self.reductions: list[_Reduction] = [
            (symbol, length, actions.get(action), kept if len(kept) < length else None, spliced, action)
            for symbol, length, action, kept, spliced in GRAMMAR.rules
        ]
        self.caret = POWER if builder.dialect is ast.Dialect.SOUFFLE else CARET

    def run(self) -> None:
        """Parse all items, going on after each mistake."""
        at: int | None = 0
        while at is not None and len(self.builder.problems) < COUNTED_PROBLEMS:
            at = read_facts(self.builder, at)
            resume = self._items(at)
            at = None if resume is None else max(resume, at + 1)  # never stand still

    def _items(self, at: int) -> int | None:
        """Parse items from an offset on; the offset to go on at after a mistake, or None at the end."""
        table, keywords, reductions, jumps = GRAMMAR.states, GRAMMAR.keywords, self.reductions, self.jumps
        state = GRAMMAR.start
        states: list[int] = [state]
        values: Values = []
        starts: list[int] = []
        ends: list[int] = []
        length_of_item = 0
        for match in words(self.text, at):
            group = match.lastindex or 0
            kind = KINDS[group]
            word = match[group]
            if kind == NAME:
                kind = keywords.get(word, NAME)
            elif kind == CARET:
                kind = self.caret
            while True:
                action = table[state].get(kind)
                if action is None:
                    if kind not in (NAME, WILDCARD) and word.isidentifier() and NAME in table[state]:
                        kind = NAME  # a word that is reserved only elsewhere
                        continue
                    begin, end = match.span(group)
                    stuck = Stuck(self.builder.source, states, values, starts, ends, kind, word, begin, end)
                    return self._mistake(stuck)
                if action >= 0:  # take the word
                    state = action
                    states.append(state)
                    values.append(word)
                    starts.append(match.start(group))
                    ends.append(match.end())
                    length_of_item += 1
                    if len(states) > MAX_STACK or length_of_item > MAX_ITEM_WORDS:
                        return self._refuse(*match.span(group), length_of_item)
                    break
                # put together what is on top of the stack
                symbol, length, make, kept, spliced, name = reductions[-1 - action]
                if length == 1:  # the usual case: what is on top changes its meaning, not its place
                    children = values[-1:]
                    start, end = starts[-1], ends[-1]
                elif length:
                    children = values[-length:]
                    start, end = starts[-length], ends[-1]
                    cut = 1 - length
                    del states[cut:], values[cut:], starts[cut:], ends[cut:]
                    ends[-1] = end
                else:
                    children = []
                    start = end = match.start(group)
                    states.append(state)
                    values.append(None)
                    starts.append(start)
                    ends.append(end)
                if kept is not None or spliced:
                    children = _children(children, kept, spliced)
                if make is not None:
                    values[-1] = make(children, start, end)
                elif name == "_item":
                    self._item(children[0], length_of_item)
                    if is_plain(self.text, starts_here := match.start(group)):
                        return starts_here
                    length_of_item = 0
                    values[-1] = []  # nothing to keep
                elif name:
                    values[-1] = children
                key = (states[-2], symbol, kind)
                jump = jumps.get(key)
                if jump is None:
                    jump = jumps[key] = self._jump(*key)
                state = states[-1] = jump
                if kind == END and state == GRAMMAR.end:
                    return None
        raise AssertionError("the last word is the end of the text")

    def _jump(self, below: int, symbol: int, kind: int) -> int:
        """The state after a nonterminal, single children passed on as far as the next word allows."""
        table = GRAMMAR.states
        while True:
            state = table[below][symbol]
            action = table[state].get(kind)
            if action is None or action >= 0 or self.reductions[-1 - action][5] != "":
                return state
            symbol = self.reductions[-1 - action][0]

    def _item(self, items: list[ast.Item], length: int) -> None:
        if length > MAX_DEPTH:  # fewer words cannot be nested deeper
            deep = too_deep(items[0])
            if deep is not None:
                self.builder.problems.append(deep)
                return
        self.builder.items += items

    def _mistake(self, stuck: Stuck) -> int | None:
        """Report where the parser is stuck; the offset to go on at."""
        problem, at = explain(stuck)
        self.builder.problems.append(problem)
        return at

    def _refuse(self, start: int, end: int, length: int) -> int:
        """Report an item that is nested too deeply or too long; the offset to go on at."""
        span = Span(self.builder.source, start, end)
        if length > MAX_ITEM_WORDS:
            problem = Diagnostic("TL0008", f"rule of more than {MAX_ITEM_WORDS:,} words", span)
        else:
            problem = nesting(span)
        self.builder.problems.append(problem)
        return next_item(self.text, start)


_Reduction = tuple[int, int, Action | None, list[int] | None, list[int], str]


def _children(children: Values, kept: list[int] | None, spliced: list[int]) -> Values:
    """The children that a rule's action gets: no punctuation, repeated parts in line."""
    if not spliced:
        return [children[i] for i in kept] if kept is not None else children
    indexes = kept if kept is not None else range(len(children))
    result: Values | None = None
    for i in indexes:
        if i not in spliced:
            if result is None:
                result = []
            result.append(children[i])
        elif result is None:
            result = children[i]  # the list of a repetition grows in place
        else:
            result += children[i]
    return result if result is not None else []
