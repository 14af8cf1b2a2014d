"""One gauge a register, its fee read by a function in Python."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from transforms import Mapping
from transforms.columns import blank_to_null

mapping = Mapping()


@F.udf(returnType=LongType(), useArrow=False)
def whole_cents(fee: str) -> int:
    """``12.50`` as 1250."""
    whole, _, rest = fee.partition(".")
    return int(whole) * 100 + int(rest)


@mapping.target("gauge", key="gauge_id")
def gauge(register: DataFrame) -> DataFrame:
    """One gauge a register."""
    return register.select(
        F.col("id").alias("gauge_id"),
        F.col("reading").alias("level"),
        F.lower("state").alias("status"),
        whole_cents("fee").alias("fee_cents"),
        blank_to_null("note").alias("remark"),
        F.col("writer").alias("client"),
        F.col("write_no").alias("client_no"),
    )
