"""What is wrong where the parser is stuck, in words, and where to go on.

The parser knows which words it would have taken; this module turns that into what
a person expected to write. The order of the tests in `explain` is from the most
telling mistake to the plain "expected this, found that".

    TL0000 more problems than are shown      TL0008 nested too deeply, too long
    TL0001 not a text                        TL0009 no '.' at the end of a rule
    TL0002 both styles of declarations       TL0010 not supported yet
    TL0003 something else was expected       TL0011 bracket not closed
    TL0004 string not closed                 TL0012 aggregate that does not exist
    TL0005 comment not closed                TL0013 field given twice
    TL0006 number that cannot be read        TL0014 character that has no place in a program
    TL0007 escape that does not exist
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from tidelog.syntax.build import FOLDS, Values
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
    later = _later(stuck)
    if later is not None:
        assert later.span is not None
        return later, _after_unsupported(text, later.span.end)
    if stuck.kind == BAD and not stuck.word.isprintable():
        problem = Diagnostic("TL0014", f"character U+{ord(stuck.word):04X} has no place in a program", span)
        return problem, next_item(text, stuck.end)

    expected = _accepted(stuck.states)
    bracket = _open_bracket(stuck)
    where = stuck.after_previous() if stuck.kind == END else span
    if _word("DOT") in expected and bracket is None and (stuck.kind == END or _starts_item(stuck)):
        problem = Diagnostic(
            "TL0009",
            "missing '.' at the end of the rule",
            stuck.after_previous(),
            hint="a rule and a fact end with '.'",
        )
        return problem, None if stuck.kind == END else stuck.start
    ends_item = stuck.kind == END or stuck.word == ":-" or _is_full_stop(stuck) or _starts_item(stuck)
    if bracket is not None and ends_item:
        opened, opening = bracket
        problem = Diagnostic(
            "TL0011",
            f"'{opening}' without '{_CLOSING[opening]}'",
            where,
            f"expected {_words(expected)}",
            (Label(opened, "opened here"),),
        )
        return problem, _resume(stuck, expected)
    found = "the end of the text" if stuck.kind == END else _quoted(stuck.word)
    message = f"expected {_words(expected)}, found {found}"
    return Diagnostic("TL0003", message, where, hint=_hint(stuck, expected)), _resume(stuck, expected)


_CLOSING = {"(": ")", "{": "}"}


def _resume(stuck: Stuck, expected: frozenset[int]) -> int | None:
    if stuck.kind == END:
        return None
    text = stuck.source.text
    if _word("DECL") in expected:  # go past a word that begins no item: else nothing would be gained
        return next_item(text, stuck.start if _is_full_stop(stuck) else stuck.end, lines=True)
    if _is_declaration(stuck):  # no '.' ends it
        return next_item(text, stuck.start, lines=True)
    return next_item(text, stuck.start)


def _is_declaration(stuck: Stuck) -> bool:
    first = next((value for value in stuck.values if value != []), None)
    return isinstance(first, str) and (first[0] == "." or first in ("input", "output", "relation"))


_BRACE = re.compile(r"[{}]")


def _after_unsupported(text: str, at: int) -> int:
    """Past the braces that follow on the line, or else the next line that looks like an item."""
    line_end = text.find("\n", at)
    brace = text.find("{", at, line_end if line_end >= 0 else len(text))
    if brace < 0:
        return next_item(text, at, lines=True)
    depth = 0
    for match in _BRACE.finditer(text, brace):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.end()
    return len(text)


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


def _is_full_stop(stuck: Stuck) -> bool:
    """Whether the word is a '.' that nothing follows directly."""
    return stuck.word == "." and stuck.source.text[stuck.end : stuck.end + 1].strip() == ""


def _starts_item(stuck: Stuck) -> bool:
    """Whether the word looks like the beginning of an item: a directive, or a name( on a new line."""
    text = stuck.source.text
    if stuck.kind in (_word("DECL"), _word("DIRECTIVE")):
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
    """What to write instead, where it can be guessed."""
    word = stuck.word
    last = stuck.values[-1] if stuck.values else None
    if stuck.kind in (MISTAKE, BAD) and word in _SPELLING:
        return _SPELLING[word]
    if _word("DECL") in expected:
        return _hint_at_start(stuck)
    if _word("__ANON_0") in expected and (word == ":" or word.startswith("<")):
        return "':-' stands between the head and the body of a rule"
    if (word == "." and stuck.source.text[stuck.end : stuck.end + 1].isdigit()) or (
        last == "." and word.isdigit()
    ):
        return "a number begins with a digit: 0.5"
    if last == "," and (word in (")", "}") or _is_full_stop(stuck)):
        return "remove the ',' before it"
    if last == ":-" and word == ".":
        return "a rule without a body is a fact: leave out ':-'"
    if word in (")", "}") and _open_bracket(stuck) is None:
        return f"there is no open '{'(' if word == ')' else '{'}' that it could close"
    if (word == "." and last == ",") or (_word("DOT") in expected and _open_bracket(stuck) is not None):
        return "arguments are given either all by position or all by name: r(.x = 1, .y = 2)"
    if stuck.kind == _word("GROUP_BY"):
        return "a group has a name: var m = v.group_by(k).min()"
    if word == "{" or (word == ":" and last in FOLDS):
        return "aggregates are written count : { r(x) } and sum x : { r(x) }"
    if last == "if" or _word("ELSE") in expected:
        return "a conditional is written if (c) a else b"
    if stuck.kind in (_word("COMPARE"), _word("EQUALS")) and expected & _OPERATORS:
        return "comparisons do not chain: write a < b, b < c"
    if _word("COLON") in expected and _word("COMMA") not in expected and word in (",", ")"):
        return "a column has a type: x: number"
    if expected == {_word("EQUALS")} and word == "==":
        return "a variable gets its value with '='"
    if expected == {_word("LPAR")}:
        return _hint_after_name(last, word)
    if _word("COMMA") in expected and (word == "!" or word[:1].isidentifier()):
        return "is there a ',' missing before it?"
    return None


def _hint_at_start(stuck: Stuck) -> str | None:
    if stuck.word == ".":
        after = _NAME.match(stuck.source.text, stuck.end)
        if after is None:
            return "a rule ends with one '.'"
        near = difflib.get_close_matches(after[0][:50], _DIRECTIVES, 1)
        return f"did you mean '.{near[0]}'?" if near else f"the directives are .{' .'.join(_DIRECTIVES)}"
    if stuck.word in ("!", "not"):
        return "the head of a rule cannot be negated"
    if stuck.word in (")", "}"):
        return f"there is no open '{'(' if stuck.word == ')' else '{'}' that it could close"
    return "comments begin with //" if stuck.word == "%" else None


_NAME = re.compile(r"[^\W\d]\w*")


def _hint_after_name(name: object, word: str) -> str | None:
    """The parser has read a name where an item begins, and no '(' follows."""
    if name in ("input", "output", "relation"):
        return "a relation is declared as in: input relation R(x: s64, y: string)"
    if name == "var":
        return "a variable is set in the body of a rule"
    if name == "primary":
        return "a primary key is written primary key (a, b), or primary key (x) (x.a, x.b)"
    if word in (":-", ".", ","):
        return f"a relation without columns is written {_shorten(str(name))}()"
    return None


# Words of either language that are not supported yet: where they begin something, and as characters.
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
    "eqrel": "equivalence relations are",
}
_LATER_CHARACTERS = {
    ";": "alternatives in a body are",
    "[": "records, literals of arrays and their elements are",
    "@": "'@' is",
    "$": "'$' is",
}


def _later(stuck: Stuck) -> Diagnostic | None:
    """The diagnostic for something that is not supported yet."""
    last = stuck.values[-1] if stuck.values else None
    if isinstance(last, str) and last in _LATER_WORDS and stuck.word not in ("(", ")", ",", "."):
        span = Span(stuck.source, stuck.starts[-1], stuck.ends[-1])
        return Diagnostic("TL0010", f"{_LATER_WORDS[last]} not supported yet", span)
    if stuck.kind == UNSUPPORTED:
        return Diagnostic("TL0010", f"'{stuck.word}' is not supported yet", stuck.span())
    if (stuck.kind == BAD or stuck.word == "[") and stuck.word in _LATER_CHARACTERS:
        hint = "write one rule for each alternative" if stuck.word == ";" else None
        what = _LATER_CHARACTERS[stuck.word]
        return Diagnostic("TL0010", f"{what} not supported yet", stuck.span(), hint=hint)
    return None


def _quoted(word: str) -> str:
    return '"\'"' if word == "'" else f"'{_shorten(word)}'"


def _shorten(word: str) -> str:
    shown = "".join(c if c.isprintable() else "\ufffd" for c in word[:40])
    return shown + "..." if len(word) > 40 else shown
