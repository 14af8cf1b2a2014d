"""Accounts and journal under new names, row by row."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from transforms import Mapping

mapping = Mapping()


def _account() -> list[Column]:
    return [
        F.col("account").alias("account_id"),
        F.upper("owner").alias("holder"),
        F.col("balance").alias("cents"),
        F.col("writer").alias("client"),
        F.col("write_no").alias("client_no"),
    ]


@mapping.target("current_account", key="account_id")
def current_account(checking: DataFrame) -> DataFrame:
    """Checking accounts."""
    return checking.select(_account())


@mapping.target("deposit_account", key="account_id")
def deposit_account(savings: DataFrame) -> DataFrame:
    """Savings accounts."""
    return savings.select(_account())


@mapping.target("posting", key="posting_id")
def posting(journal: DataFrame) -> DataFrame:
    """Journal entries."""
    return journal.select(
        F.col("entry").alias("posting_id"),
        F.col("kind").alias("reason"),
        F.col("payer").alias("from_account"),
        F.col("payee").alias("to_account"),
        F.col("amount").alias("cents"),
        F.col("writer").alias("client"),
        F.col("write_no").alias("client_no"),
    )
