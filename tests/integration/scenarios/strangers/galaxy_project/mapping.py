"""Users become accounts; a history names its owner and counts its jobs; each dataset knows its job's tool."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transforms import Mapping

mapping = Mapping()


@mapping.target("account", key="account_id")
def account(galaxy_user: DataFrame) -> DataFrame:
    """Each row from one user."""
    return galaxy_user.select(
        F.col("id").alias("account_id"),
        F.lower("email").alias("email"),
        F.coalesce("username", F.lit("")).alias("username"),
        F.coalesce("disk_usage", F.lit(0)).cast("decimal(15,0)").alias("disk_usage"),
        "active",
    )


@mapping.target(
    "project",
    key="project_id",
    grain="history.id",
    links=["history.user_id = galaxy_user.id", "job.history_id = history.id"],
)
def project(history: DataFrame, galaxy_user: DataFrame, job: DataFrame) -> DataFrame:
    """A join over foreign keys that may be NULL, with a count of the rows below."""
    jobs = job.groupBy("history_id").agg(F.count("*").alias("jobs"))
    owners = galaxy_user.select(F.col("id").alias("user_id"), F.col("email").alias("owner"))
    named = history.join(owners, "user_id", "left")
    return named.join(jobs, named["id"] == jobs["history_id"], "left").select(
        F.col("id").alias("project_id"),
        "name",
        "owner",
        F.coalesce("jobs", F.lit(0)).alias("jobs"),
    )


@mapping.target("file", key="file_id", grain="dataset.id")
def file(dataset: DataFrame, job: DataFrame) -> DataFrame:
    """A join over a foreign key, a filter, and a sum of two columns."""
    tools = job.select(F.col("id").alias("job_id"), "tool_id")
    kept = dataset.where(~F.coalesce("purged", F.lit(False)))
    return kept.join(tools, "job_id", "left").select(
        F.col("id").alias("file_id"),
        F.col("tool_id").alias("tool"),
        F.greatest("file_size", "total_size").alias("bytes"),
    )
