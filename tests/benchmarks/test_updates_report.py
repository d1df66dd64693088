"""The report of the benchmark of updates: ratios, goals, and what it calls wrong."""

from __future__ import annotations

from benchmarks.live import Commit
from benchmarks.updates_report import Figures, report

START = {"p": (100, 1)}
AFTER = {"p": (90, 2)}


def figures(algorithm: str, there: float, back: float, after: dict[str, tuple[int, int]] = AFTER) -> Figures:
    """An algorithm with a bootstrap of 10 s that did one update of 10 facts."""

    def commit(seconds: float, answers: dict[str, tuple[int, int]]) -> dict[str, object]:
        return Commit(seconds, seconds, 500, 20, 10, algorithm, answers).figures()

    return Figures(
        "galen",
        algorithm,
        bootstrap=commit(10.0, START),
        commits=[
            event
            for run, share in enumerate((0.1, 1.0, 3.0))  # the middle one counts
            for event in (
                {
                    "update": "10",
                    "set": 0,
                    "way": "there",
                    "run": run,
                    "commit": commit(share * there, after),
                },
                {"update": "10", "set": 0, "way": "back", "run": run, "commit": commit(share * back, START)},
            )
        ],
    )


def with_another_set(figures: Figures, there: float, back: float) -> Figures:
    """The same, after another set of ten facts."""
    for event in figures.commits[-2:]:
        seconds = there if event["way"] == "there" else back
        figures.commits.append({**event, "set": 1, "commit": {**event["commit"], "seconds": seconds}})
    return figures


def cells(text: str, beginning: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.replace(" ", "").startswith(beginning))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_ratios_to_recompute_and_to_the_cheaper() -> None:
    found = [figures("recompute", 10.0, 8.0), figures("dred", 0.5, 0.25), figures("auto", 0.75, 0.25)]
    text, problems = report(found)
    assert problems == []
    dred = ["10", "dred", "10.00", "0.500", "0.500", "0.250", "500", "500", "10", "0.050", "0.031", ""]
    assert cells(text, "|10|dred|") == dred
    auto = ["galen", "10", "delete", "10.00", "0.500", "dred", "0.750", "1.50", "1.50", "auto"]
    assert cells(text, "|galen|10|delete|") == auto
    both = ["galen", "10", "both", "18.00", "0.750", "dred", "1.00", "1.33", "1.33", ""]
    assert cells(text, "|galen|10|both|") == both
    assert "the worst: delete 1.50 (galen, 10); re-insert 1.00 (galen, 10); both 1.33 (galen, 10);" in text
    assert "dred 5.00%, auto 7.50%; goal 1%." in text


def test_all_sets_count() -> None:
    """Over both sets together `dred` is best, although recomputing is with the second."""
    found = [
        with_another_set(figures("recompute", 4.0, 4.0), 4.0, 4.0),
        with_another_set(figures("dred", 1.0, 1.0), 6.0, 2.0),
        with_another_set(figures("auto", 1.5, 1.5), 5.0, 4.0),
    ]
    text, _ = report(found)
    both = ["galen", "10", "both", "8.00", "5.00", "dred", "6.00", "1.20", "1.50", ""]
    assert cells(text, "|galen|10|both|") == both
    assert cells(text, "|10|dred|")[3:6] == ["3.50", "1.00", "1.50"]


def test_what_was_not_done_is_not_compared() -> None:
    """The second set is done by `auto` alone."""
    found = [figures("dred", 1.0, 1.0), with_another_set(figures("auto", 1.1, 1.1), 50.0, 50.0)]
    text, _ = report(found)
    assert cells(text, "|galen|10|both|")[4:9] == ["2.00", "dred", "51.10", "1.10", "1.10"]


def test_other_answers_than_recompute_are_wrong() -> None:
    found = [figures("recompute", 10, 10), figures("fbf", 1, 1, {"p": (90, 3)}), figures("auto", 1, 1)]
    text, problems = report(found)
    assert problems == ["galen, fbf: answers after update 10 are not those of recompute"]
    assert "- WRONG: fbf: answers after update 10" in text


def test_what_was_stopped_is_said() -> None:
    stopped = figures("counting", 1, 1)
    stopped.commits = [event for event in stopped.commits if event["way"] == "there"]
    stopped.stopped = "10, back: over 600 s"
    text, problems = report([figures("recompute", 10, 10), stopped])
    assert problems == []
    assert "- counting was stopped at 10, back: over 600 s." in text
    assert cells(text, "|10|counting|")[3:6] == ["1.00", "1.00", "-"]


def test_figures_survive_a_file() -> None:
    import json

    before = figures("dred", 0.5, 0.25)
    after = Figures.of_json(json.loads(json.dumps(before.to_json())))
    assert after.of("10", "there") == before.of("10", "there")
    assert after.seconds("10", ("back",)) == 0.25
