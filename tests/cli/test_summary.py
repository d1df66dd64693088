"""The closing summary, of programs with few and with many strata."""

from __future__ import annotations

from tidelog.cli.summary import outputs_line, strata_rows
from tidelog.session.report import Report, StratumLine


def report(count: int) -> Report:
    """Odd strata are slow, even ones fast."""
    return Report(
        tuple(StratumLine(n, (f"r{n}",), 1, 10, 10, 2.0 if n % 2 else 0.25) for n in range(1, count + 1))
    )


def test_up_to_twenty_strata_are_all_shown() -> None:
    rows, rest = strata_rows(report(20))
    assert [row[0] for row in rows] == [str(n) for n in range(1, 21)]
    assert rest == ""


def test_of_more_the_fifteen_slowest_are_shown_in_order() -> None:
    rows, rest = strata_rows(report(26))
    assert [row[0] for row in rows] == ["1", "2", "3", "4", "5", *map(str, range(7, 27, 2))]
    assert rest == "and 11 faster strata: 110 tuples, 2.750 s"


def test_outputs() -> None:
    assert outputs_line([("a", 1000), ("b", 2)]) == "outputs: a 1,000, b 2"
    line = outputs_line([(f"r{n}", 100) for n in range(40)])
    assert line.startswith("outputs: r0 100, r1 100, ")
    assert line.endswith(", r14 100, and 25 more with 2,500 tuples")
