"""pgbench's tables under other names, without their fillers; and the tracked probes."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transforms import Mapping

mapping = Mapping()


@mapping.target("bench_account", key="account_id")
def bench_account(pgbench_accounts: DataFrame) -> DataFrame:
    """Accounts."""
    return pgbench_accounts.select(
        F.col("aid").cast("bigint").alias("account_id"),
        F.col("bid").alias("branch_id"),
        F.col("abalance").cast("bigint").alias("balance"),
    )


@mapping.target("bench_teller", key="teller_id")
def bench_teller(pgbench_tellers: DataFrame) -> DataFrame:
    """Tellers."""
    return pgbench_tellers.select(
        F.col("tid").alias("teller_id"),
        F.col("bid").alias("branch_id"),
        F.col("tbalance").cast("bigint").alias("balance"),
    )


@mapping.target("bench_branch", key="branch_id")
def bench_branch(pgbench_branches: DataFrame) -> DataFrame:
    """Branches."""
    return pgbench_branches.select(
        F.col("bid").alias("branch_id"), F.col("bbalance").cast("bigint").alias("balance")
    )


@mapping.target("bench_posting", key="posting_id")
def bench_posting(pgbench_history: DataFrame) -> DataFrame:
    """History."""
    return pgbench_history.select(
        F.col("id").alias("posting_id"),
        F.col("tid").alias("teller_id"),
        F.col("aid").cast("bigint").alias("account_id"),
        F.col("delta").cast("bigint").alias("amount"),
        F.col("mtime").alias("booked_at"),
    )


@mapping.target("pulse", key="pulse_id")
def pulse(probe: DataFrame) -> DataFrame:
    """Probes."""
    return probe.select(
        F.col("id").alias("pulse_id"),
        F.col("beat"),
        F.col("writer").alias("client"),
        F.col("write_no").alias("client_no"),
    )
