"""YAML as values that know where they stand: unknown keys, wrong values, and near misses of names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import yaml

from tidelog.syntax.errors import Diagnostic, Label
from tidelog.syntax.source import Source, Span

_TAG = "tag:yaml.org,2002:"


@dataclass(frozen=True)
class Text:
    """A word or number, as it is written; `true` and `false` however they are written."""

    value: str
    span: Span


@dataclass(frozen=True)
class Entry:
    """A key with its value, which is looked into by those who know what it should be."""

    key: Text
    node: yaml.Node


class Document:
    """A YAML file, and the problems found in it so far."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.problems: list[Diagnostic] = []

    def root(self) -> yaml.Node | None:
        """The whole document; None if it cannot be read, which is a problem."""
        try:
            node: yaml.Node | None = yaml.compose(self.source.text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            before = (Label(self._at(error.context_mark), str(error.context)),) if error.context_mark else ()
            message, span = f"this is no YAML: {error.problem}", self._at(error.problem_mark)
            self.problems.append(Diagnostic("TL0901", message, span, others=before))
            return None
        except yaml.YAMLError as error:
            self.add("TL0901", f"this is no YAML: {error}", Span(self.source, 0, 0))
            return None
        if node is None:
            self.add("TL0901", "the file is empty", Span(self.source, 0, 0))
        return node

    def _at(self, mark: yaml.Mark | None) -> Span:
        at = min(mark.index if mark else 0, len(self.source.text))
        return Span(self.source, at, at + 1)

    def add(
        self,
        code: str,
        message: str,
        span: Span | None,
        label: str = "",
        notes: Sequence[str] = (),
        hint: str | None = None,
    ) -> None:
        """Note a problem."""
        self.problems.append(Diagnostic(code, message, span, label, notes=tuple(notes), hint=hint))

    def span(self, node: yaml.Node) -> Span:
        """Where a node is; of one that goes over several lines, its first."""
        start, end = node.start_mark.index, node.end_mark.index
        line_end = self.source.text.find("\n", start)
        return Span(self.source, start, min(end, line_end if line_end >= 0 else end))

    # --- values ------------------------------------------------------------------

    def entries(self, node: yaml.Node, what: str) -> Iterator[Entry]:
        """The keys and values of a mapping, each key once."""
        if _is_nothing(node):
            return
        if not isinstance(node, yaml.MappingNode):
            self.wrong(node, f"{what} should be a mapping of names to values")
            return
        seen: dict[str, Span] = {}
        for key_node, value in node.value:
            key = self.text(key_node, "a key")
            if key is None:
                continue
            if key.value in seen:
                self.add("TL0905", f"{key.value} is given twice in {what}", key.span)
                continue
            seen[key.value] = key.span
            yield Entry(key, value)

    def fields(self, node: yaml.Node, what: str, known: Sequence[str]) -> dict[str, Entry]:
        """The entries of a mapping whose keys are known."""
        found = {}
        for entry in self.entries(node, what):
            if entry.key.value in known:
                found[entry.key.value] = entry
            else:
                self.unknown(entry.key, f"{what} has no key {entry.key.value}", known)
        return found

    def unknown(self, key: Text, message: str, known: Iterable[str]) -> None:
        """Note a key that is none of those known."""
        names = list(known)
        self.add(
            "TL0902", message, key.span, notes=[f"there are {', '.join(names)}"], hint=near(key.value, names)
        )

    def text(self, node: yaml.Node, what: str) -> Text | None:
        """A word or number; None, which is a problem, for anything else."""
        if not isinstance(node, yaml.ScalarNode) or _is_nothing(node) or not node.value:
            self.wrong(node, f"{what} should be text")
            return None
        value = str(node.value)
        if node.tag == f"{_TAG}bool":
            value = "true" if value.lower() in ("true", "yes", "on") else "false"
        return Text(value, self.span(node))

    def choice(self, node: yaml.Node, what: str, known: Sequence[str]) -> Text | None:
        """One of some words."""
        text = self.text(node, what)
        if text is not None and text.value not in known:
            self.wrong(node, f"{what} is one of {', '.join(known)}", near(text.value, known))
            return None
        return text

    def texts(self, node: yaml.Node, what: str) -> list[tuple[Text, Text]]:
        """A mapping of names to words or numbers."""
        found = []
        for entry in self.entries(node, what):
            value = self.text(entry.node, f"{entry.key.value} of {what}")
            if value is not None:
                found.append((entry.key, value))
        return found

    def wrong(self, node: yaml.Node, message: str, hint: str | None = None) -> None:
        """Note a value that is not what it should be."""
        self.add("TL0904", message, self.span(node), _kind(node), hint=hint)


def near(word: str, known: Iterable[str]) -> str | None:
    """Names that a word may have been meant for."""
    found = get_close_matches(word, list(known), n=3)
    return f"did you mean {' or '.join(found)}?" if found else None


def values(texts: Iterable[tuple[Text, Text]]) -> dict[str, str]:
    """Texts without where they stand."""
    return {key.value: value.value for key, value in texts}


def in_order(problems: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Problems file by file, in each from its beginning; those that are nowhere come first."""

    def place(problem: Diagnostic) -> tuple[str, int]:
        return ("", 0) if problem.span is None else (problem.span.source.name, problem.span.start)

    return sorted(problems, key=place)


def _is_nothing(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == f"{_TAG}null"


def _kind(node: yaml.Node) -> str:
    if _is_nothing(node):
        return "nothing is here"
    if isinstance(node, yaml.MappingNode):
        return "this is a mapping"
    return "this is a list" if isinstance(node, yaml.SequenceNode) else ""
