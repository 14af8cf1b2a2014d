"""Order entry under new names: amounts in whole cents, delivered a boolean, credit a word."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from transforms import Mapping

mapping = Mapping()


def _renamed(**names: str) -> list[Column]:
    return [
        F.col(old).alias(new) for new, old in {**names, "client": "writer", "client_no": "write_no"}.items()
    ]


@mapping.target("depot", key="depot_id")
def depot(warehouse: DataFrame) -> DataFrame:
    """Warehouses; the tax in hundredths of a percent."""
    return warehouse.select(
        *_renamed(depot_id="w_id", title="w_name", turnover="w_ytd"),
        (F.col("w_tax") * 10_000).cast("int").alias("tax_points"),
    )


@mapping.target("area", key=("depot_id", "area_no"))
def area(district: DataFrame) -> DataFrame:
    """Districts."""
    return district.select(
        _renamed(
            depot_id="w_id", area_no="d_id", title="d_name", turnover="d_ytd", next_sale_no="d_next_o_id"
        )
    )


@mapping.target("buyer", key=("depot_id", "area_no", "buyer_no"))
def buyer(customer: DataFrame) -> DataFrame:
    """Customers."""
    return customer.select(
        *_renamed(depot_id="w_id", area_no="d_id", buyer_no="c_id", last_name="c_last", balance="c_balance"),
        (F.col("c_credit") == "GC").alias("has_credit"),
        F.col("c_payment_cnt").alias("payments"),
    )


@mapping.target("shelf", key=("depot_id", "item_id"))
def shelf(stock: DataFrame) -> DataFrame:
    """Stock."""
    return stock.select(
        _renamed(depot_id="w_id", item_id="i_id", pieces="s_quantity", last_sale_no="s_order_cnt")
    )


@mapping.target("sale", key=("depot_id", "area_no", "sale_no"))
def sale(orders: DataFrame) -> DataFrame:
    """Orders."""
    return orders.select(
        _renamed(
            depot_id="w_id",
            area_no="d_id",
            sale_no="o_id",
            buyer_no="o_c_id",
            carrier="o_carrier_id",
            line_count="o_ol_cnt",
        )
    )


@mapping.target("sale_line", key=("depot_id", "area_no", "sale_no", "line_no"))
def sale_line(order_line: DataFrame) -> DataFrame:
    """Order lines."""
    return order_line.select(
        *_renamed(
            depot_id="w_id",
            area_no="d_id",
            sale_no="o_id",
            line_no="ol_number",
            item_id="ol_i_id",
            pieces="ol_quantity",
        ),
        (F.col("ol_amount") * 100).cast("bigint").alias("cents"),
        (F.col("ol_delivered") != 0).alias("is_delivered"),
    )


@mapping.target("open_sale", key=("depot_id", "area_no", "sale_no"))
def open_sale(new_order: DataFrame) -> DataFrame:
    """Orders not delivered yet."""
    return new_order.select(_renamed(depot_id="w_id", area_no="d_id", sale_no="o_id"))
