"""Customers become persons; a purchase knows how many its buyer has, and is mapped by too fine a grain."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from transforms import Mapping

mapping = Mapping()


@mapping.target("person", key="person_id")
def person(customer: DataFrame) -> DataFrame:
    """Each row from one old row."""
    return customer.select(
        F.col("customer_id").alias("person_id"),
        F.trim("name").alias("name"),
        F.lower("email").alias("email"),
        (F.col("state") == "active").alias("active"),
        F.to_date(F.col("born").cast("string"), "yyyy-MM-dd").alias("born"),
    )


@mapping.target("purchase", key="purchase_id", grain="orders.order_id")
def purchase(orders: DataFrame) -> DataFrame:
    """The window reaches further than the grain says: `orders.customer_id` would be right."""
    return orders.select(
        F.col("order_id").alias("purchase_id"),
        F.col("customer_id").alias("buyer"),
        "note",
        "total",
        F.count("*").over(Window.partitionBy("customer_id")).cast("int").alias("of_buyer"),
    )
