"""`tidelog shell`: scripts of transactions, in DDlog's command language.

Each command is carried out, and what it prints is there, before the next is waited for.
Read from a pipe or a file the first error ends it all, and an open transaction is rolled
back. On a terminal an error is printed and the session goes on: it loses the list of
updates it was in, the open transaction keeps what came before.
"""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from time import perf_counter_ns, sleep
from typing import NoReturn

from tidelog.cli.guard import say, standard_output
from tidelog.cli.startup import keep_pandas_out
from tidelog.io.dat.bind import Binder, Row
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
from tidelog.io.dat.errors import RulesOfScript, ScriptError, placed
from tidelog.io.dat.items import write_record
from tidelog.io.dat.script import Place, Script
from tidelog.io.nested import order_key
from tidelog.program.model import Relation, Value
from tidelog.session.changes import Changes
from tidelog.session.database import Database
from tidelog.session.transaction import Transaction
from tidelog.syntax.errors import Diagnostic, InternalError, ResourceError, TidelogError

PROMPT = ">> "
HISTORY = ".tidelog_history"
HISTORY_LENGTH = 1_000
MOST_AT_ONCE = 10_000  # lines of a dump


@dataclass
class Run:
    """Updates of one relation and one kind, one after the other; `place` is where the first stands."""

    change: Change
    place: Place
    rows: list[Row] = field(default_factory=list)  # whole rows, or keys
    fields: list[dict[str, Value]] = field(default_factory=list)  # what a modify sets


class Interpreter:
    """Carries out commands on a database; `write` prints."""

    def __init__(self, db: Database, script: Script, write: Callable[[str], None]) -> None:
        self._db = db
        self._script = script
        self._write = write
        self._started = perf_counter_ns()
        self._transaction: Transaction | None = None
        # The list of updates being read, by relation: relations do not get in each other's way.
        self._pending: dict[str, list[Run]] = {}
        self._binders: dict[str, tuple[Relation | None, Binder]] = {}
        self._rules = RulesOfScript()

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._transaction is not None

    def forget_updates(self) -> None:
        """Let go of the list of updates being read."""
        self._pending.clear()

    def close(self) -> None:
        """Roll back a transaction that is open."""
        if self._transaction is not None:
            transaction, self._transaction = self._transaction, None
            transaction.rollback()

    def carry_out(self, command: Command) -> bool:
        """Do what a command says; False when it was the last. Raises ScriptError with its place."""
        if isinstance(command, Update):
            self._update(command)
            return True
        place = self._script.place(self._script.start)
        self._apply_updates()
        self._binders.clear()  # a rule or a commit may give a relation other columns
        try:
            return self._plain(command)
        except TidelogError as error:
            raise placed(self._rules.moved(error), place) from error

    def _plain(self, command: Command) -> bool:
        match command:
            case Start():
                if self.in_transaction:
                    self._refuse("a transaction is open", "commit it or roll it back first")
                self._transaction = self._db.transaction()
            case Commit(dump_changes):
                self._commit(dump_changes=dump_changes)
            case Rollback():
                self._open("rollback")
                self.close()
            case Dump(None):
                for name in self._outputs():
                    self._write(f"{name}:\n")
                    self._dump(name)
                    self._write("\n")
            case Dump(item) if item is not None:
                self._dump(str(item.value))
            case Clear(item):
                self._open("clear").clear(str(item.value))
            case AddRule(text, start):
                transaction = self._open("add rule")
                self._rules.add(text, self._script.span(start, self._script.at))
                transaction.add_rule(text)
            case RemoveRule(rule, start):
                transaction = self._open("remove rule")
                self._rules.add(str(rule), self._script.span(start, self._script.at))
                transaction.remove_rule(rule)
            case Rules():
                self._write("".join(f"{rule.id}: {rule.text}\n" for rule in self._db.rules))
            case Echo(text):
                self._write(f"{text}\n")
            case Timestamp():
                self._write(f"Timestamp: {perf_counter_ns() - self._started}\n")
            case Profile():
                self._write(f"Profile:\n{self._db.report}\n")
            case Sleep(milliseconds):
                sleep(milliseconds / 1_000)
            case Exit():
                return False
        return True

    # --- updates -----------------------------------------------------------------

    def _update(self, command: Update) -> None:
        """Put an update with the list being read; a list that is complete is applied."""
        transaction = self._open(command.change.value)
        name = str(command.relation.value)
        try:
            relation, binder = self._binder(name, transaction)
        except TidelogError as error:
            raise placed(error, self._script.place(self._script.start)) from error
        row: Row = ()
        fields: dict[str, Value] = {}
        if command.key is not None:
            row = binder.key(command.key, () if relation is None else relation.key, command.relation)
            if command.record is not None:
                fields = binder.changes(command.record, command.relation)
        elif command.record is not None:
            row = binder.row(command.record, command.relation)
        runs = self._pending.setdefault(name, [])
        if not runs or runs[-1].change is not command.change:
            runs.append(Run(command.change, self._script.place(self._script.start)))
        runs[-1].rows.append(row)
        runs[-1].fields.append(fields)
        if command.last:
            self._apply_updates()

    def _apply_updates(self) -> None:
        pending, self._pending = self._pending, {}
        for relation, runs in pending.items():
            for run in runs:
                try:
                    self._apply(relation, run)
                except TidelogError as error:
                    raise placed(error, run.place) from error

    def _apply(self, relation: str, run: Run) -> None:
        transaction = self._transaction
        assert transaction is not None
        match run.change:
            case Change.INSERT:
                transaction.insert(relation, run.rows)
            case Change.DELETE:
                transaction.delete(relation, run.rows)
            case Change.INSERT_OR_UPDATE:
                transaction.insert_or_update(relation, run.rows)
            case Change.DELETE_KEY:
                transaction.delete_key(relation, run.rows)
            case Change.MODIFY:
                for key, fields in zip(run.rows, run.fields, strict=True):
                    transaction.modify(relation, key, fields)

    def _binder(self, name: str, transaction: Transaction) -> tuple[Relation | None, Binder]:
        """The relation, None for one that comes with these facts, and what makes rows of it."""
        if name not in self._binders:
            pending = transaction.rules.pending(transaction.types)
            relation = (self._db if pending is None else pending).relations.get(name)
            if relation is None:
                transaction.insert(name, [])  # raises where there can be no such relation
            columns = None if relation is None else relation.columns
            self._binders[name] = relation, Binder(self._script, name, columns)
        return self._binders[name]

    def _commit(self, *, dump_changes: bool) -> None:
        transaction, self._transaction = self._open("commit"), None
        before = self._outputs() if dump_changes else []
        changes = transaction.commit()
        if dump_changes:
            # A relation that went with its last rule has changed too.
            names = sorted({*before, *self._outputs()} & {*changes})
            self._write("".join(map(changes_text, map(changes.__getitem__, names))))

    # --- what commands need ----------------------------------------------------------

    def _open(self, word: str) -> Transaction:
        """The open transaction, for a command that needs one."""
        if self._transaction is None:
            self._refuse(f"`{word}` outside of a transaction", "`start;` begins one")
        return self._transaction

    def _refuse(self, message: str, hint: str) -> NoReturn:
        span = self._script.span(self._script.start, self._script.at)
        raise ScriptError(Diagnostic("TL0703", message, span, hint=hint))

    def _outputs(self) -> list[str]:
        """The output relations, by name; where there are none, those that rules derive."""
        relations = self._db.relations
        found = [relation.name for relation in relations.values() if relation.is_output]
        if not found:
            derived = {rule.head.relation for rule in self._db.program.rules}
            found = [name for name in relations if name in derived]
        return sorted(found)

    def _dump(self, name: str) -> None:
        """Print the records of a relation, a line for each, some at a time."""
        answer = self._db[name]
        columns, rows = answer.relation.columns, iter(answer)
        while lines := [f"{write_record(name, columns, row)}\n" for row in islice(rows, MOST_AT_ONCE)]:
            self._write("".join(lines))


def changes_text(changes: Changes) -> str:
    """What a commit changed in a relation: records in order, each with `: +1` or `: -1`."""
    name, columns = changes.relation.name, changes.relation.columns
    rows = sorted(changes, key=lambda change: order_key(change[0]))
    lines = (f"{write_record(name, columns, row)}: {weight:+}\n" for row, weight in rows)
    return "".join([f"{name}:\n", *lines])


# --- where commands come from and output goes --------------------------------------------


def run_shell(
    program: Path, *, algorithm: str, engine: str, policy: str, threads: int, store: str | None
) -> None:
    """Carry out the commands of the standard input on a program."""
    if engine != "spark":
        keep_pandas_out()
    if not sys.stderr.isatty():  # nobody waits for a word on why it takes time
        logging.getLogger("tidelog").setLevel(logging.ERROR)
    with Database(
        program, algorithm=algorithm, engine=engine, policy=policy, threads=threads, store=store
    ) as db:
        gc.freeze()  # what has been loaded stays, and need not be looked at between commits
        if sys.stdin.isatty():
            _converse(db)
        else:
            _run_script(db)


def _write(text: str) -> None:
    with standard_output():
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()


def _run_script(db: Database) -> None:
    script = Script(_decoded(sys.stdin.buffer))
    with closing(Interpreter(db, script, _write)) as interpreter:
        while (command := read_command(script)) is not None:
            if not interpreter.carry_out(command):
                return
        if interpreter.in_transaction:
            say("warning: the script ends within a transaction, which is rolled back")


def _decoded(lines: Iterable[bytes]) -> Iterator[str]:
    """Lines of UTF-8 text; what is none is an error with its place."""
    for number, line in enumerate(lines, 1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            column = len(line[: error.start].decode("utf-8", "replace")) + 1
            raise ScriptError(
                "error[TL0701]: the script is not UTF-8 text\n"
                f"  --> {Place('<stdin>', number, column)}\n"
                f"  = note: hexadecimal {line[error.start]:02x} is not part of any character"
            ) from None


# --- a session on a terminal --------------------------------------------------------------


class _Terminal:
    """Lines typed at the prompt. An interrupted line is no end: the next can be asked for."""

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        try:
            return input(PROMPT) + "\n"
        except EOFError:
            _write("\n")
            raise StopIteration from None


def _converse(db: Database) -> None:
    """Commands from a terminal: errors are said, and the session goes on."""
    with ExitStack() as leaving:
        leaving.enter_context(_history())
        script = Script(_Terminal(), "<terminal>")
        interpreter = leaving.enter_context(closing(Interpreter(db, script, _write)))
        while True:
            try:
                command = read_command(script)
                if command is None or not interpreter.carry_out(command):
                    return
            except InternalError:
                raise
            except (TidelogError, MemoryError) as error:
                say(str(error if isinstance(error, TidelogError) else ResourceError()))
                interpreter.forget_updates()
                script.drop()
            except KeyboardInterrupt:
                _write("\n")
                interpreter.forget_updates()
                script.drop()


@contextmanager
def _history() -> Iterator[None]:
    """Lines can be edited and called back, also those of earlier sessions, where Python has readline."""
    try:
        import readline
    except ImportError:
        yield
        return
    path = Path.home() / HISTORY
    with suppress(OSError):
        readline.read_history_file(path)
    try:
        yield
    finally:
        readline.set_history_length(HISTORY_LENGTH)
        with suppress(OSError):
            readline.write_history_file(path)
