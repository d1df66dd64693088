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
            {"update": "10", "way": "there", "commit": commit(there, after)},
            {"update": "10", "way": "back", "commit": commit(back, START)},
        ],
    )


def cells(text: str, beginning: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.replace(" ", "").startswith(beginning))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_ratios_to_recompute_and_to_the_cheaper() -> None:
    found = [figures("recompute", 10.0, 8.0), figures("dred", 0.5, 0.25), figures("auto", 0.75, 0.25)]
    text, problems = report(found)
    assert problems == []
    dred = ["10", "dred", "10.00", "0.500", "0.500", "0.250", "500", "500", "10", "0.050", "0.031", ""]
    assert cells(text, "|10|dred|") == dred
    auto = ["galen", "10", "delete", "10.00", "0.500", "dred", "0.750", "1.50", "auto"]
    assert cells(text, "|galen|10|delete|") == auto
    both = ["galen", "10", "both", "18.00", "0.750", "dred", "1.00", "1.33", ""]
    assert cells(text, "|galen|10|both|") == both
    assert "the worst: delete 1.50 (galen, 10); re-insert 1.00 (galen, 10); both 1.33 (galen, 10);" in text
    assert "dred 5.00%, auto 7.50%; goal 1%." in text


def test_other_answers_than_recompute_are_wrong() -> None:
    found = [figures("recompute", 10, 10), figures("fbf", 1, 1, {"p": (90, 3)}), figures("auto", 1, 1)]
    text, problems = report(found)
    assert problems == ["galen, fbf: answers after update 10 are not those of recompute"]
    assert "- WRONG: fbf: answers after update 10" in text


def test_what_was_stopped_is_said() -> None:
    stopped = figures("counting", 1, 1)
    stopped.commits.pop()
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
    assert after.seconds("10", "back") == 0.25
