"""Where a command runs: an engine and, for Spark, a session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import typer

from tidelog.cli.startup import keep_pandas_out

if TYPE_CHECKING:
    from tidelog.execute.spark.schema import SparkSession


@dataclass(frozen=True)
class Where:
    """An engine; of Spark its master or the address of its Connect server, and settings of the session."""

    engine: str
    master: str | None = None
    remote: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    threads: int | None = None

    @staticmethod
    def given(
        engine: str, master: str | None, remote: str | None, conf: Sequence[str], threads: int | None
    ) -> Where:
        """What the options of a command say. Raises typer.BadParameter for what does not go together."""
        if master is not None and remote is not None:
            raise typer.BadParameter("--master and --remote are two places; give one of them")
        if engine != "spark":
            for option, value in (("--master", master), ("--remote", remote), ("--conf", conf)):
                if value:
                    raise typer.BadParameter(f"{option} is for Spark, and the engine is {engine}")
        settings = {}
        for text in conf:
            key, equals, value = text.partition("=")
            if not equals or not key:
                raise typer.BadParameter(f"--conf {text}: a setting is written KEY=VALUE")
            settings[key] = value
        return Where(engine, master, remote, settings, threads)

    def __str__(self) -> str:
        if self.engine != "spark":
            return f"engine {self.engine}, in this process"
        if self.remote or self.master:
            return f"Spark at {self.remote or self.master}"
        return f"Spark, started here with {self.threads or 'all'} cores"

    @contextmanager
    def session(self) -> Iterator[SparkSession | None]:
        """The session to work in, which ends with the command; None without Spark."""
        if self.engine != "spark":
            keep_pandas_out()
            yield None
            return
        from tidelog.execute.spark.session import opened

        with opened(self.master, self.remote, self.conf, self.threads) as session:
            yield session
