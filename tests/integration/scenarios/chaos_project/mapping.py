"""Customers become persons; an order, with the sum of its lines, becomes a purchase."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transforms import Mapping

mapping = Mapping()


@mapping.target("person", key="person_id")
def person(customer: DataFrame) -> DataFrame:
    """Each row from one old row."""
    return customer.select(
        F.col("customer_id").alias("person_id"),
        F.trim("name").alias("name"),
        F.coalesce(F.lower("email"), F.lit("unknown")).alias("email"),
        (F.col("state") == "active").alias("active"),
        F.to_date(F.col("born").cast("string"), "yyyy-MM-dd").alias("born"),
    )


@mapping.target("purchase", key="purchase_id", grain="orders.order_id")
def purchase(orders: DataFrame, order_line: DataFrame, customer: DataFrame) -> DataFrame:
    """A join with sums."""
    lines = order_line.groupBy("order_id").agg(
        F.count("*").alias("lines"),
        F.sum(F.col("quantity") * F.col("price")).cast("decimal(24,2)").alias("total"),
    )
    named = orders.join(customer, "customer_id").join(lines, "order_id", "left")
    return named.select(
        F.col("order_id").alias("purchase_id"),
        F.col("name").alias("buyer"),
        "note",
        F.coalesce("lines", F.lit(0)).cast("int").alias("lines"),
        F.coalesce("total", F.lit(0)).cast("decimal(24,2)").alias("total"),
    )
