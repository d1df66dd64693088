"""What a pipeline file says, and reading it.

    name: flights
    program: reach.dl
    sources:
      flight: {format: csv, path: data/flights, options: {header: true}}
    sinks:
      reach: {format: parquet, path: out/reach}
    store: state
    trigger: once
    spark: {master: "local[*]", conf: {spark.sql.shuffle.partitions: 8}}

Paths are relative to the file. A sink may be a list of sinks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tidelog.execute.spark.settings import setting_problem
from tidelog.io.options import FORMATS, TEXT, TEXT_OPTIONS, text_format, text_options
from tidelog.io.places import Place, within
from tidelog.io.writing import MODES
from tidelog.session.pipeline.document import Document, Entry, Text, in_order, near, values
from tidelog.syntax.errors import DataError, ProgramError
from tidelog.syntax.source import Source as File
from tidelog.syntax.source import Span

KEYS = ("name", "program", "sources", "sinks", "store", "trigger", "engine", "spark")
SOURCE_KEYS = ("format", "path", "table", "options", "read")
SINK_KEYS = ("format", "path", "table", "options", "mode", "write")
SPARK_KEYS = ("master", "remote", "conf")
ENGINES = ("spark", "local")
_INTERVAL = re.compile(r"[0-9]+ (millisecond|second|minute|hour|day)s?")
_SYNONYMS = {"header": "headers", "sep": "delimiter"}  # as Spark calls them


@dataclass(frozen=True)
class Source:
    """Where facts of a relation come from: rows to add or, as `changes`, rows that come and go."""

    relation: str
    place: Place
    changes: bool
    span: Span


@dataclass(frozen=True)
class Sink:
    """Where a relation goes: all of it, or as `changes` what each commit changes."""

    relation: str
    place: Place
    mode: str
    changes: bool
    span: Span


@dataclass(frozen=True)
class Pipeline:
    """A pipeline file that has been read. `interval` is how often a continuous one looks for more."""

    file: Path
    name: str
    program: Path
    program_span: Span
    sources: tuple[Source, ...]
    sinks: tuple[Sink, ...]
    store: str | None = None
    continuous: bool = False
    interval: str = ""
    trigger_span: Span | None = None
    engine: str | None = None
    master: str | None = None
    remote: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)


def read_pipeline(path: Path) -> Pipeline:
    """The pipeline of a file. Raises ProgramError with everything that is wrong with it."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise DataError(f"error[TL0901]: cannot read the pipeline {path}\n  = note: {reason}") from error
    document = Document(File(str(path), text))
    root = document.root()
    found = None if root is None else _Reading(document, path).pipeline(root)
    if document.problems or found is None:
        raise ProgramError(in_order(document.problems))
    return found


class _Reading:
    def __init__(self, document: Document, path: Path) -> None:
        self._doc, self._path = document, path

    def pipeline(self, root: yaml.Node) -> Pipeline | None:
        doc = self._doc
        if not isinstance(root, yaml.MappingNode):
            doc.wrong(root, f"a pipeline is a mapping with the keys {', '.join(KEYS)}")
            return None
        keys = doc.fields(root, "a pipeline", KEYS)
        name, program = self._text(keys, "name"), self._text(keys, "program")
        if program is None and "program" not in keys:
            doc.add("TL0903", "the pipeline has no program", Span(doc.source, 0, 1), hint="program: PATH")
        sources = [
            source for entry in self._within(keys, "sources") if (source := self._source(entry)) is not None
        ]
        sinks = [
            sink
            for entry in self._within(keys, "sinks")
            for node, span in self._one_or_more(entry)
            if (sink := self._sink(entry.key, node, span)) is not None
        ]
        continuous, interval = self._trigger(keys.get("trigger"))
        engine = doc.choice(keys["engine"].node, "engine", ENGINES) if "engine" in keys else None
        store = self._text(keys, "store")
        spark = doc.fields(keys["spark"].node, "spark", SPARK_KEYS) if "spark" in keys else {}
        master, remote = self._text(spark, "master"), self._text(spark, "remote")
        if master is not None and remote is not None:
            doc.add("TL0908", "master and remote are two places; give one of them", remote.span)
        if spark and engine is not None and engine.value != "spark":
            message = f"spark is for the engine spark, and the engine is {engine.value}"
            doc.add("TL0908", message, keys["spark"].key.span)
        conf = doc.texts(spark["conf"].node, "conf") if "conf" in spark else []
        for key, value in conf:
            if wrong := setting_problem(key.value, value.value):
                doc.add("TL0904", wrong, value.span)
        if program is None:
            return None
        return Pipeline(
            self._path,
            name.value if name else self._path.absolute().parent.name,
            self._path.parent / program.value,
            program.span,
            tuple(sources),
            tuple(sinks),
            None if store is None else within(self._path.parent, store.value),
            continuous,
            interval,
            keys["trigger"].key.span if "trigger" in keys else None,
            engine.value if engine else None,
            master.value if master else None,
            remote.value if remote else None,
            values(conf),
        )

    def _text(self, keys: Mapping[str, Entry], name: str) -> Text | None:
        return self._doc.text(keys[name].node, name) if name in keys else None

    def _within(self, keys: Mapping[str, Entry], name: str) -> list[Entry]:
        return list(self._doc.entries(keys[name].node, name)) if name in keys else []

    def _trigger(self, entry: Entry | None) -> tuple[bool, str]:
        if entry is None:
            return False, ""
        if isinstance(entry.node, yaml.MappingNode):
            if not entry.node.value:
                self._doc.wrong(entry.node, "trigger is once, continuous, or {continuous: 10 seconds}")
            keys = self._doc.fields(entry.node, "trigger", ("continuous",))
            interval = self._text(keys, "continuous")
            if interval is not None and not _INTERVAL.fullmatch(interval.value):
                message = f"{interval.value} is no interval"
                self._doc.add("TL0904", message, interval.span, hint="write it as in: 10 seconds")
            return True, "" if interval is None else interval.value
        word = self._doc.choice(entry.node, "trigger", ("once", "continuous"))
        return word is not None and word.value == "continuous", ""

    # --- places --------------------------------------------------------------------

    def _source(self, entry: Entry) -> Source | None:
        name = entry.key
        if not isinstance(entry.node, yaml.MappingNode):
            self._doc.wrong(entry.node, f"the source {name.value} should have {', '.join(SOURCE_KEYS)}")
            return None
        keys = self._doc.fields(entry.node, f"the source {name.value}", SOURCE_KEYS)
        read = self._doc.choice(keys["read"].node, "read", ("facts", "changes")) if "read" in keys else None
        place = self._place(name, keys)
        changes = read is not None and read.value == "changes"
        return None if place is None else Source(name.value, place, changes, name.span)

    def _one_or_more(self, entry: Entry) -> list[tuple[yaml.Node, Span]]:
        """A value, or the values of a list, and where they stand."""
        if isinstance(entry.node, yaml.SequenceNode):
            return [(node, self._doc.span(node)) for node in entry.node.value]
        return [(entry.node, entry.key.span)]

    def _sink(self, name: Text, node: yaml.Node, span: Span) -> Sink | None:
        doc = self._doc
        if not isinstance(node, yaml.MappingNode):
            doc.wrong(node, f"the sink {name.value} should have {', '.join(SINK_KEYS)}")
            return None
        keys = doc.fields(node, f"the sink {name.value}", SINK_KEYS)
        mode = doc.choice(keys["mode"].node, "mode", MODES) if "mode" in keys else None
        write = doc.choice(keys["write"].node, "write", ("answers", "changes")) if "write" in keys else None
        changes = write is not None and write.value == "changes"
        if changes and "mode" in keys:
            doc.add("TL0908", "changes are always added to; leave mode out", keys["mode"].key.span)
        place = self._place(Text(name.value, span), keys)
        if place is None:
            return None
        return Sink(name.value, place, mode.value if mode else "overwrite", changes, span)

    def _place(self, name: Text, keys: Mapping[str, Entry]) -> Place | None:
        doc = self._doc
        path, table, format = (self._text(keys, key) for key in ("path", "table", "format"))
        options = doc.texts(keys["options"].node, "options") if "options" in keys else []
        if "path" in keys and "table" in keys:
            doc.add("TL0908", "path and table are two places; give one of them", keys["table"].key.span)
            return None
        if "path" not in keys and "table" not in keys:
            doc.add("TL0903", f"{name.value} has neither path nor table", name.span)
            return None
        if table is not None:
            if "format" in keys:
                doc.add(
                    "TL0908", "a table has a format already", keys["format"].key.span, hint="leave it out"
                )
            return Place(table=table.value, options=values(options))
        if path is None:
            return None
        kind = format.value if format else Path(path.value).suffix.removeprefix(".")
        if format is None and kind not in FORMATS:
            words = f"one of {', '.join(FORMATS)}, or another that Spark knows"
            doc.add("TL0903", f"{name.value} has no format", name.span, hint=f"format: {words}")
            return None
        if format is not None and (hint := near(kind, FORMATS)) and kind not in FORMATS:
            doc.add("TL0904", f"there is no format {kind}", format.span, hint=hint)
            return None
        where = within(self._path.parent, path.value)
        if kind not in TEXT:
            return Place(kind, where, options=values(options))
        return self._text_place(kind, where, options)

    def _text_place(self, kind: str, path: str, options: Sequence[tuple[Text, Text]]) -> Place | None:
        chosen: dict[str, str] = {}
        spans: dict[str, Span] = {}
        for key, value in options:
            option = _SYNONYMS.get(key.value, key.value)
            if option not in TEXT_OPTIONS:
                known = (*TEXT_OPTIONS, *_SYNONYMS)
                self._doc.unknown(key, f"{kind} has no option {key.value}", known)
            elif option in chosen:
                both = " and ".join(
                    name for name in (option, *_SYNONYMS) if _SYNONYMS.get(name, name) == option
                )
                self._doc.add("TL0905", f"{both} are the same option; give one of them", key.span)
            chosen[option], spans[option] = value.value, value.span
        try:
            return Place(kind, path, text=text_format(kind, text_options("options", chosen), "names"))
        except DataError as error:
            message = str(error).partition("options: ")[2]
            wrong = next((name for name in spans if message.startswith(f"{name}=")), "delimiter")
            self._doc.add("TL0904", message, spans[wrong])
            return None
