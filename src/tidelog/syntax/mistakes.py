"""What is wrong where the parser is stuck, in words, and where to go on.

The parser knows which words it would have taken; this module turns that into what
a person expected to write. The order of the tests in `explain` is from the most
telling mistake to the plain "expected this, found that".
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from tidelog.syntax.build import Values
from tidelog.syntax.errors import Diagnostic, Label
from tidelog.syntax.lexer import (
    BAD,
    END,
    GRAMMAR,
    MISTAKE,
    UNCLOSED_COMMENT,
    UNCLOSED_STRING,
    UNSUPPORTED,
    next_item,
)
from tidelog.syntax.source import Source, Span


@dataclass(frozen=True)
class Stuck:
    """The parser's stack, and the word it cannot place."""

    source: Source
    states: list[int]
    values: Values
    starts: list[int]
    ends: list[int]
    kind: int
    word: str
    start: int
    end: int

    def span(self) -> Span:
        """The word's span."""
        return Span(self.source, self.start, self.end)

    def after_previous(self) -> Span:
        """The place just after the word before."""
        at = self.ends[-1] if self.ends else self.start
        return Span(self.source, at, at)

    def in_item(self) -> bool:
        """Whether an item has begun (finished items lie on the stack as one empty value)."""
        return any(value != [] for value in self.values)


def explain(stuck: Stuck) -> tuple[Diagnostic, int | None]:
    """The diagnostic, and the offset to go on at (None: nothing more can be read)."""
    text, span = stuck.source.text, stuck.span()
    if stuck.kind == UNCLOSED_COMMENT:
        hint = "close the comment with */"
        return Diagnostic("TL0005", "comment without end", span, "it begins here", hint=hint), None
    if stuck.kind == UNCLOSED_STRING:
        problem = Diagnostic(
            "TL0004",
            "string without closing quote",
            Span(stuck.source, stuck.start, stuck.start + 1),
            "it begins here",
            hint='close the string with " on the same line; in a string, \\" is a quote and \\n a line end',
        )
        return problem, stuck.end  # the closing '.' is most likely inside the string
    if stuck.kind == UNSUPPORTED:
        problem = Diagnostic("TL0010", f"'{stuck.word}' is not supported yet", span)
        return problem, _after_unsupported(text, stuck.end)
    expected = _accepted(stuck.states)
    open_bracket = _open_bracket(stuck)
    ends_item = stuck.kind == END or stuck.word in (".", ":-") or _starts_item(stuck)
    if _word("DOT") in expected and not open_bracket and (stuck.kind == END or _starts_item(stuck)):
        problem = Diagnostic(
            "TL0009",
            "missing '.' at the end of the rule",
            stuck.after_previous(),
            hint="a rule and a fact end with '.'",
        )
        return problem, None if stuck.kind == END else stuck.start
    positional = stuck.word == "." and stuck.values and stuck.values[-1] == "," and not _at_end(stuck)
    if open_bracket is not None and ends_item and not positional:
        opened, bracket = open_bracket
        closing = {"(": ")", "{": "}"}[bracket]
        problem = Diagnostic(
            "TL0011",
            f"'{bracket}' without '{closing}'",
            stuck.after_previous() if stuck.kind == END else span,
            f"expected {_words(expected)}",
            (Label(opened, "opened here"),),
        )
        return problem, _resume(stuck)
    found = "the end of the text" if stuck.kind == END else f"'{_shorten(stuck.word)}'"
    message = f"expected {_words(expected)}, found {found}"
    where = stuck.after_previous() if stuck.kind == END else span
    problem = Diagnostic(_code(stuck), message, where, hint=_hint(stuck, expected))
    if _unsupported_word(stuck) is not None:
        problem = Diagnostic("TL0010", f"{_unsupported_word(stuck)} not supported yet", span)
    return problem, _resume(stuck)


def _code(stuck: Stuck) -> str:
    return "TL0014" if stuck.kind == BAD and not stuck.word.isprintable() else "TL0003"


def _resume(stuck: Stuck) -> int | None:
    if stuck.kind == END:
        return None
    # At the first word of an item, go past it: else nothing would be gained.
    at = stuck.start if stuck.in_item() or stuck.word == "." else stuck.end
    return next_item(stuck.source.text, at)


def _after_unsupported(text: str, at: int) -> int:
    """After an unsupported directive: the next line that looks like an item, or what `next_item` says."""
    line = re.compile(r"\n(?=\s*(?:\.|[\w?]+\s*\(|//|/\*))").search(text, at)
    return min(next_item(text, at), line.end() if line else len(text))


# --- what the parser would have taken ------------------------------------------


def _word(name: str) -> int:
    return _NUMBER[name]


_NUMBER = {name: i for i, name in enumerate(GRAMMAR.symbols)}


def _accepted(states: list[int]) -> frozenset[int]:
    """The words that could have come instead."""
    return frozenset(kind for kind in range(GRAMMAR.terminals) if _accepts(states, kind))


def _accepts(states: list[int], kind: int) -> bool:
    stack = list(states)
    while True:
        action = GRAMMAR.states[stack[-1]].get(kind)
        if action is None:
            return False
        if action >= 0:
            return True
        symbol, length, *_ = GRAMMAR.rules[-1 - action]
        del stack[len(stack) - length :]
        stack.append(GRAMMAR.states[stack[-1]][symbol])
        if kind == END and stack[-1] == GRAMMAR.end:
            return True


_EXPRESSION = frozenset(map(_word, ("STRING", "INT", "FLOAT", "WILDCARD")))
_LITERAL = frozenset([_word("VAR")])
_OPERATORS = frozenset(map(_word, ("PLUS", "TIMES", "MINUS", "COMPARE", "AND", "OR")))
_CLOSERS = ("COMMA", "RPAR", "RBRACE", "COLON", "EQUALS", "ELSE", "RELATION", "DOT")


def _words(expected: frozenset[int]) -> str:
    """What could have come, in words: the least that says it."""
    if _word("DECL") in expected:
        return "a rule or a declaration"
    said: list[str] = []
    if expected >= _LITERAL:
        said.append("an atom or a condition")
    elif expected >= _EXPRESSION:
        said.append("an expression")
    elif _word("SIZED_TYPE") in expected:
        said.append("a type")
    elif _word("NAME") in expected:
        said.append("a name")
    is_operand = bool(said)
    for name in _CLOSERS:
        if _word(name) not in expected or (name == "DOT" and is_operand):
            continue
        if name == "EQUALS" and expected & _OPERATORS:
            continue
        said.append(f"'{GRAMMAR.shown.get(_word(name), name.lower())}'")
    if _word("__ANON_0") in expected:
        said.append("':-'")
    if not is_operand and expected & _OPERATORS:
        said.append("an operator")
    if not said:
        said = sorted(f"'{GRAMMAR.shown.get(kind, GRAMMAR.symbols[kind].lower())}'" for kind in expected)[:5]
    return said[0] if len(said) == 1 else ", ".join(said[:-1]) + " or " + said[-1]


# --- telling mistakes ------------------------------------------------------------


def _open_bracket(stuck: Stuck) -> tuple[Span, str] | None:
    """The innermost bracket that is open: on the stack as a word, with no partner above it."""
    closed = 0
    for value, start in zip(reversed(stuck.values), reversed(stuck.starts), strict=True):
        if value in (")", "}"):
            closed += 1
        elif value in ("(", "{"):
            if not closed:
                return Span(stuck.source, start, start + 1), value
            closed -= 1
    return None


_HEAD = re.compile(r"[^\W\d][\w?]*\s*\(|(?:input|output)\s+relation\s|relation\s")


def _at_end(stuck: Stuck) -> bool:
    """Whether nothing follows the word on its line, or only space."""
    return stuck.source.text[stuck.end : stuck.end + 1].strip() == ""


def _starts_item(stuck: Stuck) -> bool:
    """Whether the word looks like the beginning of an item: a directive, or a name( on a new line."""
    text = stuck.source.text
    if stuck.word.startswith(".") and len(stuck.word) > 1:
        return True
    if stuck.word in ("input", "output", "relation"):
        return _HEAD.match(text, stuck.start) is not None
    before = text[stuck.ends[-1] : stuck.start] if stuck.ends else ""
    return "\n" in before and _HEAD.match(text, stuck.start) is not None


_SPELLING = {
    ":=": "':-' stands between the head and the body of a rule",
    "=>": "'>=' is 'at least'; ':-' stands between the head and the body of a rule",
    "<>": "'!=' is 'not equal'",
    "===": "'==' or '=' is 'equal'",
    "->": "':-' stands between the head and the body of a rule, head first",
    "'": 'strings are written in double quotes: "..."',
    "#": "comments begin with //",
}
_DIRECTIVES = ("decl", "input", "output", "printsize")


def _hint(stuck: Stuck, expected: frozenset[int]) -> str | None:
    text, word = stuck.source.text, stuck.word
    last = stuck.values[-1] if stuck.values else None
    if stuck.kind in (MISTAKE, BAD) and word in _SPELLING:
        return _SPELLING[word]
    if word == "<" and _word("__ANON_0") in expected:
        return "':-' stands between the head and the body of a rule"
    if word == ":" and _word("__ANON_0") in expected:
        return "':-' stands between the head and the body of a rule"
    if last == "," and (word in (")", "}") or (word == "." and _at_end(stuck))):
        return "remove the ',' before it"
    if last == ":-" and word == ".":
        return "a rule without a body is a fact: leave out ':-'"
    if word in (")", "}") and _open_bracket(stuck) is None:
        return f"there is no open '{'(' if word == ')' else '{'}' that it could close"
    if not stuck.in_item() and word == ".":
        after = re.compile(r"[^\W\d]\w*").match(text, stuck.end)
        if after is not None:
            near = difflib.get_close_matches(after[0][:50], _DIRECTIVES, 1)
            return f"did you mean '.{near[0]}'?" if near else f"the directives are .{' .'.join(_DIRECTIVES)}"
        return "a rule ends with one '.'"
    if not stuck.in_item() and word in ("!", "not"):
        return "the head of a rule cannot be negated"
    if word == "." and last == "," and _open_bracket(stuck) is not None:
        return "arguments are given either all by position or all by name: r(.x = 1, .y = 2)"
    if stuck.kind in (_word("COMPARE"), _word("EQUALS")) and expected & _OPERATORS:
        return "comparisons do not chain: write a < b, b < c"
    if _word("COLON") in expected and _word("COMMA") not in expected and word in (",", ")"):
        return "a column has a type: x: number"
    return None


_LATER_WORDS = {
    "typedef": "type definitions are",
    "function": "functions are",
    "import": "imports are",
    "extern": "extern definitions are",
    "index": "indexes are",
    "apply": "transformers are",
    "transformer": "transformers are",
    "stream": "streams are",
    "multiset": "multisets are",
    "primary": "primary keys are",
    "eqrel": "equivalence relations are",
    "FlatMap": "FlatMap is",
}


def _unsupported_word(stuck: Stuck) -> str | None:
    """A word of either language that is later work, with a verb."""
    if stuck.word == ";":
        return "alternatives in a body (write one rule for each) are"
    if stuck.word == "[":
        return "records and lists are"
    if stuck.word == "@" or stuck.word == "$":
        return f"'{stuck.word}' is"
    here = stuck.values[-1] if stuck.values else None
    return _LATER_WORDS.get(stuck.word) or (_LATER_WORDS.get(here) if isinstance(here, str) else None)


def _shorten(word: str) -> str:
    shown = "".join(c if c.isprintable() else "\ufffd" for c in word[:40])
    return shown + "..." if len(word) > 40 else shown
