"""One shipment a parcel: a wider weight under another name."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transforms import Mapping

mapping = Mapping()


@mapping.target("shipment", key="shipment_id")
def shipment(parcel: DataFrame) -> DataFrame:
    """One shipment a parcel."""
    return parcel.select(
        F.col("id").alias("shipment_id"),
        F.col("weight").cast("bigint").alias("grams"),
        F.col("label").alias("tag"),
        F.col("writer").alias("client"),
        F.col("write_no").alias("client_no"),
    )
