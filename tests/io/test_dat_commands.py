"""Commands of scripts: read one at a time as their text comes, mistakes with their places."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from tidelog.io.dat.bind import Binder
from tidelog.io.dat.commands import (
    AddRule,
    Change,
    Clear,
    Command,
    Commit,
    Dump,
    Echo,
    Exit,
    Profile,
    RemoveRule,
    Rollback,
    Rules,
    Sleep,
    Start,
    Timestamp,
    Update,
    read_command,
)
from tidelog.io.dat.errors import ScriptError
from tidelog.io.dat.script import Script
from tidelog.program.model import Column
from tidelog.program.types import DOUBLE, S64, STRING, unsigned


def script_of(text: str) -> Script:
    return Script(iter(text.splitlines(keepends=True)), "s.dat")


def commands(text: str) -> Iterator[Command]:
    script = script_of(text)
    while (command := read_command(script)) is not None:
        yield command


def shape(command: Command) -> object:
    """A command without offsets."""
    match command:
        case Update(change, relation, record, key, last):
            values = None if record is None else [part.value for part in record.parts]
            if record is not None and record.fields is not None and values is not None:
                values = dict(zip((f.value for f in record.fields), values, strict=True))  # type: ignore
            return change.value, relation.value, values, None if key is None else key.value, last
        case Dump(relation):
            return "dump", None if relation is None else relation.value
        case Clear(relation):
            return "clear", relation.value
        case AddRule(text, _) | RemoveRule(text, _):
            return type(command).__name__, text
    return command


def test_plain_commands() -> None:
    text = "start; commit;\ncommit dump_changes ;rollback;timestamp;profile;rules;\nsleep 5; mssleep 0;exit;"
    assert list(commands(text)) == [
        Start(),
        Commit(False),
        Commit(True),
        Rollback(),
        Timestamp(),
        Profile(),
        Rules(),
        Sleep(5),
        Sleep(0),
        Exit(),
    ]


def test_commands_with_arguments() -> None:
    text = """
    dump; dump Tab; clear Tab ;   # a comment; with a semicolon
    echo  some text, as it is # and this ;
    echo;
    """
    assert list(map(shape, commands(text))) == [
        ("dump", None),
        ("dump", "Tab"),
        ("clear", "Tab"),
        Echo("some text, as it is # and this"),
        Echo(""),
    ]


def test_updates() -> None:
    text = """
    insert R(1, "a"), delete R(.x = 2, .s = "b"),  # in a list
    insert nb::R{.x = 3};
    insert_or_update R[(4, "d")]; insert R[5]; insert R[R{.x = 6}]; insert Nothing();
    delete_key R 7, delete_key R (8, "h"),
    modify R 9 <- R{.s = "i"};
    """
    assert [shape(c) for c in commands(text) if isinstance(c, Update) and c.key is None] == [
        ("insert", "R", [1, "a"], None, False),
        ("delete", "R", {"x": 2, "s": "b"}, None, False),
        ("insert", "nb::R", {"x": 3}, None, True),
        ("insert_or_update", "R", [4, "d"], None, True),
        ("insert", "R", [5], None, True),
        ("insert", "R", {"x": 6}, None, True),
        ("insert", "Nothing", [], None, True),
    ]
    by_key = [c for c in commands(text) if isinstance(c, Update) and c.key is not None]
    assert [c.change for c in by_key] == [Change.DELETE_KEY, Change.DELETE_KEY, Change.MODIFY]
    assert shape(by_key[0]) == ("delete_key", "R", None, 7, False)
    assert shape(by_key[2]) == ("modify", "R", {"s": "i"}, 9, True)


def test_rules() -> None:
    text = """
    add rule P(x) :- Q(x), x != 3.;
    add rule
      P(x) :-          # a comment; of the script
        R(x, "a;b"), // a comment; of the rule
        not S(x);
    remove rule 3; remove rule P(x) :- Q(x).;
    """
    assert list(map(shape, commands(text))) == [
        ("AddRule", "P(x) :- Q(x), x != 3."),
        (
            "AddRule",
            "P(x) :-          "
            + " " * len("# a comment; of the script")
            + '\n        R(x, "a;b"), // a comment; of the rule\n        not S(x).',
        ),
        ("RemoveRule", 3),
        ("RemoveRule", "P(x) :- Q(x)."),
    ]


@pytest.mark.parametrize(
    ("text", "code", "message", "place"),
    [
        ("start;\n  strat;", "TL0701", "there is no command `strat`", "2:3"),
        ("start; start insert", "TL0701", "expected `;` after `start`, found `insert`", "1:14"),
        ("commit dump_change;", "TL0701", "expected `;` after `commit`, found `dump_change`", "1:8"),
        ("42;", "TL0701", "expected a command, found `42`", "1:1"),
        ("insert 1;", "TL0701", "expected the name of a relation, found `1`", "1:8"),
        ("insert R;", "TL0701", "expected `(` and the values of R, found `;`", "1:9"),
        ("insert R(1", "TL0701", "the script ends where `,` or `)` was expected", "1:11"),
        ("insert R(1) delete", "TL0701", "expected `,` or `;` after the update, found `delete`", "1:13"),
        (
            "insert R(1)\n\n\n",
            "TL0701",
            "the script ends where `,` or `;` after the update was expected",
            "1:12",
        ),
        ("modify R 1 R{};", "TL0701", "expected `<-` after the key, found `R`", "1:12"),
        ("modify R 1 <- S{};", "TL0701", "expected fields of R", "1:15"),
        ("add R(1);", "TL0701", "expected `rule` after `add`, found `R`", "1:5"),
        ("add rule R(1).", "TL0701", "this rule is not ended by `;`", "1:1"),
        ("remove rule ;", "TL0701", "expected a rule, found `;`", "1:13"),
        ("\necho on and on", "TL0701", "this command is not ended by `;`", "2:1"),
        ("sleep -1;", "TL0701", "expected a number of milliseconds", "1:7"),
        ("query_index I(1);", "TL0704", "there is no command `query_index` here", "1:1"),
        ("profile cpu on;", "TL0704", "profiling is not switched on and off here", "1:1"),
    ],
)
def test_mistakes(text: str, code: str, message: str, place: str) -> None:
    with pytest.raises(ScriptError) as raised:
        list(commands(text))
    problem = raised.value.diagnostic
    assert problem is not None
    assert (problem.code, problem.message, str(problem.span)) == (code, message, f"s.dat:{place}")


def test_a_mistake_shows_the_line() -> None:
    with pytest.raises(ScriptError) as raised:
        list(commands("start;\ninsert R(1), inser R(2);\n"))
    assert str(raised.value) == (
        "error[TL0701]: there is no command `inser`\n"
        " --> s.dat:2:14\n"
        "  |\n"
        "2 | insert R(1), inser R(2);\n"
        "  |              ^^^^^\n"
        "  = hint: did you mean `insert`?"
    )


def test_no_line_is_asked_for_before_it_is_needed() -> None:
    asked: list[int] = []

    def lines() -> Iterator[str]:
        for number, line in enumerate(["start; insert R(1),\n", "insert R(\n", "2);\n", "commit;\n"]):
            asked.append(number)
            yield line

    script = Script(lines())
    seen = []
    while (command := read_command(script)) is not None:
        seen.append((type(command).__name__, len(asked)))
    assert seen == [("Start", 1), ("Update", 1), ("Update", 3), ("Commit", 4)]


def test_what_was_read_is_forgotten() -> None:
    script = Script(iter(["insert R(1),\n"] * 1_000 + ["commit;\n"]))
    longest = 0
    while (command := read_command(script)) is not None:
        longest = max(longest, len(script.text))
        place = script.place(script.at)
    assert longest <= 2 * len("insert R(1),\n")
    assert isinstance(command, type(None)) and str(place) == "<stdin>:1001:8"


@pytest.mark.parametrize(
    "values", ['1, "a", true', '-7 ,"",  false', '999999999999999999, "a, b);"', "", '"x"', "1", "1, 2"]
)
def test_the_quick_way_of_reading_a_record_is_the_same(values: str) -> None:
    quick, slow = (next(commands(f"insert R({values}{comment});")) for comment in ("", " # no quick way\n"))
    assert quick == slow


WHOLE = r"""
start; insert R(1, "a\n;"), insert R{.x = -2.5, .s = true}, delete R[(0xff, [1, C{2}])];
modify R (1, "k") <- R{.x = 1}; delete_key R 3, insert_or_update R();
add rule P(x) :- Q(x, "y;"), x > 1.; remove rule 7; commit dump_changes; dump R; echo text # text;
# comment
sleep 1; clear R; rollback; exit;
"""


@pytest.mark.parametrize("seed", range(300))
def test_nothing_but_its_own_errors_come_of_garbage(seed: int) -> None:
    random = Random(seed)
    text = list(WHOLE)
    for _ in range(random.randint(1, 12)):
        at = random.randrange(len(text))
        match random.randrange(3):
            case 0:
                del text[at : at + random.randint(1, 30)]
            case 1:
                text.insert(at, random.choice('"\\;,(){}[].=<-#%@0x1e9 \n\u00e9\x00'))
            case _:
                text[at:at] = text[at : at + random.randint(1, 30)]
        text = text or ["x"]
    script = script_of("".join(text))
    errors = 0
    while True:  # as on a terminal, where an error is not the end
        try:
            if read_command(script) is None:
                break
        except ScriptError as error:
            assert str(error).startswith("error[TL07")
            errors += 1
            script.drop()
    assert errors <= len(text)


# --- rows ----------------------------------------------------------------------

COLUMNS = (Column("x", S64), Column("s", STRING), Column("d", DOUBLE))


def row(text: str, columns: tuple[Column, ...] | None = COLUMNS) -> tuple[object, ...]:
    script = script_of(text)
    update = read_command(script)
    assert isinstance(update, Update) and update.record is not None
    return Binder(script, "R", columns).row(update.record, update.relation)


def test_rows_by_position_and_by_name() -> None:
    assert row('insert R(1, "a", 2.5);') == (1, "a", 2.5)
    assert row('insert R(.d = 2, .x = 1, .s = "a");') == (1, "a", 2)
    assert row("insert R();", ()) == ()
    assert row('insert R(1, "a");', None) == (1, "a")


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("insert R(1);", "1 value for R(x: s64, s: string, d: double)", 8),
        ("insert R(.x = 1);", "no value for s, d", 8),
        ('insert R(.x = 1, .y = "a", .d = 1.0);', "R has no field y", 19),
        ('insert R(.x = 1, .x = 2, .s = "a", .d = 1.0);', "the field x is given twice", 19),
        ('insert R("b", "a", 1.0);', '`"b"` is not an s64', 10),
        ('insert R(true, "a", 1.0);', "`true` is not an s64", 10),
        (
            'insert R(9223372036854775808, "a", 1.0);',
            "`9223372036854775808` is outside s64 (-9223372036854775808 to 9223372036854775807)",
            10,
        ),
        ('insert R(1.5, "a", 1.0);', "`1.5` is not an s64", 10),
        ("insert R(1, a, 1.0);", "the struct `a` is not a string", 13),
        ("insert R(1, (1, 2), 1.0);", "a tuple is not a string", 13),
        ('insert R(1, "a", [1]);', "an array is not a double", 18),
    ],
)
def test_rows_that_do_not_fit(text: str, message: str, column: int) -> None:
    with pytest.raises(ScriptError) as raised:
        row(text)
    problem = raised.value.diagnostic
    assert problem is not None
    assert (problem.code, problem.message, str(problem.span)) == ("TL0702", message, f"s.dat:1:{column}")


def test_a_relation_of_which_nothing_is_known_takes_rows_by_position() -> None:
    with pytest.raises(ScriptError, match="R is not declared: it has no field names yet"):
        row("insert R(.x = 1);", None)


def key(text: str, columns: tuple[int, ...]) -> object:
    script = script_of(text)
    update = read_command(script)
    assert isinstance(update, Update) and update.key is not None
    return Binder(script, "R", COLUMNS).key(update.key, columns, update.relation)


def test_keys() -> None:
    assert key("delete_key R 3;", (0,)) == (3,)
    assert key('delete_key R ("a", 3);', (1, 0)) == ("a", 3)
    assert key("delete_key R (3);", (0,)) == (3,)


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("delete_key R 3;", (), "R has no primary key"),
        ("delete_key R 3;", (0, 1), "1 value for the key (x: s64, s: string) of R"),
        ('delete_key R "a";', (0,), '`"a"` is not an s64'),
    ],
)
def test_keys_that_do_not_fit(text: str, columns: tuple[int, ...], message: str) -> None:
    with pytest.raises(ScriptError) as raised:
        key(text, columns)
    assert raised.value.diagnostic is not None
    assert (raised.value.diagnostic.code, raised.value.diagnostic.message) == ("TL0702", message)


def test_changed_fields() -> None:
    script = script_of('modify R 1 <- R{.s = "b"};modify R 1 <- R{1, "b", 0.5};modify R 1 <- R{.x = -1};')
    small = Binder(script, "R", (Column("x", unsigned(8)), *COLUMNS[1:]))
    found = []
    for _ in range(2):
        update = read_command(script)
        assert isinstance(update, Update) and update.record is not None
        found.append(small.changes(update.record, update.relation))
    assert found == [{"s": "b"}, {"x": 1, "s": "b", "d": 0.5}]
    update = read_command(script)
    assert isinstance(update, Update) and update.record is not None
    with pytest.raises(ScriptError, match="`-1` is outside u8"):
        small.changes(update.record, update.relation)
