"""Outputs: their text, and that files appear all together or not at all."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from tidelog.io.output import ambiguous_columns, print_relation
from tidelog.io.places import Place
from tidelog.io.rows import table_of_rows
from tidelog.io.writing import Sink, _publish, check_outputs, check_places, write_all, write_files
from tidelog.program.model import Column, Relation
from tidelog.program.types import parse_type
from tidelog.syntax.errors import DataError


def output(
    name: str, types: str, rows: Sequence[tuple[object, ...]], **options: str
) -> tuple[Relation, pa.Table]:
    columns = tuple(Column(f"x{i}", t) for i, t in enumerate(map(parse_type, types.split())) if t is not None)
    relation = Relation(name, columns, is_output=True, output_options=tuple(options.items()))
    return relation, table_of_rows(name, columns, rows)[0]


@pytest.mark.parametrize(
    ("types", "rows", "expected"),
    [
        ("s64 string", [(10, "b"), (2, "a"), (10, "a")], b"2\ta\n10\ta\n10\tb\n"),
        ("s64 s64", [(-5, 3), (7, -1), (-5, -3)], b"-5\t-3\n-5\t3\n7\t-1\n"),
        (
            "s64 u64",
            [(2**63 - 1, 0), (-(2**63), 2**64 - 1)],
            f"{-(2**63)}\t{2**64 - 1}\n{2**63 - 1}\t0\n".encode(),
        ),
        ("u64", [(2**64 - 1,), (2**63,), (1,)], b"1\n9223372036854775808\n18446744073709551615\n"),
        (
            "bigint",
            [(10**20,), (-(10**20),), (9,), (-9,)],
            b"-100000000000000000000\n-9\n9\n100000000000000000000\n",
        ),
        ("string", [("",), ('say "hi"',), ("é",), ("Z",)], '\nZ\nsay "hi"\né\n'.encode()),
        ("string", [("a\tb\nc",)], b"a\tb\nc\n"),
        ("bool", [(True,), (False,)], b"false\ntrue\n"),
        ("double", [(1.0,), (0.1,), (-2.5,), (1e300,), (float("nan"),)], b"-2.5\n0.1\n1\n1e+300\nnan\n"),
        ("float", [(0.1,)], b"0.1\n"),
        ("s64", [], b""),
        ("", [()], b"()\n"),
        ("", [], b""),
    ],
)
def test_text(tmp_path: Path, types: str, rows: list[tuple[object, ...]], expected: bytes) -> None:
    assert write_files([output("r", types, rows)], tmp_path) == [tmp_path / "r.csv"]
    assert (tmp_path / "r.csv").read_bytes() == expected


@pytest.mark.parametrize("type", ["float", "double"])
def test_the_order_of_floats_is_total(tmp_path: Path, type: str) -> None:
    inf, nan = float("inf"), float("nan")
    rows = [(v, n) for n in (2, 1) for v in (nan, 0.0, -1.5, inf, -0.0, -inf, 2.5, -nan)]
    expected = [f"{v}\t{n}" for v in ("-inf", "-1.5", "-0", "0", "2.5", "inf") for n in (1, 2)]
    expected += ["nan\t1", "nan\t1", "nan\t2", "nan\t2"]
    for given in (rows, rows[::-1]):
        write_files([output("r", f"{type} s64", given)], tmp_path)
        assert (tmp_path / "r.csv").read_text().replace("-nan", "nan").splitlines() == expected


def test_many_rows_are_sorted_across_batches(tmp_path: Path) -> None:
    rows = [(i * 7919 % 200_003, -i) for i in range(200_003)]
    write_files([output("r", "s64 s32", rows)], tmp_path)
    lines = (tmp_path / "r.csv").read_text().splitlines()
    assert lines == [f"{a}\t{b}" for a, b in sorted(rows)]


def test_options(tmp_path: Path) -> None:
    rows: list[tuple[object, ...]] = [(1, "a,b"), (2, 'say "hi"'), (3, "plain"), (4, "two\nlines")]
    options = {"delimiter": ",", "headers": "true", "rfc4180": "true", "filename": "sub/other.txt"}
    write_files([output("r", "s64 string", rows, **options)], tmp_path)
    assert (tmp_path / "sub/other.txt").read_text() == (
        'x0,x1\n1,"a,b"\n2,"say ""hi"""\n3,plain\n4,"two\nlines"\n'
    )


def test_terminal() -> None:
    stream = io.BytesIO()
    print_relation(*output("path", "s64 s64", [(2, 3), (1, 2)]), stream)
    assert stream.getvalue() == b"---------------\npath\n===============\n1\t2\n2\t3\n===============\n"


def test_ambiguous_text_is_noticed() -> None:
    rows: list[tuple[object, ...]] = [("a", "b\tc")]
    assert ambiguous_columns(*output("r", "string string", rows)) == ["x1"]
    assert ambiguous_columns(*output("r", "string string", rows, rfc4180="true")) == []
    assert ambiguous_columns(*output("r", "string string", rows, delimiter=",")) == []
    assert ambiguous_columns(*output("r", "", [()])) == []


def test_old_files_stay_when_one_output_fails(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("old a\n")
    good = output("a", "s64", [(1,)])
    relation, table = output("b", "s64", [(1,)])
    broken = (relation, table.rename_columns(["other"]).append_column("more", pa.array([pa.scalar([1])])))
    with pytest.raises(pa.ArrowNotImplementedError):
        write_files([good, broken], tmp_path)
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"a.csv": "old a\n"}


def test_old_files_come_back_when_a_new_one_cannot_take_its_place(tmp_path: Path) -> None:
    out, stage = tmp_path / "out", tmp_path / "stage"
    out.mkdir()
    stage.mkdir()
    (out / "a.csv").write_text("old a\n")
    (out / "c.csv").mkdir()  # in the way, and made after anybody looked
    for name in "abc":
        (stage / f"{name}.csv").write_text(f"new {name}\n")
    with pytest.raises(OSError):
        _publish([(stage / f"{name}.csv", out / f"{name}.csv") for name in "abc"])
    assert sorted(p.name for p in out.iterdir()) == ["a.csv", "c.csv"]
    assert (out / "a.csv").read_text() == "old a\n"


def test_a_directory_made_for_nothing_is_removed(tmp_path: Path) -> None:
    relation, table = output("b", "s64", [(1,)])
    broken = (relation, table.append_column("more", pa.array([pa.scalar([1])])))
    with pytest.raises(pa.ArrowNotImplementedError):
        write_files([broken], tmp_path / "x/y")
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_written_is_known_before(tmp_path: Path) -> None:
    (tmp_path / "r.csv").mkdir()
    (tmp_path / "file").write_text("")
    relation, _ = output("r", "s64", [])

    def message(*relations: Relation, directory: Path) -> str:
        with pytest.raises(DataError) as caught:
            check_outputs(relations, directory)
        return str(caught.value).replace(str(tmp_path), "DIR")

    assert message(relation, directory=tmp_path) == (
        "error[TL0503]: cannot write r: DIR/r.csv is a directory"
    )
    assert message(relation, directory=tmp_path / "file") == (
        "error[TL0503]: cannot write r: DIR/file is not a directory"
    )
    other, _ = output("s", "s64", [], filename="r.csv")
    assert message(relation, other, directory=tmp_path / "new") == (
        "error[TL0503]: r and s would both be written to DIR/new/r.csv"
    )


PART = "part-00000-4b1d0c6e-0a5c-4f0e-9a51-0d2f1f0c7a11-c000.snappy.parquet"


@pytest.mark.parametrize(
    "foreign",
    ["notes.txt", "_notes/n.txt", ".git/HEAD", ".env", "part-ners.xlsx", "part-00000-plan.odt", f"{PART}/x"],
)
def test_a_directory_with_anything_else_is_left_alone(tmp_path: Path, foreign: str) -> None:
    relation, table = output("r", "s64", [(1,)])
    for name, format, parts in (("r.csv", "facts", False), ("sink", "parquet", True), ("lines", "csv", True)):
        place = Place(format, str(tmp_path / name))
        file = tmp_path / name / foreign
        file.parent.mkdir(parents=True)
        file.write_text("mine")
        (tmp_path / name / "_SUCCESS").touch()
        expected = (
            f"error[TL0503]: cannot write r: the directory {place.path} holds {foreign.partition('/')[0]}\n"
            "  = note: a directory is replaced if it has part files in it, as Spark writes them, "
            "and nothing else\n"
            "  = hint: name another path, or move it elsewhere"
        )
        with pytest.raises(DataError) as before:
            check_places([("r", place)], by_spark=False, parts=parts)
        with pytest.raises(DataError) as after:
            write_all([Sink(relation, table, place, parts=parts)])
        assert str(before.value) == str(after.value) == expected
        assert file.read_text() == "mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["lines", "r.csv", "sink"]


def test_what_comes_into_a_directory_meanwhile_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "sink").mkdir()
    (tmp_path / "sink/.env").write_text("mine")
    (tmp_path / "stage").mkdir()
    with pytest.raises(DataError, match=r"holds \.env"):
        _publish([(tmp_path / "stage", tmp_path / "sink")])
    assert (tmp_path / "sink/.env").read_text() == "mine"


def test_part_files_are_replaced(tmp_path: Path) -> None:
    relation, table = output("r", "s64", [(1,)])
    for format in ("parquet", "csv"):
        sink = Sink(relation, table, Place(format, str(tmp_path / format)), parts=True)
        (tmp_path / format).mkdir()
        for _ in range(2):  # first an empty directory, then one that Spark might have written
            check_places([("r", sink.place)], by_spark=False, parts=True)
            write_all([sink])
            assert not (tmp_path / format / PART).exists()
            assert len(list((tmp_path / format).iterdir())) == 2
            for name in (PART, f".{PART}.crc", "._SUCCESS.crc"):
                (tmp_path / format / name).touch()
        (tmp_path / format / "_notes").mkdir()  # where nothing is removed, it does not matter
        write_all([Sink(relation, table, sink.place, "append", parts=True)])
        assert (tmp_path / format / "_notes").is_dir()
