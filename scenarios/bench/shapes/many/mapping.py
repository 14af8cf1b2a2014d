"""One counter a gauge, twenty times: names and types change, rows stay."""

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transforms import Mapping
from transforms.columns import blank_to_null, instant

mapping = Mapping()


def _counter() -> Callable[[DataFrame], DataFrame]:
    def counter(gauge: DataFrame) -> DataFrame:
        return gauge.select(
            F.col("id").alias("counter_id"),
            F.col("n").cast("bigint").alias("reading"),
            blank_to_null("label").alias("title"),
            instant(F.col("changed"), "UTC").alias("read_at"),
        )

    return counter


for number in range(1, 21):
    mapping.target(f"counter_{number}", key="counter_id", sources=[f"gauge_{number}"])(_counter())
