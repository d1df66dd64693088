"""Commands, read one at a time.

A list of updates (`insert A(1), delete B(2);`) comes one update at a time: `last` says that
its `;` has been reached. As in DDlog another command may also end the list.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from typing import NoReturn

from tidelog.io.dat.errors import ScriptError
from tidelog.io.dat.items import NAME, Compound, Item, read_item, read_struct, read_usual
from tidelog.io.dat.script import Script
from tidelog.syntax.errors import Diagnostic


class Change(Enum):
    """What an update does."""

    INSERT = "insert"
    DELETE = "delete"
    INSERT_OR_UPDATE = "insert_or_update"
    DELETE_KEY = "delete_key"
    MODIFY = "modify"


@dataclass(frozen=True, slots=True)
class Update:
    """A change of one fact: `record` is there but for `delete_key`, `key` for that and `modify`."""

    change: Change
    relation: Item
    record: Compound | None
    key: Item | None
    last: bool


@dataclass(frozen=True, slots=True)
class Start:
    """`start;`"""


@dataclass(frozen=True, slots=True)
class Commit:
    """`commit;` or `commit dump_changes;`"""

    dump_changes: bool


@dataclass(frozen=True, slots=True)
class Rollback:
    """`rollback;`"""


@dataclass(frozen=True, slots=True)
class Dump:
    """`dump;` or `dump R;`"""

    relation: Item | None


@dataclass(frozen=True, slots=True)
class Clear:
    """`clear R;`"""

    relation: Item


@dataclass(frozen=True, slots=True)
class Echo:
    """`echo text;`"""

    text: str


@dataclass(frozen=True, slots=True)
class AddRule:
    """`add rule p(x) :- q(x).;`: the rule begins at the offset `start` of the script."""

    text: str
    start: int


@dataclass(frozen=True, slots=True)
class RemoveRule:
    """`remove rule 3;` or `remove rule p(x) :- q(x).;`"""

    rule: int | str
    start: int


@dataclass(frozen=True, slots=True)
class Rules:
    """`rules;`"""


@dataclass(frozen=True, slots=True)
class Timestamp:
    """`timestamp;`"""


@dataclass(frozen=True, slots=True)
class Profile:
    """`profile;`"""


@dataclass(frozen=True, slots=True)
class Sleep:
    """`sleep 10;`, in milliseconds."""

    milliseconds: int


@dataclass(frozen=True, slots=True)
class Exit:
    """`exit;`"""


Plain = (
    Start
    | Commit
    | Rollback
    | Dump
    | Clear
    | Echo
    | AddRule
    | RemoveRule
    | Rules
    | Timestamp
    | Profile
    | Sleep
    | Exit
)
Command = Update | Plain

CHANGES = {change.value: change for change in Change}
SIMPLE: dict[str, Plain] = {
    "start": Start(),
    "rollback": Rollback(),
    "rules": Rules(),
    "timestamp": Timestamp(),
    "exit": Exit(),
}
_MISSING = {
    "query_index": "relations have no declared indexes here; `dump R` prints all of a relation",
    "dump_index": "relations have no declared indexes here; `dump R` prints all of a relation",
    "log_level": "rules write no log here",
}
_WORDS = (
    *CHANGES,
    *SIMPLE,
    "commit",
    "dump",
    "clear",
    "echo",
    "add",
    "remove",
    "profile",
    "sleep",
    "mssleep",
)


def read_command(script: Script) -> Command | None:
    """The next command; None at the end. After an error go on with what the script has next."""
    if not script.skip():
        return None
    script.forget()
    start = script.start
    found = script.match(NAME)
    if found is None:
        script.refuse_next("a command")
    word = found[0]
    if word in CHANGES:
        return _read_update(script, CHANGES[word])
    if word == "echo":
        return Echo(_until_semicolon(script, start).strip())
    command = _read_plain(script, word, start)
    _end(script, word)
    return command


def _read_plain(script: Script, word: str, start: int) -> Plain:
    """A command of which only the `;` is still to come."""
    if word in SIMPLE:
        return SIMPLE[word]
    match word:
        case "commit":
            return Commit(bool(script.match(_DUMP_CHANGES)))
        case "dump":
            whole = script.match(_BEFORE_END) is not None
            return Dump(None if whole else _relation(script, "the name of a relation or `;`"))
        case "clear":
            return Clear(_relation(script))
        case "add":
            _expect_rule(script, "add")
            text, begin = _rule(script, start)
            return AddRule(text, begin)
        case "remove":
            _expect_rule(script, "remove")
            text, begin = _rule(script, start)
            return RemoveRule(int(text) if _ID.fullmatch(text) else text, begin)
        case "profile":
            if script.match(_BEFORE_END) is None:
                note = "every commit is measured; `profile;` prints what the last one did"
                _not_there(script, "profiling is not switched on and off here", start, note)
            return Profile()
        case "sleep" | "mssleep":
            return _read_sleep(script)
    if word in _MISSING:
        _not_there(script, f"there is no command `{word}` here", start, _MISSING[word])
    near = get_close_matches(word, _WORDS, n=1)
    hint = f"did you mean `{near[0]}`?" if near else "docs/command-line.md lists the commands"
    script.refuse(f"there is no command `{word}`", start, script.at, hint=hint)


_DUMP_CHANGES = re.compile(r"dump_changes(?!\w)")
_BEFORE_END = re.compile(r"(?=;)")
_ID = re.compile(r"[0-9]{1,18}")
_RULE = re.compile(r"rule(?!\w)")


def _end(script: Script, word: str) -> None:
    if not script.accept(";"):
        script.refuse_next(f"`;` after `{word}`", "every command ends with `;`")


def _not_there(script: Script, message: str, start: int, note: str) -> NoReturn:
    raise ScriptError(Diagnostic("TL0704", message, script.span(start, script.at), notes=(note,)))


def _relation(script: Script, wanted: str = "the name of a relation") -> Item:
    found = script.match(NAME)
    if found is None:
        script.refuse_next(wanted)
    return Item(found[0], found.start(), found.end())


def _read_sleep(script: Script) -> Sleep:
    item = read_item(script)
    if not isinstance(item.value, int) or isinstance(item.value, bool) or item.value < 0:
        script.refuse("expected a number of milliseconds", item.start, item.end)
    return Sleep(item.value)


# --- updates -------------------------------------------------------------------

_BRACKETS = {"(": ")", "{": "}", "[": "]"}


def _read_update(script: Script, change: Change) -> Update:
    relation = _relation(script)
    record: Compound | None = None
    key: Item | None = None
    if change in (Change.DELETE_KEY, Change.MODIFY):
        key = read_item(script)
        if change is Change.MODIFY:
            if not script.accept("<-"):
                script.refuse_next("`<-` after the key")
            record = _changed_fields(script, relation)
    else:
        record = _record(script, relation)
    if script.accept(";"):
        return Update(change, relation, record, key, last=True)
    if script.accept(","):
        return Update(change, relation, record, key, last=False)
    script.refuse_next("`,` or `;` after the update")


def _record(script: Script, relation: Item) -> Compound:
    """`(1, 2)`, `(.x = 1)`, `{.x = 1}`, or `[v]` with a struct, a tuple or a single value."""
    name = str(relation.value)
    bracket = script.text[script.at] if script.skip() else ""
    if bracket not in ("(", "{", "["):
        script.refuse_next(f"`(` and the values of {name}")
    if bracket == "(" and (usual := read_usual(script, name)) is not None:
        return usual
    script.at += 1
    if bracket != "[":
        return read_struct(script, name, close=_BRACKETS[bracket])
    item = read_item(script)
    if not script.accept("]"):
        script.refuse_next("`]`")
    if isinstance(item.value, Compound) and item.value.kind in ("struct", "tuple"):
        return Compound("struct", item.value.parts, name, item.value.fields)
    return Compound("struct", (item,), name)


def _changed_fields(script: Script, relation: Item) -> Compound:
    """`R{.x = 1}`: the fields that a `modify` sets."""
    found = _relation(script)
    if found.value != relation.value:
        script.refuse(
            f"expected fields of {relation.value}",
            found.start,
            found.end,
            f"as in {relation.value}{{.x = 1}}",
        )
    return _record(script, relation)


# --- rules and other text --------------------------------------------------------


def _until_semicolon(script: Script, start: int) -> str:
    begin = script.at
    while (end := script.text.find(";", begin)) < 0:
        if not script.more(";"):
            script.refuse("this command is not ended by `;`", start, begin)
    script.at = end + 1
    return script.text[begin:end]


def _expect_rule(script: Script, word: str) -> None:
    if script.match(_RULE) is None:
        script.refuse_next(f"`rule` after `{word}`")


# The words of a rule in which a `;` means nothing, and `#` comments, which only scripts have.
_OPAQUE = re.compile(r'"(?:[^"\\\n]++|\\[^\n])*+"|//[^\n]*+|/\*[\s\S]*?\*/|#[^\n]*+|;')


def _rule(script: Script, start: int) -> tuple[str, int]:
    """The text up to the `;`, comments blanked out, with the dot that ends a rule; and its offset."""
    script.skip()
    begin = script.at
    while (end := _rule_end(script.text, begin)) is None:
        if not script.more(";"):
            script.refuse("this rule is not ended by `;`", start, begin)
    script.at = end
    text = _OPAQUE.sub(lambda m: " " * len(m[0]) if m[0][0] == "#" else m[0], script.text[begin:end])
    text = text.rstrip()
    if not text:
        script.refuse_next("a rule")
    return (text if text.endswith(".") or _ID.fullmatch(text) else text + "."), begin


def _rule_end(text: str, begin: int) -> int | None:
    return next((m.start() for m in _OPAQUE.finditer(text, begin) if m[0] == ";"), None)
