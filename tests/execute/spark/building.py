"""Relations and plans for the tests of the Spark executor, written briefly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import SparkSession

from tests.running import Row, rows_of, table_of
from tidelog.execute.spark.executor import SparkExecutor
from tidelog.program.model import Column, Relation
from tidelog.program.types import Type


def relation(name: str, *types: Type) -> Relation:
    return Relation(name, tuple(Column(f"col{i}", type) for i, type in enumerate(types)))


class Store:
    """An executor with some relations in it."""

    def __init__(self, spark: SparkSession, *relations: Relation) -> None:
        self.executor = SparkExecutor(spark)
        self.relations = {r.name: r for r in relations}
        for r in relations:
            self.executor.create(r)

    def insert(self, name: str, rows: Iterable[Row]) -> int:
        return self.executor.insert(name, table_of(self.relations[name], rows))

    def rows(self, name: str) -> set[Row]:
        return rows_of(self.relations[name], self.executor.table(name))

    def sizes(self) -> Sequence[int]:
        return [self.executor.size(name) for name in self.relations]
