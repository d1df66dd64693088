"""`tidelog init NAME`: a small pipeline that runs, to be changed into one's own."""

from __future__ import annotations

from pathlib import Path

from tidelog.io.errors import data_error

FILES = {
    "tidelog.yaml": """\
# `tidelog dry-run tidelog.yaml` checks it, `tidelog run tidelog.yaml` runs it.
name: {name}
program: program.dl

sources:
  flight:
    format: csv                # facts, csv, parquet, json, orc, or another that Spark knows
    path: data/flights.csv     # a file, or a directory of part files; or table: NAME
    options: {{header: true}}

sinks:
  reach:
    format: parquet
    path: out/reach
    mode: overwrite            # append, error, ignore

trigger: once
""",
    "program.dl": """\
.decl flight(origin: symbol, destination: symbol)
.input flight
.decl reach(origin: symbol, destination: symbol)
.output reach

reach(x, y) :- flight(x, y).
reach(x, z) :- reach(x, y), flight(y, z).
""",
    "data/flights.csv": "origin,destination\nOslo,Bergen\nBergen,Leeds\nLeeds,Cork\n",
}


def init_pipeline(directory: Path) -> str:
    """Make the directory; what to do next."""
    try:
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            raise data_error("TL0503", f"cannot make {directory}: there is something already")
        for name, text in FILES.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.format(name=directory.absolute().name) if name == "tidelog.yaml" else text)
    except OSError as error:
        reason = error.strerror or str(error)
        raise data_error("TL0503", f"cannot make {directory}", notes=[reason]) from error
    return "\n".join(
        [f"made {directory}: {', '.join(FILES)}", f"next: tidelog dry-run {directory / 'tidelog.yaml'}"]
    )
