"""The options of `.input` and `.output`, as Soufflé has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidelog.io.errors import data_error

KNOWN = ("IO", "filename", "delimiter", "headers", "rfc4180")
_ESCAPES = {"\\t": "\t", "\\n": "\n", "\\\\": "\\"}


@dataclass(frozen=True)
class Options:
    """Options that were given; None where one was not."""

    io: str = "file"
    filename: str | None = None
    delimiter: str | None = None
    headers: bool = False
    rfc4180: bool | None = None


def read_options(relation: str, direction: str, given: Sequence[tuple[str, str]]) -> Options:
    """The options of a relation. `direction` is input or output (which may go to `stdout`)."""
    values = dict(given)
    place = f".{direction} {relation}"
    for key in values:
        if key not in KNOWN:
            raise data_error(
                "TL0507", f"{place}: there is no option {key}", notes=[f"options are {', '.join(KNOWN)}"]
            )
    kinds = ("file",) if direction == "input" else ("file", "stdout")
    io = values.get("IO", "file")
    if io not in kinds:
        raise data_error(
            "TL0507", f"{place}: IO={io} is not supported", notes=[f"IO is {' or '.join(kinds)}"]
        )
    delimiter = values.get("delimiter")
    if delimiter is not None:
        delimiter = _ESCAPES.get(delimiter, delimiter)
        if delimiter in ("", "\n", "\r"):
            raise data_error("TL0507", f"{place}: the delimiter is empty or the end of a line")
    return Options(
        io=io,
        filename=values.get("filename"),
        delimiter=delimiter,
        headers=_flag(place, "headers", values.get("headers")) or False,
        rfc4180=_flag(place, "rfc4180", values.get("rfc4180")),
    )


def _flag(place: str, key: str, value: str | None) -> bool | None:
    if value is not None and value not in ("true", "false"):
        raise data_error("TL0507", f"{place}: {key}={value} is neither true nor false")
    return None if value is None else value == "true"
