"""JSON, an object on each line, value by value: where Arrow's reader does not tell what is written.

Arrow takes an integer of more than 63 bits for a float, and text that looks like a time for one. A float
that is no number is written as text, as Spark does it, and read in both ways: `"NaN"` and `NaN`.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

from tidelog.io.places import parts, unreadable
from tidelog.program.model import Relation

if TYPE_CHECKING:
    import pyarrow as pa

_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def objects_of(relation: Relation, path: Path) -> list[object]:
    """The objects of all files at a path. Raises DataError."""
    floats = [c.name for c in relation.columns if c.type.kind == "float"]
    found: list[object] = []
    for file in parts(path):
        for number, line in enumerate(file.read_bytes().split(b"\n"), 1):
            try:
                if line.strip():
                    found.append(_value(json.loads(line), floats))
            except (ValueError, RecursionError) as error:
                raise unreadable(relation, f"{file}:{number}", str(error)) from error
    return found


def _value(found: object, floats: list[str]) -> object:
    if isinstance(found, dict):
        for name in floats:
            text = found.get(name)
            if isinstance(text, str):
                found[name] = _FLOATS.get(text, text)
    return found


def write_objects(table: pa.Table, path: Path) -> None:
    """Write a table as both Spark and we read it."""
    import pyarrow as pa

    floats = [field.name for field in table.schema if pa.types.is_floating(field.type)]
    with path.open("w", encoding="utf-8") as file:
        for batch in table.to_batches(max_chunksize=1 << 16):
            rows = batch.to_pylist()
            for name in floats:
                for row in rows:
                    if not math.isfinite(row[name]):
                        row[name] = json.dumps(row[name])
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
