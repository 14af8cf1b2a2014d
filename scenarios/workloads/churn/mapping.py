"""One pass a ticket; the seat's row becomes a number, paid a boolean."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transforms import Mapping

mapping = Mapping()


@mapping.target("pass", key="pass_id")
def passes(ticket: DataFrame) -> DataFrame:
    """One pass a ticket."""
    return ticket.select(
        F.col("id").alias("pass_id"),
        F.col("price").cast("bigint").alias("price"),
        F.expr("cast(substr(seat, 5) AS smallint)").alias("seat_row"),
        (F.col("paid") != 0).alias("is_paid"),
        F.col("writer").alias("client"),
        F.col("write_no").alias("client_no"),
    )
