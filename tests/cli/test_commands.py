"""The command line, in processes of its own with real files."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

PROGRAM = """\
.decl edge(x: number, y: number)
.input edge
.decl path(x: number, y: number)
.decl ends(n: number)
.output path
.output ends
.printsize path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
ends(n) :- n = count : { path(_, 3) }.
"""
UNTYPED = "path(x, y) :- edge(x, y).\npath(x, z) :- path(x, y), edge(y, z).\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "p.dl").write_text(PROGRAM)
    (tmp_path / "facts").mkdir()
    (tmp_path / "facts/edge.facts").write_text("1\t2\n2\t3\n")
    return tmp_path


def command(*args: str) -> list[str]:
    return [sys.executable, "-m", "tidelog", *args]


def tidelog(place: Path, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*args), cwd=place, capture_output=True, text=True, env={**os.environ, **env}, timeout=120
    )


def files(directory: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in directory.iterdir()}


# --- run ---------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["local", "substitution"])
def test_run(place: Path, engine: str) -> None:
    done = tidelog(place, "run", "p.dl", "-F", "facts", "-D", "out", "-j", "2", "--engine", engine)
    assert (done.returncode, done.stdout) == (0, "path\t3\n")
    assert files(place / "out") == {"path.csv": "1\t2\n1\t3\n2\t3\n", "ends.csv": "2\n"}
    lines = done.stderr.splitlines()
    assert lines[0].split() == ["stratum", "relations", "rounds", "tuples", "instances", "seconds"]
    assert lines[1].split()[:2] == ["1", "path"]
    assert lines[-2] == "outputs: path 3, ends 1"
    assert re.fullmatch(
        ", ".join(
            rf"{name} \d+\.\d{{3}} s" for name in ("check", "start", "load", "derive", "write", "total")
        ),
        lines[-1],
    )


def test_run_to_the_terminal(place: Path) -> None:
    done = tidelog(place, "run", "p.dl", "-F", "facts", "-D-", "--quiet", "--engine", "substitution")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "---------------\npath\n===============\n1\t2\n1\t3\n2\t3\n===============\n"
        "---------------\nends\n===============\n2\n===============\n"
        "path\t3\n"
    )
    assert not (place / "-").exists()


def test_run_an_untyped_program(place: Path) -> None:
    (place / "u.dl").write_text(UNTYPED)
    (place / "facts/edge.facts").write_text("a\t1\nb\t2\n")
    done = tidelog(place, "run", "u.dl", "-F", "facts", "-D", "out", "--engine", "substitution")
    assert done.returncode == 1
    assert "TL02" in done.stderr  # path joins a string with a number
    (place / "facts/edge.facts").write_text("a\tb\nb\tc\n")
    done = tidelog(place, "run", "u.dl", "-F", "facts", "-D", "out", "-q", "--engine", "substitution")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert files(place / "out") == {"path.csv": "a\tb\na\tc\nb\tc\n"}


def test_run_on_a_terminal_shows_progress_and_a_table(place: Path) -> None:
    mine, theirs = pty.openpty()
    done = subprocess.Popen(
        command("run", "p.dl", "-F", "facts", "-D", "out", "--engine", "substitution"),
        cwd=place,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(mine, 4096)
        except OSError:  # how Linux says that the other end is closed
            break
        if not piece:
            break
        shown += piece
    os.close(mine)
    assert done.wait(60) == 0
    text = shown.decode()
    assert "stratum" in text and "outputs: path 3, ends 1" in text and "total" in text


def test_bad_facts(place: Path) -> None:
    (place / "facts/edge.facts").write_text("1\t2\n2\tx\n")
    (place / "out").mkdir()
    (place / "out/path.csv").write_text("old\n")
    done = tidelog(place, "run", "p.dl", "-F", "facts", "-D", "out", "--engine", "local")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "error[TL0501]: cannot read the facts of edge: 1 malformed row\n"
        "  --> facts/edge.facts:2: column 2 (y): 'x' is not an s64\n"
    )
    assert files(place / "out") == {"path.csv": "old\n"}


def test_missing_facts(place: Path) -> None:
    done = tidelog(place, "run", "p.dl", "-F", "nowhere")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "error[TL0502]: no facts for edge\n"
        "  = note: for edge looked for nowhere/edge.facts, nowhere/edge.csv, nowhere/edge.parquet, "
        "nowhere/edge.json, nowhere/edge.orc\n"
        "  = note: nowhere is not a directory\n"
        "  = hint: an empty file stands for no facts; -F says in which directory facts are\n"
    )


def test_a_failing_rule(place: Path) -> None:
    (place / "f.dl").write_text("q(10 / x) :- p(x).\np(0).\n")
    done = tidelog(place, "run", "f.dl", "-D", "out", "--engine", "substitution")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error[TL0401]: ")
    assert "Traceback" not in done.stderr
    assert not (place / "out").exists()


def test_outputs_that_cannot_be_written_are_known_before_the_work(place: Path) -> None:
    (place / "file").write_text("")
    done = tidelog(place, "run", "p.dl", "-F", "nowhere", "-D", "file")
    assert (done.returncode, done.stderr) == (
        1,
        "error[TL0503]: cannot write path: file is not a directory\n",
    )


def test_ambiguous_output_is_said(place: Path) -> None:
    (place / "s.dl").write_text('p(x) :- q(x).\nq("a\\tb").\n')
    done = tidelog(place, "run", "s.dl", "-D", "out", "--engine", "substitution")
    assert done.returncode == 0
    assert done.stderr.startswith("warning: column c0 of p holds tabs or line ends, written as they are;")


def test_ambiguous_output_names_the_delimiter(place: Path) -> None:
    (place / "s.dl").write_text('.decl q(x: symbol)\n.output q(delimiter="|")\nq("a|b").\n')
    done = tidelog(place, "run", "s.dl", "-D", "out", "--engine", "substitution", "-q")
    assert (done.returncode, done.stderr) == (
        0,
        "warning: column x of q holds the delimiter '|' or line ends, written as they are; "
        "rfc4180=true would quote them\n",
    )


@pytest.mark.parametrize(
    "args",
    [["run", "p.dl", "-F", "facts", "-D-", "-q", "--engine", "local"], ["check", "p.dl"], ["plan", "p.dl"]],
)
def test_a_full_standard_output(place: Path, args: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command(*args), cwd=place, stdout=full, stderr=subprocess.PIPE, timeout=120)
    assert (done.returncode, done.stderr.decode()) == (
        1,
        "error[TL0503]: cannot write to the standard output\n  = note: No space left on device\n",
    )


# --- check and plan ---------------------------------------------------------------------


def test_check(place: Path) -> None:
    done = tidelog(place, "check", "p.dl")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"p\.dl: 3 relations, \d+ rules, 0 facts, \d+ strata, no problems\n", done.stdout)


def test_check_reports_everything(place: Path) -> None:
    (place / "w.dl").write_text(".decl p(x: number)\np(x) :- q(x).\np(1, 2).\n")
    done = tidelog(place, "check", "w.dl")
    assert (done.returncode, done.stdout) == (1, "")
    assert len(re.findall(r"^error\[TL\d{4}\]: ", done.stderr, re.MULTILINE)) == 2


@pytest.mark.parametrize("name", ["check", "plan", "run"])
def test_no_such_program(place: Path, name: str) -> None:
    done = tidelog(place, name, "none.dl")
    assert (done.returncode, done.stdout) == (1, "")
    assert "none.dl" in done.stderr and "Traceback" not in done.stderr


def test_plan(place: Path) -> None:
    done = tidelog(place, "plan", "p.dl")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == "stratum 1: path"
    assert "path ← π[x, z](path.delta(x, y) ⋈ edge(y, z))" in done.stdout


def test_plan_with_the_sizes_of_facts(place: Path) -> None:
    (place / "j.dl").write_text("j(x, z) :- large(x, y), small(y, z).\n")
    (place / "facts/large.facts").write_text("".join(f"{i}\t{i % 10}\n" for i in range(1000)))
    (place / "facts/small.facts").write_text("1\ta\n")
    done = tidelog(place, "plan", "j.dl", "-F", "facts")
    assert (done.returncode, done.stderr) == (0, "")
    assert "j ← π[x, z](small(y, z) ⋈ large(x, y))" in done.stdout


# --- the command itself --------------------------------------------------------------------


def test_version(place: Path) -> None:
    done = tidelog(place, "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, "tidelog 0.1.0\n", "")


def test_help(place: Path) -> None:
    done = tidelog(place, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith("Usage: tidelog [OPTIONS] COMMAND [ARGS]...\n")
    assert all(name in done.stdout for name in ("run", "check", "plan"))


def test_help_loads_nothing_heavy(place: Path) -> None:
    code = (
        "import sys; from tidelog.cli.main import app\n"
        "try: app(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'pyarrow', 'numpy', 'numba', 'pandas', 'rich', 'lark', 'pyspark'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_run_does_not_load_pandas_or_rich(place: Path) -> None:
    code = (
        "import sys; from tidelog.cli.main import app\n"
        "try: app(['run', 'p.dl', '-F', 'facts', '-D', 'out', '--engine', 'local'])\n"
        "except SystemExit: pass\n"
        "heavy = {'pandas', 'rich', 'pyspark'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=place, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "args",
    [
        ["run"],
        ["run", "p.dl", "--engine", "duckdb"],
        ["run", "p.dl", "-j", "0"],
        ["run", "p.dl", "--conf", "spark.ui.enabled"],
        ["run", "p.dl", "--master", "local[1]", "--remote", "local[1]"],
        ["run", "p.dl", "--master", "local[1]", "--engine", "local"],
        ["fly"],
        ["check", "-x"],
    ],
)
def test_wrong_usage(place: Path, args: list[str]) -> None:
    done = tidelog(place, *args)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: tidelog")


def test_our_own_bug(place: Path) -> None:
    code = "from tidelog.cli.guard import guarded; guarded(lambda: 1 // 0)"

    def run(debug: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "TIDELOG_DEBUG": debug}
        return subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=60
        )

    done = run("")
    assert (done.returncode, done.stderr) == (
        70,
        "error: ZeroDivisionError: integer division or modulo by zero\n"
        "This is a bug in Tidelog, not in your program: please report it with the program that caused it.\n"
        "Set TIDELOG_DEBUG=1 to see where it happened.\n",
    )
    done = run("1")
    assert done.returncode == 70
    assert "Traceback" in done.stderr


def waiting(place: Path, *args: str) -> tuple[subprocess.Popen[bytes], int]:
    """A run that waits for the facts of edge, and where to write them."""
    os.remove(place / "facts/edge.facts")
    os.mkfifo(place / "facts/edge.facts")
    process = subprocess.Popen(
        command("run", "p.dl", "-F", "facts", "--engine", "substitution", *args),
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while process.poll() is None:
        try:
            return process, os.open(place / "facts/edge.facts", os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody reads yet
            time.sleep(0.01)
    raise AssertionError(process.communicate())


def test_interrupted(place: Path) -> None:
    process, facts = waiting(place, "-D", "out")
    for _ in range(100):  # one that comes just before a read begins does not end the read
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.2)
            break
    assert process.returncode == 130
    os.close(facts)
    assert process.communicate() == (b"", b"")
    assert not (place / "out").exists()


def test_nobody_reads_on(place: Path) -> None:
    process, facts = waiting(place, "-D-")
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    os.write(facts, b"1\t2\n")
    os.close(facts)
    assert process.wait(60) == 141
    assert process.stderr.read() == b""
    process.stderr.close()
