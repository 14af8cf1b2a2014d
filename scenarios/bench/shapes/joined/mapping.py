"""Order lines with what their order, its customer and the product say."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transforms import Mapping

mapping = Mapping()


@mapping.target("sale_line", key="line_id", grain="line.line_id")
def sale_line(line: DataFrame, orders: DataFrame, customer: DataFrame, product: DataFrame) -> DataFrame:
    """One row a line: two levels of foreign keys one way, one the other."""
    sold = line.join(orders, "order_id").join(customer, "customer_id").join(product, "product_id")
    return sold.select(
        "line_id",
        F.col("customer_name").alias("buyer"),
        F.upper("product_name").alias("article"),
        "quantity",
        (F.col("quantity") * F.col("price")).cast("decimal(14,2)").alias("amount"),
    )
