"""Files of facts, read from real files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.io import text
from tidelog.io.facts import find_facts, read_facts
from tidelog.io.options import Format
from tidelog.program.arrow import arrow_schema
from tidelog.program.model import Column, Relation
from tidelog.program.types import UNKNOWN, parse_type
from tidelog.syntax.errors import DataError


def relation(types: str, **options: str) -> Relation:
    found = [UNKNOWN if t == "?" else parse_type(t) for t in types.split()]
    columns = tuple(Column(f"x{i}", t) for i, t in enumerate(found) if t is not None)
    return Relation("r", columns, is_input=True, input_options=tuple(options.items()))


def rows(directory: Path, types: str, **options: str) -> list[tuple[object, ...]]:
    r = relation(types, **options)
    facts = read_facts(r, find_facts([r], directory)["r"])
    assert facts.table.schema == arrow_schema(Relation("r", facts.columns))
    return list(zip(*(column.to_pylist() for column in facts.table.columns), strict=True))


def error(directory: Path, types: str, **options: str) -> str:
    with pytest.raises(DataError) as caught:
        rows(directory, types, **options)
    return str(caught.value).replace(f"{directory}/", "")


@pytest.mark.parametrize(
    ("content", "types", "expected"),
    [
        (b"1\ta\n2\tb\n", "s64 string", [(1, "a"), (2, "b")]),
        (b"1\ta", "s64 string", [(1, "a")]),
        (b"1\ta\r\n2\tb\r\n", "s64 string", [(1, "a"), (2, "b")]),
        (b"1\ta\n\n", "s64 string", [(1, "a")]),
        (b"1\ta\r\n\r\n\n", "s64 string", [(1, "a")]),
        (b"", "s64 string", []),
        (b"\n", "s64 string", []),
        (b"\xef\xbb\xbf1\ta\n", "s64 string", [(1, "a")]),
        # nothing is null, nothing is quoted
        (b'NA\t\nnull\t"q"\n"\tNaN\n', "string string", [("NA", ""), ("null", '"q"'), ('"', "NaN")]),
        (b"\t\n", "string string", [("", "")]),
        # of one string column every line is a row
        (b"a\n\nb\n", "string", [("a",), ("",), ("b",)]),
        (b"a\n\n", "string", [("a",), ("",)]),
        (b"\n", "string", [("",)]),
        # what Arrow's reader alone gets wrong or refuses
        (b"a\rb\tc\n", "string string", [("a\rb", "c")]),
        (b"+5\n0xff\n-3\n 7 \n", "s64", [(5,), (255,), (-3,), (7,)]),
        (b"inf\n-1.5\n", "double", [(float("inf"),), (-1.5,)]),
        (b"true\n0\n", "bool", [(True,), (False,)]),
        (b"+007\n-0\n12345678901234567890123\n", "bigint", [("7",), ("0",), ("12345678901234567890123",)]),
        (
            b"340282366920938463463374607431768211455\n",
            "u128",
            [("340282366920938463463374607431768211455",)],
        ),
        (b"-128\t255\t4095\n", "s8 u8 bit<12>", [(-128, 255, 4095)]),
        (b"a\x00b\tc\n", "string string", [("a\0b", "c")]),
    ],
)
def test_facts(tmp_path: Path, content: bytes, types: str, expected: list[object]) -> None:
    (tmp_path / "r.facts").write_bytes(content)
    assert rows(tmp_path, types) == expected


@pytest.mark.parametrize(("content", "expected"), [(b"()\n", [(True,)]), (b"()\n()\n", [(True,)]), (b"", [])])
def test_no_columns(tmp_path: Path, content: bytes, expected: list[object]) -> None:
    (tmp_path / "r.facts").write_bytes(content)
    assert rows(tmp_path, "") == expected


def test_malformed_rows_are_all_named(tmp_path: Path) -> None:
    content = b"1\t2\n\nx\t3\n4\n5\t99999999999999999999\n6\t\xff\n7\t8\t9\n10\t\n11\t12\n\n"
    (tmp_path / "r.facts").write_bytes(content)
    assert error(tmp_path, "s64 s64") == (
        "error[TL0501]: cannot read the facts of r: 7 malformed rows\n"
        "  --> r.facts:2: a blank line\n"
        "  --> r.facts:3: column 1 (x0): 'x' is not an s64\n"
        "  --> r.facts:4: 1 column instead of 2 (x0: s64, x1: s64)\n"
        "  --> r.facts:5: column 2 (x1): '99999999999999999999' is outside s64 "
        "(-9223372036854775808 to 9223372036854775807)\n"
        "  --> r.facts:6: column 2 (x1): '\\udcff' is not an s64\n"
        "  --> r.facts:7: 3 columns instead of 2 (x0: s64, x1: s64)\n"
        "  --> r.facts:8: column 2 (x1): '' is not an s64"
    )


def test_ten_malformed_rows_are_enough(tmp_path: Path) -> None:
    (tmp_path / "r.facts").write_text("1\n" * 70_000 + "x\n" * 70_000)
    message = error(tmp_path, "s64").splitlines()
    assert message[0] == "error[TL0501]: cannot read the facts of r: at least 10 malformed rows"
    assert message[1] == "  --> r.facts:70001: column 1 (x0): 'x' is not an s64"
    assert message[10] == "  --> r.facts:70010: column 1 (x0): 'x' is not an s64"
    assert message[11:] == ["  = note: what follows was not looked at: there may be more"]


def test_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "r.facts").write_bytes(b"a\tb\nc\t\xff\xfe\n")
    assert error(tmp_path, "string string") == (
        "error[TL0501]: cannot read the facts of r: 1 malformed row\n"
        "  --> r.facts:2: column 2 (x1): '\\udcff\\udcfe' is not valid UTF-8 text"
    )


def test_large_hexadecimal_does_not_wrap_around(tmp_path: Path) -> None:
    (tmp_path / "r.facts").write_bytes(b"0xff\n")
    assert error(tmp_path, "s8").endswith("column 1 (x0): '0xff' is outside s8 (-128 to 127)")


def test_large_float_does_not_become_infinite(tmp_path: Path) -> None:
    (tmp_path / "r.facts").write_bytes(b"1e39\n")
    assert error(tmp_path, "float").endswith("column 1 (x0): '1e39' is too large for a float")
    assert rows(tmp_path, "double") == [(1e39,)]


def test_long_value_is_cut_in_the_message(tmp_path: Path) -> None:
    (tmp_path / "r.facts").write_text("y" * 1000)
    assert error(tmp_path, "s64").endswith(f"column 1 (x0): '{'y' * 56}... is not an s64")


def test_a_line_longer_than_a_block(tmp_path: Path) -> None:
    long = "z" * 6_000_000
    (tmp_path / "r.facts").write_text(f"1\t{long}\n2\tb\n")
    assert rows(tmp_path, "s64 string") == [(1, long), (2, "b")]


# --- options and other formats --------------------------------------------------


def test_csv_is_quoted_and_may_have_a_header(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_bytes(b'x0,x1\n1,"a,""b"\n2,"c\nd"\n3,\n')
    assert rows(tmp_path, "s64 string") == [(1, 'a,"b'), (2, "c\nd"), (3, "")]
    (tmp_path / "r.csv").write_bytes(b"1,a\n")
    assert rows(tmp_path, "s64 string") == [(1, "a")]


def test_csv_lines_are_counted_with_header_and_line_ends_in_fields(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_bytes(b'x0,x1\n1,"c\nd"\ny,z\n5,"u')
    assert error(tmp_path, "s64 string") == (
        "error[TL0501]: cannot read the facts of r: 2 malformed rows\n"
        "  --> r.csv:4: column 1 (x0): 'y' is not an s64\n"
        "  --> r.csv:5: not well quoted (unexpected end of data)"
    )


def test_a_field_of_csv_longer_than_pythons_limit(tmp_path: Path) -> None:
    long = "z" * 200_000
    (tmp_path / "r.csv").write_text(f'+1,"{long}"\n')  # the + sends it to the exact path
    assert rows(tmp_path, "s64 string") == [(1, long)]


def test_wrong_delimiter_is_guessed(tmp_path: Path) -> None:
    (tmp_path / "r.facts").write_bytes(b"1,a\n")
    assert error(tmp_path, "s64 string").splitlines()[-1] == (
        "  = hint: its fields seem to be separated by commas; R.facts is read with tabs, R.csv with commas, "
        "unless .input R(delimiter=...) says otherwise"
    )


@pytest.mark.parametrize("content", [b"1\ta\n", b"1\ta,b,c\n", b"x0\tx1\n1\ta\n"])
def test_an_output_read_again_is_recognised(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "r.csv").write_bytes(content)
    assert error(tmp_path, "s64 string").splitlines()[-1] == (
        "  = hint: it looks tab-separated, as tidelog run writes r.csv: rename it to r.facts"
    )


def test_tabs_within_fields_of_csv_give_no_hint(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_bytes(b"x,a\tb\n")
    assert "hint" not in error(tmp_path, "s64 string")


@pytest.mark.parametrize("line", ['1,"x"z,2', '1,""z,2', '1,"x" ,2', '1,"x""y"z,2', '1,"a\nb"z,2'])
def test_text_after_a_closing_quote(tmp_path: Path, line: str) -> None:
    (tmp_path / "r.csv").write_text(f'0,"a,""b""",1\n{line}\n')
    assert error(tmp_path, "s64 string s64") == (
        "error[TL0501]: cannot read the facts of r: 1 malformed row\n"
        "  --> r.csv:2: not well quoted (',' expected after '\"')"
    )


def test_well_quoted(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_bytes(b'"1","","2"\r\n3,"a\r\n""b"",",4\n5,x"y,"6"')
    assert rows(tmp_path, "s64 string s64") == [(1, "", 2), (3, 'a\r\n"b",', 4), (5, 'x"y', 6)]


@pytest.mark.parametrize(
    ("content", "options"),
    [
        (b"1,2\n", {"delimiter": ","}),
        (b"1||2\n", {"delimiter": "||"}),
        (b"a,b\n1,2\n", {"delimiter": ",", "headers": "true"}),
        (b'"1","2"\n', {"delimiter": ",", "rfc4180": "true"}),
        (b"1\t2\n", {"delimiter": "\\t", "IO": "file", "headers": "false"}),
    ],
)
def test_options(tmp_path: Path, content: bytes, options: dict[str, str]) -> None:
    (tmp_path / "r.facts").write_bytes(content)
    assert rows(tmp_path, "s64 s64", **options) == [(1, 2)]


def test_a_path_tells_its_format_by_its_ending(tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_bytes(b"x0,x1\n1,2\n")
    assert rows(tmp_path, "s64 s64", path="other.csv") == [(1, 2)]
    (tmp_path / "other.json").write_bytes(b'{"x1": 2, "x0": 1}\n')
    assert rows(tmp_path, "s64 s64", path="other.json") == [(1, 2)]
    (tmp_path / "other").write_bytes(b"1,2\n")
    assert rows(tmp_path, "s64 s64", path="other", format="csv") == [(1, 2)]


def test_a_directory_of_part_files(tmp_path: Path) -> None:
    (tmp_path / "r.csv").mkdir()
    (tmp_path / "r.csv/part-0.csv").write_bytes(b"x0,x1\n1,2\n")
    (tmp_path / "r.csv/part-1.csv").write_bytes(b"3,4\n")
    (tmp_path / "r.csv/_SUCCESS").write_bytes(b"")
    assert rows(tmp_path, "s64 s64") == [(1, 2), (3, 4)]
    (tmp_path / "r.csv/part-1.csv").write_bytes(b"3,x\n")
    assert error(tmp_path, "s64 s64") == (
        "error[TL0501]: cannot read the facts of r: 1 malformed row\n"
        "  --> r.csv/part-1.csv:1: column 2 (x1): 'x' is not an s64"
    )


def test_filename_is_tab_separated_whatever_it_is_called(tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_bytes(b"1\t2\n")
    assert rows(tmp_path, "s64 s64", filename="other.csv") == [(1, 2)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"delim": ","},
            "error[TL0507]: .input r: there is no option delim\n"
            "  = note: options are IO, filename, delimiter, headers, rfc4180, format, path, table",
        ),
        ({"IO": "sqlite"}, "error[TL0507]: .input r: IO=sqlite is not supported\n  = note: IO is file"),
        ({"headers": "yes"}, "error[TL0507]: .input r: headers=yes is neither true nor false"),
        ({"delimiter": ""}, "error[TL0507]: .input r: the delimiter is empty or the end of a line"),
        (
            {"filename": "a", "path": "b"},
            "error[TL0507]: .input r: filename and path are two places; give one of them",
        ),
        (
            {"table": "t", "format": "orc"},
            "error[TL0507]: .input r: a table has a format already; leave format out",
        ),
        (
            {"format": "orc", "headers": "true"},
            "error[TL0507]: .input r: headers is for text, and this is orc",
        ),
        (
            {"table": "t"},
            "error[TL0507]: cannot read the facts of r: t is a table of Spark's catalog\n"
            "  = hint: run it on Spark: --engine spark",
        ),
        (
            {"path": "s3a://b/r.csv"},
            "error[TL0507]: cannot read the facts of r: s3a://b/r.csv is on a file system that Spark knows\n"
            "  = hint: run it on Spark: --engine spark",
        ),
    ],
)
def test_wrong_options(tmp_path: Path, options: dict[str, str], message: str) -> None:
    (tmp_path / "r.facts").write_bytes(b"")
    assert error(tmp_path, "s64 s64", **options) == message


def test_facts_before_csv_before_parquet(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x0": [3]}), tmp_path / "r.parquet")
    assert rows(tmp_path, "s64") == [(3,)]
    (tmp_path / "r.csv").write_bytes(b"2\n")
    assert rows(tmp_path, "s64") == [(2,)]
    (tmp_path / "r.facts").write_bytes(b"1\n")
    assert rows(tmp_path, "s64") == [(1,)]


def test_missing_files_are_named_together(tmp_path: Path) -> None:
    one, two = relation("s64"), Relation("s", (), input_options=(("filename", "t.txt"),))
    with pytest.raises(DataError) as caught:
        find_facts([one, two], tmp_path / "none")
    assert str(caught.value).replace(str(tmp_path), "DIR") == (
        "error[TL0502]: no facts for r, s\n"
        "  = note: for r looked for DIR/none/r.facts, DIR/none/r.csv, DIR/none/r.parquet, "
        "DIR/none/r.json, DIR/none/r.orc\n"
        "  = note: for s looked for DIR/none/t.txt\n"
        "  = note: DIR/none is not a directory\n"
        "  = hint: an empty file stands for no facts; -F says in which directory facts are"
    )


def test_a_directory_or_a_dangling_link_is_named(tmp_path: Path) -> None:
    (tmp_path / "r.facts").symlink_to("gone")
    heading = "error[TL0503]: cannot read the facts of r in r.facts\n  = note: "
    assert error(tmp_path, "s64") == heading + "it is a link to gone, which is not there"
    (tmp_path / "r.facts").unlink()
    (tmp_path / "r.facts").mkdir()
    assert error(tmp_path, "s64") == heading + "it is a directory without a file in it"
    (tmp_path / "r.csv").write_text("1\n")
    assert rows(tmp_path, "s64") == [(1,)]


def test_parquet_by_name_and_by_position(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x1": ["a"], "x0": pa.array([1], pa.int8())}), tmp_path / "r.parquet")
    assert rows(tmp_path, "s64 string") == [(1, "a")]
    pq.write_table(pa.table({"p": [1], "q": pa.array(["a"]).dictionary_encode()}), tmp_path / "r.parquet")
    assert rows(tmp_path, "s64 string") == [(1, "a")]


def test_wrong_parquet(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x0": [1, 300, None]}), tmp_path / "r.parquet")
    assert error(tmp_path, "u8") == (
        "error[TL0501]: cannot read the facts of r in r.parquet: 2 malformed rows\n"
        "  --> r.parquet, row 2: column 1 (x0): 300 is outside u8 (0 to 255)\n"
        "  --> r.parquet, row 3: column 1 (x0): None is not a u8"
    )
    assert error(tmp_path, "u8 u8") == (
        "error[TL0501]: cannot read the facts of r in r.parquet: 1 column instead of 2 (x0: u8, x1: u8)\n"
        "  = note: the columns given are x0"
    )
    (tmp_path / "r.parquet").write_bytes(b"no")
    assert error(tmp_path, "u8").startswith(
        "error[TL0503]: cannot read the facts of r in r.parquet\n  = note: "
    )


# --- inference -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "types", "expected"),
    [
        (b"1\t1.5\tx\n-2\t+3\t4\n", ["s64", "double", "string"], [(1, 1.5, "x"), (-2, 3.0, "4")]),
        (b"1\t99999999999999999999\n2\t+1\n", ["s64", "bigint"], [(1, "99999999999999999999"), (2, "1")]),
        (b"nan\tinf\n", ["string", "string"], [("nan", "inf")]),
        (b"0x1\t 1\n", ["string", "string"], [("0x1", " 1")]),
        (b"true\t\n", ["string", "string"], [("true", "")]),
        (b"", ["unknown", "unknown"], []),
        (b"1\n2\n\n", ["s64"], [(1,), (2,)]),
    ],
)
def test_types_from_the_whole_file(
    tmp_path: Path, content: bytes, types: list[str], expected: list[object]
) -> None:
    (tmp_path / "r.facts").write_bytes(content)
    r = relation("? " * len(types))
    facts = read_facts(r, find_facts([r], tmp_path)["r"])
    assert [str(column.type) for column in facts.columns] == types
    assert rows(tmp_path, "? " * len(types)) == expected


# --- the two paths agree -----------------------------------------------------------

NUMBERS = [
    "1",
    "-1",
    "0",
    "+5",
    "007",
    "-0",
    "255",
    "256",
    "0x1f",
    "0xffffffffffffffff",
    "9" * 20,
    "1.5",
    "1e400",
]
WORDS = ["nan", "inf", "true", "NA", "x", "é", "", " 2", '"q"', "\r", "a\rb"]
FIELDS = st.sampled_from(NUMBERS + WORDS)
TYPES = st.sampled_from(
    ["s64", "u8", "bit<12>", "bool", "double", "float", "bigint", "s128", "u128", "string"]
)


@given(st.data())
def test_the_fast_path_takes_only_what_the_exact_one_takes(data: st.DataObject) -> None:
    types = data.draw(st.lists(TYPES, min_size=1, max_size=3))
    lines = data.draw(st.lists(st.lists(FIELDS, min_size=len(types), max_size=len(types)), max_size=4))
    content = "".join("\t".join(line) + "\n" for line in lines).encode()
    columns, format = relation(" ".join(types)).columns, Format()
    body = pa.py_buffer(content)
    fast = text._read_fast(content, body, columns, format) if content else None
    if fast is not None:
        exact = text._read_exact(Path("r.facts"), "r", body, columns, format, 0)
        assert repr(fast.to_pydict()) == repr(exact.to_pydict())


@pytest.mark.parametrize("type", ["bigint", "?"])
def test_an_integer_longer_than_a_bigint(tmp_path: Path, type: str) -> None:
    (tmp_path / "r.facts").write_text("1\n" + "9" * 5000 + "\n" + "9" * 3913 + "\n")
    assert error(tmp_path, type) == (
        "error[TL0501]: cannot read the facts of r: 1 malformed row\n"
        f"  --> r.facts:2: column 1 (x0): '{'9' * 56}... is outside bigint (13,000 bits)"
    )
