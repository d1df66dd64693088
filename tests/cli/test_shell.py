"""`tidelog shell`: what goes wrong and where, what is printed when, and sessions on a terminal."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.shells import Ended, shell

PROGRAM = """\
input relation Edge(from: u32, to: u32)
input relation Person(id: u32, name: string) primary key (id)
output relation Path(from: u32, to: u32)
output relation Share(n: u32)

Path(x, y) :- Edge(x, y).
Path(x, z) :- Path(x, y), Edge(y, z).
Share(100 / y) :- Edge(_, y).
"""
SLOW = ("--engine", "substitution")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "p.dl"
    path.write_text(PROGRAM)
    return path


# --- errors of scripts ------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "errors"),
    [
        (
            "start;\ninsert Edge(1, 2);\ninsrt Edge(2, 3);\n",
            "error[TL0701]: there is no command `insrt`\n"
            " --> <stdin>:3:1\n"
            "  |\n"
            "3 | insrt Edge(2, 3);\n"
            "  | ^^^^^\n"
            "  = hint: did you mean `insert`?\n",
        ),
        (
            'start;\ninsert Edge(1, 2),\n  insert Edge(2, "c");\n',
            'error[TL0702]: `"c"` is not a u32\n'
            " --> <stdin>:3:18\n"
            "  |\n"
            '3 |   insert Edge(2, "c");\n'
            "  |                  ^^^ for to: u32\n",
        ),
        (
            "insert Edge(1, 2);\n",
            "error[TL0703]: `insert` outside of a transaction\n"
            " --> <stdin>:1:1\n"
            "  |\n"
            "1 | insert Edge(1, 2);\n"
            "  | ^^^^^^^^^^^^^^^^^^\n"
            "  = hint: `start;` begins one\n",
        ),
        (
            "start;\nstart;\n",
            "error[TL0703]: a transaction is open\n"
            " --> <stdin>:2:1\n"
            "  |\n"
            "2 | start;\n"
            "  | ^^^^^^\n"
            "  = hint: commit it or roll it back first\n",
        ),
        (
            "dump Pth;\n",
            "error[TL0506]: there is no relation Pth\n"
            "  --> <stdin>:1:1\n"
            "  = note: the relations are Edge, Person, Path, Share\n"
            "  = hint: did you mean Path?\n",
        ),
        (
            "start; insert Edge(1, 2); delete_key Edge 1;\n",
            "error[TL0702]: Edge has no primary key\n"
            " --> <stdin>:1:38\n"
            "  |\n"
            "1 | start; insert Edge(1, 2); delete_key Edge 1;\n"
            "  |                                      ^^^^\n"
            "  = hint: as in `input relation R(id: u64, name: string) primary key (id)`\n",
        ),
        (
            "start;\nquery_index I(1);\n",
            "error[TL0704]: there is no command `query_index` here\n"
            " --> <stdin>:2:1\n"
            "  |\n"
            "2 | query_index I(1);\n"
            "  | ^^^^^^^^^^^\n"
            "  = note: relations have no declared indexes here; `dump R` prints all of a relation\n",
        ),
    ],
)
def test_the_first_error_ends_a_script(program: Path, script: str, errors: str) -> None:
    ended = shell(program, f"{script}echo never printed;\n", *SLOW)
    assert ended == Ended(1, "", errors)


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("commit", "commit"),
        ("commit dump_changes", "commit"),
        ("rollback", "rollback"),
        ("clear Edge", "clear"),
        ("add rule Path(1, 1).", "add rule"),
        ("remove rule 1", "remove rule"),
        ("delete_key Person 1", "delete_key"),
    ],
)
def test_commands_that_need_a_transaction(program: Path, command: str, word: str) -> None:
    ended = shell(program, f"{command};", *SLOW)
    assert ended.code == 1
    assert ended.errors.startswith(f"error[TL0703]: `{word}` outside of a transaction\n --> <stdin>:1:1\n")


def test_a_script_that_is_not_text(program: Path) -> None:
    ended = shell(program, b"echo fine;\nstart; echo \xc3\xa4\xff;\n", *SLOW)
    assert ended == Ended(
        1,
        "fine\n",
        "error[TL0701]: the script is not UTF-8 text\n"
        "  --> <stdin>:2:14\n"
        "  = note: hexadecimal ff is not part of any character\n",
    )


def test_a_mark_before_the_text_is_skipped(program: Path) -> None:
    assert shell(program, b"\xef\xbb\xbfecho fine;", *SLOW) == Ended(0, "fine\n", "")


# --- errors of carrying out ----------------------------------------------------------


def test_a_rule_that_fails_names_itself_and_the_commit(program: Path) -> None:
    ended = shell(program, "start;\ninsert Edge(1, 0);\n\n commit;\ndump;", *SLOW)
    assert (ended.code, ended.output) == (1, "")
    lines = ended.errors.splitlines()
    assert lines[0].startswith("error[TL0401]: ")
    assert lines[1] == "  --> <stdin>:4:2"
    assert any("Share(100 / y) :- Edge(_, y)." in line for line in lines)


def test_two_rows_with_one_key(program: Path) -> None:
    script = 'start;\ninsert Person(1, "Ada"), insert Person(1, "Byron");\ncommit;'
    ended = shell(program, script, *SLOW)
    assert (ended.code, ended.output) == (1, "")
    assert ended.errors == (
        "error[TL0511]: cannot insert into Person: two rows with the same primary key (id)\n"
        "  --> <stdin>:2:1\n"
        "  --> row 2: (1, 'Byron') has the key of (1, 'Ada')\n"
        "  = hint: insert_or_update replaces the row that is there\n"
    )


def test_problems_with_a_rule_are_shown_in_the_script(program: Path) -> None:
    script = "start;\nadd rule Path(x, y) :-\n  Edg(x, y),   # misspelt\n  z > 3.;\n\ncommit;"
    ended = shell(program, script, *SLOW)
    assert (ended.code, ended.output) == (1, "")
    assert ended.errors == (
        "error[TL0101]: unknown relation `Edg`\n"
        " --> <stdin>:3:3\n"
        "  |\n"
        "3 |   Edg(x, y),   # misspelt\n"
        "  |   ^^^ not declared\n"
        "  = hint: did you mean `Edge`?\n"
        "\n"
        "error[TL0303]: `z` is used in an expression, but nothing binds it\n"
        " --> <stdin>:4:3\n"
        "  |\n"
        "4 |   z > 3.;\n"
        "  |   ^ not bound\n"
        "  = hint: use `z` in an atom of the body that is not negated, or give it a value: `z = ...`\n"
    )


def test_a_rule_of_an_earlier_transaction_that_fails(tmp_path: Path) -> None:
    (tmp_path / "q.dl").write_text("input relation Edge(from: u32, to: u32)\noutput relation Half(n: u32)\n")
    script = "start;\nadd rule\n  Half(50 / y) :- Edge(_, y).;\ncommit;\nstart; insert Edge(1, 0); commit;"
    ended = shell(tmp_path / "q.dl", script, *SLOW)
    assert (ended.code, ended.output) == (1, "")
    lines = ended.errors.splitlines()
    assert lines[0].startswith("error[TL0401]: ")
    assert lines[1:3] == ["  --> <stdin>:5:27", "  --> <stdin>:3:3"]


def test_a_rule_that_would_break_the_strata(program: Path) -> None:
    script = "start;\nadd rule Path(x, x) :- Edge(x, _), not Path(x, 7).;\ncommit;"
    ended = shell(program, script, *SLOW)
    assert (ended.code, ended.output) == (1, "")
    assert ended.errors.startswith("error[TL0305]: ")
    assert "<stdin>:2:" in ended.errors and "<rule>" not in ended.errors


def test_a_rule_that_is_not_there(program: Path) -> None:
    ended = shell(program, "start;\nremove rule 7;\n", *SLOW)
    assert ended.code == 1
    assert ended.errors.startswith("error[TL0514]: there is no rule number 7\n  --> <stdin>:2:1\n")


# --- what is printed, and when ---------------------------------------------------------


def test_rules_are_listed_with_their_numbers(program: Path) -> None:
    script = """
    rules;
    start; add rule Path(x, x) :- Edge(x, _).; remove rule 2; commit;
    rules;
    """
    ended = shell(program, script, *SLOW)
    assert ended == Ended(
        0,
        "1: Path(x, y) :- Edge(x, y).\n"
        "2: Path(x, z) :- Path(x, y), Edge(y, z).\n"
        "3: Share(100 / y) :- Edge(_, y).\n"
        "1: Path(x, y) :- Edge(x, y).\n"
        "3: Share(100 / y) :- Edge(_, y).\n"
        "4: Path(x, x) :- Edge(x, _).\n",
        "",
    )


def test_timestamp_and_profile(program: Path) -> None:
    script = "timestamp; sleep 20; timestamp; start; insert Edge(1, 2); commit; profile;"
    ended = shell(program, script, *SLOW)
    assert (ended.code, ended.errors) == (0, "")
    first, second, title, *table = ended.output.splitlines()
    before, after = (int(line.removeprefix("Timestamp: ")) for line in (first, second))
    assert after - before >= 20_000_000
    assert title == "Profile:"
    assert any("Path" in line for line in table)


def test_a_script_that_ends_within_a_transaction(program: Path) -> None:
    ended = shell(program, "start; insert Edge(1, 2);", *SLOW)
    assert ended == Ended(0, "", "warning: the script ends within a transaction, which is rolled back\n")


def test_exit_leaves_an_open_transaction(program: Path) -> None:
    assert shell(program, "start; insert Edge(1, 2); exit; echo no;", *SLOW) == Ended(0, "", "")


def test_a_store_outlives_the_session(program: Path, tmp_path: Path) -> None:
    kept = (*SLOW, "--store", str(tmp_path / "store"))
    assert shell(program, "start; insert Edge(1, 2); commit;", *kept).code == 0
    ended = shell(program, "start; insert Edge(2, 3); commit; dump Path;", *kept)
    assert ended.output == "".join(f"Path{{.from = {x}, .to = {y}}}\n" for x, y in ((1, 2), (1, 3), (2, 3)))


@pytest.mark.parametrize(("option", "choice"), [("--algorithm", "dred"), ("--policy", "incremental")])
def test_an_unknown_name(program: Path, option: str, choice: str) -> None:
    ended = shell(program, "", option, "magic", *SLOW)
    assert (ended.code, ended.output) == (2, "")
    assert "magic" in ended.errors and choice in ended.errors


def test_output_comes_before_the_next_command_does(program: Path) -> None:
    """A program that talks to the shell through pipes gets each answer before it asks again."""
    with subprocess.Popen(
        [sys.executable, "-m", "tidelog", "shell", str(program), *SLOW],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        for node in (1, 2):
            process.stdin.write(
                f"start; insert Edge({node}, {node + 1});\ncommit;\necho {node} is in;\n".encode()
            )
            process.stdin.flush()
            assert process.stdout.readline() == f"{node} is in\n".encode()
        process.stdin.write(b"dump Path; exit;")
        process.stdin.close()
        assert process.stdout.read().decode() == (
            "Path{.from = 1, .to = 2}\nPath{.from = 1, .to = 3}\nPath{.from = 2, .to = 3}\n"
        )
        assert process.wait(60) == 0


def test_nobody_reads_on(program: Path) -> None:
    script = "echo line;\n" * 20_000
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m tidelog shell {program} | head -1; exit ${{PIPESTATUS[0]}}"],
        input=script.encode(),
        capture_output=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout, done.stderr) == (141, b"line\n", b"")


# --- on a terminal ------------------------------------------------------------------------


class Terminal:
    """A session on a terminal of its own: lines are typed, and what is shown is waited for."""

    def __init__(self, program: Path, home: Path) -> None:
        self.mine, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tidelog", "shell", str(program), *SLOW],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "dumb", "HOME": str(home), "INPUTRC": os.devnull},
            start_new_session=True,
        )
        os.close(theirs)
        self.shown = ""

    def until(self, text: str, timeout: float = 60) -> str:
        """Wait for a text, and take what has been shown up to it."""
        end = time.monotonic() + timeout
        while text not in self.shown:
            left = end - time.monotonic()
            assert left > 0, f"waited for {text!r}, saw {self.shown!r}"
            if select.select([self.mine], [], [], left)[0]:
                self.shown += os.read(self.mine, 4096).decode().replace("\r\n", "\n")
        before, _, self.shown = self.shown.partition(text)
        return before

    def type(self, text: str) -> None:
        os.write(self.mine, text.encode())

    def interrupt(self) -> None:
        """Press Ctrl-C until there is a prompt: readline may miss one that comes while it is busy."""
        for _ in range(30):
            self.process.send_signal(signal.SIGINT)
            with suppress(AssertionError):
                self.until(">> ", timeout=2)
                return
        raise AssertionError("no prompt after Ctrl-C")

    def close(self) -> int:
        code = self.process.wait(60)
        os.close(self.mine)
        return code


def test_errors_do_not_end_a_session_on_a_terminal(program: Path, tmp_path: Path) -> None:
    terminal = Terminal(program, tmp_path)
    terminal.until(">> ")
    terminal.type("start; insert Edge(1, 2);\n")
    terminal.until(">> ")
    terminal.type('insert Edge(5, 6), insert Edge("x", 3), insert Edge(7, 8);\n')
    terminal.until("error[TL0702]")
    terminal.until(">> ")
    terminal.type("insert Edge(2,\n")  # goes on over two lines
    terminal.until(">> ")
    terminal.type("3); commit dump_changes;\n")
    shown = terminal.until(">> ")
    changes = [line for line in shown.splitlines() if line.startswith("Path{")]
    # The list with the mistake is dropped as a whole; what came before it stays.
    assert changes == [
        "Path{.from = 1, .to = 2}: +1",
        "Path{.from = 1, .to = 3}: +1",
        "Path{.from = 2, .to = 3}: +1",
    ]
    terminal.type("start; insert Edge(4, 0); commit;\n")
    terminal.until("error[TL0401]")
    terminal.until(">> ")
    terminal.type("start; insert Edge(3, ")
    terminal.until("Edge(3, ")
    terminal.interrupt()
    terminal.type("rollback; dump Path;\n")
    terminal.until("error[TL0703]")  # the interrupted line was dropped, `start` with it
    terminal.until(">> ")
    terminal.type("echo bye;\n")
    terminal.until("\nbye\n>> ")
    terminal.type("\x04")
    assert terminal.close() == 0
    history = (tmp_path / ".tidelog_history").read_text()
    assert "start; insert Edge(1, 2);" in history


def test_exit_on_a_terminal(program: Path, tmp_path: Path) -> None:
    terminal = Terminal(program, tmp_path)
    terminal.until(">> ")
    terminal.type("exit;\n")
    assert terminal.close() == 0
