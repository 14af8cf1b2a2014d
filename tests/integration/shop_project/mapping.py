"""A shop's tables joined in the ways that ``docs/how-to/mapping/joined-mappings.md`` describes."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from transforms import Mapping

mapping = Mapping()


@mapping.target("label", key="category_id")
def label(category: DataFrame) -> DataFrame:
    """Row-wise, beside the joined ones."""
    return category.select("category_id", "name")


@mapping.target("order_summary", key="order_id", grain="orders.order_id")
def order_summary(
    orders: DataFrame, customer: DataFrame, order_line: DataFrame, product: DataFrame
) -> DataFrame:
    """A join over several links with sums and names."""
    lines = (
        order_line.join(product, "product_id")
        .groupBy("order_id")
        .agg(
            F.count("*").alias("line_count"),
            F.sum(F.col("quantity") * F.col("price")).cast("decimal(20,2)").alias("total"),
            F.concat_ws(",", F.sort_array(F.collect_list("name"))).alias("products"),
        )
    )
    named = orders.join(customer, "customer_id").select("order_id", F.col("name").alias("customer_name"))
    return named.join(lines, "order_id", "left").select(
        "order_id",
        "customer_name",
        F.coalesce("line_count", F.lit(0)).cast("bigint").alias("line_count"),
        F.coalesce("total", F.lit(0)).cast("decimal(20,2)").alias("total"),
        "products",
    )


@mapping.target("article", key="name", grain=lambda product: [F.lower(F.trim(product.name))])
def article(product: DataFrame, order_line: DataFrame) -> DataFrame:
    """One row per distinct name: its key is no key of any source table."""
    sold = order_line.groupBy("product_id").agg(F.sum("quantity").alias("sold"))
    return (
        product.join(sold, "product_id", "left")
        .groupBy(F.lower(F.trim("name")).alias("name"))
        .agg(
            F.count("*").alias("products"),
            F.coalesce(F.sum("sold"), F.lit(0)).cast("bigint").alias("sold"),
        )
    )


@mapping.target("buyer", key="customer_id", grain="customer.customer_id")
def buyer(customer: DataFrame, orders: DataFrame) -> DataFrame:
    """The latest of many rows."""
    last = orders.groupBy("customer_id").agg(
        F.count("*").alias("orders"), F.max_by("order_id", F.struct("day", "order_id")).alias("last_order_id")
    )
    return customer.select("customer_id").join(last, "customer_id", "left").fillna(0, ["orders"])


@mapping.target("pick", key=("order_id", "place"), grain="order_line.order_id")
def pick(order_line: DataFrame) -> DataFrame:
    """A window inside the rows of one order."""
    order = Window.partitionBy("order_id").orderBy(F.desc("quantity"), "line_no")
    return order_line.select("order_id", F.row_number().over(order).alias("place"), "product_id", "quantity")


@mapping.target(
    "referral",
    key="customer_id",
    grain="customer.customer_id",
    links=["customer.referrer_id = referrer.customer_id", "customer.customer_id = referred.referrer_id"],
    roles={"referrer": "customer", "referred": "customer"},
)
def referral(customer: DataFrame) -> DataFrame:
    """A table joined with itself, in both directions."""
    above = customer.select(F.col("customer_id").alias("referrer_id"), F.col("name").alias("referrer"))
    below = customer.where("referrer_id IS NOT NULL").groupBy(F.col("referrer_id").alias("customer_id"))
    return (
        customer.select("customer_id", "referrer_id")
        .join(above, "referrer_id", "left")
        .join(below.agg(F.count("*").alias("referred")), "customer_id", "left")
        .select("customer_id", "referrer", F.coalesce("referred", F.lit(0)).cast("bigint").alias("referred"))
    )


@mapping.target("party", key="party_id", grain=["customer.customer_id", "category.category_id"])
def party(customer: DataFrame, orders: DataFrame, category: DataFrame, product: DataFrame) -> DataFrame:
    """Two tables merged into one, each with a join of its own."""
    ordered = orders.groupBy("customer_id").agg(F.count("*").alias("members"))
    listed = product.groupBy("category_id").agg(F.count("*").alias("members"))
    people = customer.join(ordered, "customer_id", "left").select(
        F.concat(F.lit("customer "), "customer_id").alias("party_id"), "name", "members"
    )
    groups = category.join(listed, "category_id", "left").select(
        F.concat(F.lit("category "), "category_id").alias("party_id"), "name", "members"
    )
    return people.unionByName(groups).fillna(0, ["members"])


@mapping.target(
    "sales",
    key=("category", "price_band"),
    grain=lambda order_line, product, category: [category.name, F.floor(product.price / 10)],
)
def sales(order_line: DataFrame, product: DataFrame, category: DataFrame) -> DataFrame:
    """Grouped by values of tables two links away."""
    return (
        order_line.join(product, "product_id")
        .join(category.select("category_id", F.col("name").alias("category")), "category_id")
        .groupBy("category", F.floor(F.col("price") / 10).cast("int").alias("price_band"))
        .agg(F.count("*").alias("sold_lines"), F.sum("quantity").alias("quantity"))
    )


@mapping.target("dispatch", key=("product_id", "order_id", "line_no"), grain="orders.order_id")
def dispatch(orders: DataFrame, customer: DataFrame, order_line: DataFrame) -> DataFrame:
    """One to many: a row for each line, with the name two links up."""
    named = orders.join(customer, "customer_id").select("order_id", F.col("name").alias("customer_name"))
    return order_line.join(named, "order_id").select("product_id", "order_id", "line_no", "customer_name")


@mapping.target("circle", key="customer_id", grain="customer.referrer_id")
def circle(customer: DataFrame) -> DataFrame:
    """Rows whose grain may be NULL, and whose key moves from grain to grain."""
    order = Window.partitionBy("referrer_id").orderBy("customer_id")
    return customer.select("customer_id", F.row_number().over(order).alias("place"))


@mapping.target(
    "band",
    key="product_id",
    grain="product.product_id",
    values={"product.band": lambda product: F.floor(product.price / 10)},
    links=["other.band = product.band"],
    roles={"other": "product"},
)
def band(product: DataFrame) -> DataFrame:
    """A table joined with itself by a computed value."""
    sizes = product.groupBy(F.floor(F.col("price") / 10).alias("band")).agg(F.count("*").alias("products"))
    banded = product.select("product_id", F.floor(F.col("price") / 10).alias("band"))
    return banded.join(sizes, "band").select("product_id", "products")


@mapping.target(
    "namesake",
    key="category_id",
    grain="category.category_id",
    values={"product.title": lambda product: F.lower(F.trim(product.name))},
    links=[
        "product.category_id = category.category_id",
        "namesake.title = product.title",
        "order_line.product_id = namesake.product_id",
    ],
    roles={"namesake": "product"},
)
def namesake(category: DataFrame, product: DataFrame, order_line: DataFrame) -> DataFrame:
    """What was sold of products that are named like one of the group, whatever group they are in."""
    titled = product.withColumn("title", F.lower(F.trim("name")))
    sold = titled.join(order_line, "product_id").groupBy("title").agg(F.sum("quantity").alias("quantity"))
    named = titled.select("category_id", "title").distinct().join(sold, "title")
    total = named.groupBy("category_id").agg(F.sum("quantity").alias("quantity"))
    return (
        category.select("category_id")
        .join(total, "category_id", "left")
        .select("category_id", F.coalesce("quantity", F.lit(0)).cast("bigint").alias("quantity"))
    )


@mapping.target(
    "fan",
    key="category_id",
    grain="category.category_id",
    values={
        "category.rest": lambda category: category.category_id % 7,
        "customer.rest": lambda customer: customer.customer_id % 7,
    },
    links=["customer.rest = category.rest"],
)
def fan(category: DataFrame, customer: DataFrame) -> DataFrame:
    """Two tables joined by what is computed on both sides."""
    counted = customer.groupBy((F.col("customer_id") % 7).alias("rest")).agg(F.count("*").alias("customers"))
    rests = category.select("category_id", (F.col("category_id") % 7).alias("rest"))
    return rests.join(counted, "rest", "left").select(
        "category_id", F.coalesce("customers", F.lit(0)).cast("bigint").alias("customers")
    )
