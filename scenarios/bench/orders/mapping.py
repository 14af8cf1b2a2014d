"""One purchase an order: names, types and values change, rows stay."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from transforms import Mapping
from transforms.columns import blank_to_null, cents, flag, instant, mysql_datetime

mapping = Mapping()


def _placed_at(orders: DataFrame) -> Column:
    """The naive creation time: a timestamp from PostgreSQL, a text from MariaDB."""
    if dict(orders.dtypes)["created"] == "string":
        return mysql_datetime("created")
    return F.col("created")


@mapping.target("purchase", key="purchase_id")
def purchase(orders: DataFrame) -> DataFrame:
    """One purchase an order."""
    return orders.select(
        F.col("id").alias("purchase_id"),
        F.col("customer").alias("customer_id"),
        F.col("items").alias("item_count"),
        F.lower(F.col("state")).alias("status"),
        blank_to_null("comment").alias("note"),
        cents("total").alias("amount_cents"),
        F.col("rebate").alias("discount"),
        instant(_placed_at(orders), "UTC").alias("placed_at"),
        flag("paid").alias("is_paid"),
        F.col("source").alias("channel"),
    )
