"""Where a command runs: an engine and, for Spark, a session."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import typer

from tidelog.cli.startup import import_meanwhile, keep_pandas_out

if TYPE_CHECKING:
    from tidelog.execute.spark.schema import SparkSession
    from tidelog.session.pipeline.model import Pipeline


@dataclass(frozen=True)
class Where:
    """An engine; of Spark its master or the address of its Connect server, and settings of the session."""

    engine: str
    master: str | None = None
    remote: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    threads: int | None = None
    asked: bool = False  # whether somebody chose the engine

    @staticmethod
    def given(
        engine: str | None,
        master: str | None = None,
        remote: str | None = None,
        conf: Sequence[str] = (),
        threads: int | None = None,
    ) -> Where:
        """What the options of a command say. Raises typer.BadParameter for what does not go together.

        Raises TidelogError for settings of ours that cannot be.
        """
        if master is not None and remote is not None:
            raise typer.BadParameter("--master and --remote are two places; give one of them")
        if engine not in (None, "spark"):
            for option, value in (("--master", master), ("--remote", remote), ("--conf", conf)):
                if value:
                    raise typer.BadParameter(f"{option} is for Spark, and the engine is {engine}")
        from tidelog.execute.spark.settings import check_setting

        settings = {}
        for text in conf:
            key, equals, value = text.partition("=")
            if not equals or not key:
                raise typer.BadParameter(f"--conf {text}: a setting is written KEY=VALUE")
            check_setting(key, value)
            settings[key] = value
        asked = any((engine, master, remote, settings))
        return Where(engine or "spark", master, remote, settings, threads, asked)

    def of(self, pipeline: Pipeline) -> Where:
        """Where a pipeline runs: as its file says, unless the options of the command say otherwise."""
        engine = self.engine if self.asked else pipeline.engine or self.engine
        if engine != "spark":
            return Where(engine, threads=self.threads)
        master, remote = self.master, self.remote
        if master is None and remote is None:
            master, remote = pipeline.master, pipeline.remote
        return Where(engine, master, remote, {**pipeline.conf, **self.conf}, self.threads)

    @property
    def connects(self) -> bool:
        """Whether it is Spark over Spark Connect."""
        named = self.remote or (None if self.master else os.environ.get("SPARK_REMOTE"))
        return self.engine == "spark" and named is not None

    def __str__(self) -> str:
        if self.engine != "spark":
            return f"{self.engine}, in this process"
        if self.remote or self.master:
            return f"Spark, {self.remote or self.master}"
        return f"Spark, started here, local[{self.threads or '*'}]"

    @contextmanager
    def session(self) -> Iterator[SparkSession | None]:
        """The session to work in, which ends with the command; None without Spark."""
        if self.engine != "spark":
            keep_pandas_out()
            yield None
            return
        from tidelog.execute.spark.session import opened

        import_meanwhile("tidelog.execute.spark.stage.fixpoint")
        with opened(self.master, self.remote, self.conf, self.threads) as session:
            yield session
