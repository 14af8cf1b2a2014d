"""The way back: a person and a contact are a customer; nothing fills ``customer.note`` and ``orders.origin``."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transforms import Mapping

mapping = Mapping()


@mapping.target(
    "customer", key="customer_id", grain="person.person_id", links=["contact.person_id = person.person_id"]
)
def customer(person: DataFrame, contact: DataFrame) -> DataFrame:
    return person.join(contact, "person_id", "left").select(
        F.col("person_id").alias("customer_id"), F.col("full_name").alias("name"), "email"
    )


@mapping.target("orders", key="order_id")
def orders(purchase: DataFrame) -> DataFrame:
    return purchase.select(
        F.col("purchase_id").alias("order_id"),
        F.col("person_id").alias("customer_id"),
        (F.col("amount") * 100).cast("int").alias("cents"),
        F.col("is_paid").cast("int").alias("paid"),
    )
