"""The way there: row-wise but for what each person has spent."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transforms import Mapping

mapping = Mapping()


@mapping.target("person", key="person_id")
def person(customer: DataFrame) -> DataFrame:
    return customer.select(F.col("customer_id").alias("person_id"), F.col("name").alias("full_name"))


@mapping.target("contact", key="person_id")
def contact(customer: DataFrame) -> DataFrame:
    return customer.select(F.col("customer_id").alias("person_id"), "email")


@mapping.target("purchase", key="purchase_id")
def purchase(orders: DataFrame) -> DataFrame:
    return orders.select(
        F.col("order_id").alias("purchase_id"),
        F.col("customer_id").alias("person_id"),
        (F.col("cents") / 100).cast("decimal(12,2)").alias("amount"),
        (F.col("paid") == 1).alias("is_paid"),
    )


@mapping.target(
    "spending",
    key="person_id",
    grain="customer.customer_id",
    links=["orders.customer_id = customer.customer_id"],
)
def spending(customer: DataFrame, orders: DataFrame) -> DataFrame:
    return (
        customer.join(orders, "customer_id", "left")
        .groupBy(F.col("customer_id").alias("person_id"), F.col("name").alias("full_name"))
        .agg(F.count("order_id").alias("purchases"))
    )
