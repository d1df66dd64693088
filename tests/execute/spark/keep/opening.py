"""Keepers on Spark, with more or less on the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from tidelog.execute.spark.keep.keeper import SparkKeeper
from tidelog.execute.spark.keep.relation import Limits
from tidelog.plan.maintenance import Keeper

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Small relations are on the driver; they are in Spark; so many changes are more than it is to hold.
LIMITS = {
    "near": Limits(),
    "in Spark": Limits(touched=50_000, local=0, overlay=5),
    "in bulk": Limits(touched=6, local=0, overlay=5),
}


def open_keeper(spark: SparkSession, where: str) -> Keeper:
    return cast(Keeper, SparkKeeper(spark, LIMITS[where]))
