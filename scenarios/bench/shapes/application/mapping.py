"""Cards, totals, latest states and tags of an application: 25 joined targets over 36 tables."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from transforms import Mapping

mapping = Mapping()


@mapping.target(
    "customer_card",
    key="customer_id",
    grain="customer.customer_id",
    links=[
        "customer.address_id = address.address_id",
        "address.country_id = country.country_id",
        "customer.company_id = company.company_id",
    ],
)
def customer_card(
    customer: DataFrame, address: DataFrame, country: DataFrame, company: DataFrame
) -> DataFrame:
    """Customers, where they live and whom they work for."""
    return (
        customer.select("customer_id", "customer_name", "email", "address_id", "company_id")
        .join(_places(address, country), "address_id")
        .join(company.select("company_id", "company_name"), "company_id", "left")
        .selectExpr(
            "customer_id", "customer_name name", "lower(email) email", "place", "company_name company"
        )
    )


@mapping.target("customer_orders", key="customer_id", grain="customer.customer_id")
def customer_orders(customer: DataFrame, orders: DataFrame) -> DataFrame:
    """Customers, their number of orders and what they spent."""
    ordered = orders.groupBy("customer_id").agg(
        F.count("*").alias("orders"), F.sum("total").alias("spent"), F.max("placed_at").alias("last_at")
    )
    joined = customer.select("customer_id").join(ordered, "customer_id", "left")
    return joined.select("customer_id", _or_zero("orders"), _amount("spent"), "last_at")


@mapping.target("customer_tags", key="customer_id", grain="customer.customer_id")
def customer_tags(customer: DataFrame, customer_tag: DataFrame, tag: DataFrame) -> DataFrame:
    """All tags of a customer in one text."""
    tags = _tags(customer_tag.select("customer_id", "tag_id"), tag, "customer_id")
    return customer.select("customer_id").join(tags, "customer_id", "left")


@mapping.target("company_card", key="company_id", grain="company.company_id")
def company_card(company: DataFrame, address: DataFrame, country: DataFrame, contact: DataFrame) -> DataFrame:
    """Companies, where they are and who can be asked there."""
    contacts = contact.groupBy("company_id").agg(
        F.count("*").alias("contacts"), F.min("contact_name").alias("first_contact")
    )
    return (
        company.select("company_id", "company_name", "address_id")
        .join(_places(address, country), "address_id")
        .join(contacts, "company_id", "left")
        .withColumn("contacts", _or_zero("contacts"))
        .selectExpr("company_id", "company_name name", "place", "contacts", "first_contact")
    )


@mapping.target(
    "address_use",
    key="address_id",
    grain="customer.address_id = supplier.address_id = store.address_id",
    links=[],
)
def address_use(customer: DataFrame, supplier: DataFrame, store: DataFrame) -> DataFrame:
    """Addresses, and the numbers of customers, suppliers and stores there."""
    people = _uses(customer, "customer").unionByName(_uses(supplier, "supplier"))
    uses = people.unionByName(_uses(store, "store"))
    return uses.groupBy("address_id").agg(
        F.count_if(F.col("kind") == "customer").alias("customers"),
        F.count_if(F.col("kind") == "supplier").alias("suppliers"),
        F.count_if(F.col("kind") == "store").alias("stores"),
    )


@mapping.target("employee_load", key="employee_id", grain="employee.employee_id")
def employee_load(employee: DataFrame, store: DataFrame, ticket: DataFrame) -> DataFrame:
    """Employees, their store and how many tickets they have."""
    tickets = ticket.groupBy("employee_id").agg(F.count("*").alias("tickets"))
    return (
        employee.select("employee_id", "employee_name", "store_id")
        .join(store.select("store_id", "store_name"), "store_id")
        .join(tickets, "employee_id", "left")
        .withColumn("tickets", _or_zero("tickets"))
        .selectExpr("employee_id", "employee_name name", "store_name store", "tickets")
    )


@mapping.target("supplier_card", key="supplier_id", grain="supplier.supplier_id")
def supplier_card(
    supplier: DataFrame, address: DataFrame, country: DataFrame, currency: DataFrame
) -> DataFrame:
    """Suppliers, where they are and what they are paid in."""
    return (
        supplier.select("supplier_id", "supplier_name", "address_id", "currency_id")
        .join(_places(address, country), "address_id")
        .join(currency, "currency_id")
        .select("supplier_id", F.col("supplier_name").alias("name"), "place", _currency())
    )


@mapping.target("product_card", key="product_id", grain="product.product_id")
def product_card(product: DataFrame, category: DataFrame, tax_rate: DataFrame) -> DataFrame:
    """Products with their category and their price with tax."""
    gross = F.col("price") * (1 + F.col("percent") / 100)
    return (
        product.select("product_id", "title", "price", "category_id", "tax_rate_id")
        .join(category, "category_id", "left")
        .join(tax_rate, "tax_rate_id", "left")
        .withColumn("gross_price", gross.cast("decimal(16,2)"))
        .selectExpr("product_id", "title", "upper(category_name) category", "gross_price")
    )


@mapping.target("product_tags", key="product_id", grain="product.product_id")
def product_tags(product: DataFrame, product_tag: DataFrame, tag: DataFrame) -> DataFrame:
    """All tags of a product in one text."""
    tags = _tags(product_tag.select("product_id", "tag_id"), tag, "product_id")
    return product.select("product_id").join(tags, "product_id", "left")


@mapping.target("product_price", key="product_id", grain="product.product_id")
def product_price(product: DataFrame, price_history: DataFrame, currency: DataFrame) -> DataFrame:
    """The latest list price of a product."""
    prices = price_history.select("price_history_id", "product_id", "list_price", "since")
    return (
        product.select("product_id", "title", "currency_id")
        .join(_latest(prices, "product_id"), "product_id", "left")
        .join(currency, "currency_id")
        .select("product_id", "title", "list_price", _currency(), "since")
    )


@mapping.target("product_stock", key="product_id", grain="product.product_id")
def product_stock(product: DataFrame, stock: DataFrame, warehouse: DataFrame) -> DataFrame:
    """Products, their quantity and where it lies."""
    kept = (
        stock.join(warehouse, "warehouse_id")
        .groupBy("product_id")
        .agg(F.sum("quantity").alias("quantity"), _united("warehouse_name", "warehouses"))
    )
    joined = product.select("product_id").join(kept, "product_id", "left")
    return joined.select("product_id", _or_zero("quantity"), "warehouses")


@mapping.target("product_reviews", key="product_id", grain="product.product_id")
def product_reviews(product: DataFrame, review: DataFrame) -> DataFrame:
    """Products, and the stars that customers gave."""
    reviews = review.groupBy("product_id").agg(
        F.count("*").alias("reviews"), F.sum("stars").alias("stars"), F.max("stars").alias("best")
    )
    joined = product.select("product_id", "title").join(reviews, "product_id", "left")
    return joined.select("product_id", "title", _or_zero("reviews"), _or_zero("stars"), "best")


@mapping.target("product_source", key="product_source_id", grain="product_supplier.product_supplier_id")
def product_source(product_supplier: DataFrame, product: DataFrame, supplier: DataFrame) -> DataFrame:
    """Products and their suppliers."""
    return (
        product_supplier.join(product.select("product_id", "price"), "product_id")
        .join(supplier.select("supplier_id", "supplier_name"), "supplier_id")
        .withColumnsRenamed({"product_supplier_id": "product_source_id", "price": "sold_at"})
        .selectExpr("product_source_id", "product_id", "supplier_name supplier", "lead_days", "sold_at")
    )


@mapping.target(
    "order_card",
    key="order_id",
    grain="orders.orders_id",
    links=[
        "orders.customer_id = customer.customer_id",
        "orders.address_id = address.address_id",
        "orders.channel_id = channel.channel_id",
        "orders.currency_id = currency.currency_id",
    ],
)
def order_card(
    orders: DataFrame, customer: DataFrame, address: DataFrame, channel: DataFrame, currency: DataFrame
) -> DataFrame:
    """Orders, by whom, where to and how they came."""
    return (
        orders.select(
            "orders_id", "customer_id", "address_id", "channel_id", "currency_id", "placed_at", "total"
        )
        .join(customer.select("customer_id", "customer_name"), "customer_id")
        .join(address.select("address_id", "city"), "address_id")
        .join(channel, "channel_id", "left")
        .join(currency, "currency_id")
        .withColumn("total", F.concat_ws(" ", "total", "code"))
        .withColumnsRenamed({"orders_id": "order_id", "customer_name": "buyer", "city": "ship_to"})
        .selectExpr("order_id", "buyer", "ship_to", "channel_name channel", "total", "placed_at")
    )


@mapping.target("order_totals", key="order_id", grain="orders.orders_id")
def order_totals(orders: DataFrame, order_line: DataFrame, product: DataFrame) -> DataFrame:
    """Orders summed up over their lines."""
    lines = (
        order_line.join(product.select("product_id", "category_id"), "product_id")
        .groupBy("orders_id")
        .agg(
            F.count("*").alias("lines"),
            F.sum(F.col("quantity") * F.col("line_price")).alias("amount"),
            F.count_distinct("category_id").alias("categories"),
        )
    )
    joined = orders.select("orders_id").join(lines, "orders_id", "left")
    counted = joined.select("orders_id", _or_zero("lines"), _amount("amount"), _or_zero("categories"))
    return counted.withColumnRenamed("orders_id", "order_id")


@mapping.target("order_state", key="order_id", grain="orders.orders_id")
def order_state(orders: DataFrame, order_status: DataFrame, reason: DataFrame) -> DataFrame:
    """The latest state of an order and why."""
    states = order_status.select("order_status_id", "orders_id", "reason_id", "status", "since")
    return _state(orders, states, reason, "orders_id").withColumnRenamed("orders_id", "order_id")


@mapping.target(
    "shipment_card",
    key="shipment_id",
    grain="shipment.shipment_id",
    links=[
        "shipment.orders_id = orders.orders_id",
        "shipment.carrier_id = carrier.carrier_id",
        "shipment.address_id = address.address_id",
    ],
)
def shipment_card(
    shipment: DataFrame, orders: DataFrame, carrier: DataFrame, address: DataFrame
) -> DataFrame:
    """Shipments, where to, with whom and how long after the order."""
    return (
        shipment.select("shipment_id", "orders_id", "carrier_id", "address_id", "shipped_at", "weight")
        .join(orders.select("orders_id", "placed_at"), "orders_id")
        .join(carrier, "carrier_id", "left")
        .join(address.select("address_id", "street", "city"), "address_id")
        .withColumn("ship_to", F.concat_ws(", ", "street", "city"))
        .withColumn("days", F.datediff("shipped_at", "placed_at"))
        .selectExpr("shipment_id", "ship_to", "carrier_name carrier", "weight", "days")
    )


@mapping.target(
    "invoice_card",
    key="invoice_id",
    grain="invoice.invoice_id",
    links=[
        "invoice.orders_id = orders.orders_id",
        "orders.customer_id = customer.customer_id",
        "invoice.currency_id = currency.currency_id",
    ],
)
def invoice_card(
    invoice: DataFrame, orders: DataFrame, customer: DataFrame, currency: DataFrame
) -> DataFrame:
    """Invoices, to whom and for which part of the order."""
    return (
        invoice.select("invoice_id", "orders_id", "currency_id", "amount", "due_at")
        .join(orders.select("orders_id", "customer_id", "total"), "orders_id")
        .join(customer.select("customer_id", "email"), "customer_id")
        .join(currency, "currency_id")
        .withColumn("rest", (F.col("total") - F.col("amount")).cast("decimal(16,2)"))
        .select("invoice_id", F.lower("email").alias("sent_to"), "amount", "rest", _currency(), "due_at")
    )


@mapping.target("invoice_balance", key="invoice_id", grain="invoice.invoice_id")
def invoice_balance(invoice: DataFrame, payment: DataFrame, payment_method: DataFrame) -> DataFrame:
    """Invoices, what was paid of them, and how."""
    paid = (
        payment.select("invoice_id", "payment_method_id", "paid")
        .join(payment_method, "payment_method_id", "left")
        .groupBy("invoice_id")
        .agg(F.sum("paid").alias("paid"), _united("method_name", "methods"))
    )
    due = (F.col("amount") - F.coalesce("paid", F.lit(0))).cast("decimal(16,2)").alias("due")
    joined = invoice.select("invoice_id", "amount").join(paid, "invoice_id", "left")
    return joined.select("invoice_id", _amount("paid"), due, "methods")


@mapping.target("ticket_card", key="ticket_id", grain="ticket.ticket_id")
def ticket_card(ticket: DataFrame, customer: DataFrame, employee: DataFrame, company: DataFrame) -> DataFrame:
    """Tickets, whose and who looks after them."""
    return (
        ticket.select("ticket_id", "customer_id", "employee_id", "subject")
        .join(customer.select("customer_id", "customer_name", "company_id"), "customer_id")
        .join(employee.select("employee_id", "employee_name"), "employee_id", "left")
        .join(company.select("company_id", "company_name"), "company_id", "left")
        .withColumn("asked_by", F.concat_ws(", ", "customer_name", "company_name"))
        .selectExpr("ticket_id", "subject", "asked_by", "employee_name looked_after_by")
    )


@mapping.target("ticket_state", key="ticket_id", grain="ticket.ticket_id")
def ticket_state(ticket: DataFrame, ticket_status: DataFrame, reason: DataFrame) -> DataFrame:
    """The latest state of a ticket and why."""
    states = ticket_status.select("ticket_status_id", "ticket_id", "reason_id", "status", "since")
    return _state(ticket, states, reason, "ticket_id")


@mapping.target("ticket_activity", key="ticket_id", grain="ticket.ticket_id")
def ticket_activity(ticket: DataFrame, ticket_message: DataFrame) -> DataFrame:
    """Tickets, and the amount that was written about them."""
    written = ticket_message.groupBy("ticket_id").agg(
        F.count("*").alias("messages"),
        F.sum("characters").alias("characters"),
        F.max("sent_at").alias("last_at"),
    )
    joined = ticket.select("ticket_id").join(written, "ticket_id", "left")
    return joined.select("ticket_id", _or_zero("messages"), _or_zero("characters"), "last_at")


@mapping.target("subscription_card", key="subscription_id", grain="subscription.subscription_id")
def subscription_card(
    subscription: DataFrame, plan: DataFrame, customer: DataFrame, currency: DataFrame
) -> DataFrame:
    """Subscriptions, whose and what they cost."""
    return (
        subscription.select("subscription_id", "plan_id", "customer_id", "seats")
        .join(plan, "plan_id")
        .join(currency, "currency_id")
        .join(customer.select("customer_id", "email"), "customer_id")
        .withColumn("monthly", (F.col("seats") * F.col("monthly")).cast("decimal(16,2)"))
        .withColumn("currency", _currency())
        .selectExpr("subscription_id", "lower(email) email", "plan_name plan", "monthly", "currency")
    )


@mapping.target("subscription_state", key="subscription_id", grain="subscription.subscription_id")
def subscription_state(subscription: DataFrame, subscription_event: DataFrame) -> DataFrame:
    """The latest event of a subscription."""
    events = subscription_event.select("subscription_event_id", "subscription_id", "event", "since")
    latest = _latest(events, "subscription_id")
    return subscription.select("subscription_id").join(latest, "subscription_id", "left")


@mapping.target("store_card", key="store_id", grain="store.store_id")
def store_card(store: DataFrame, address: DataFrame, country: DataFrame, employee: DataFrame) -> DataFrame:
    """Stores, where they are and how many work there."""
    staff = employee.groupBy("store_id").agg(F.count("*").alias("employees"))
    return (
        store.select("store_id", "store_name", "address_id")
        .join(_places(address, country), "address_id")
        .join(staff, "store_id", "left")
        .select("store_id", F.col("store_name").alias("name"), "place", _or_zero("employees"))
    )


def _places(address: DataFrame, country: DataFrame) -> DataFrame:
    return (
        address.select("address_id", "street", "city", "country_id")
        .join(country, "country_id", "left")
        .select("address_id", F.concat_ws(", ", "street", "city", "country_name").alias("place"))
    )


def _uses(rows: DataFrame, kind: str) -> DataFrame:
    return rows.select("address_id", F.lit(kind).alias("kind"))


def _tags(links: DataFrame, tag: DataFrame, by: str) -> DataFrame:
    return links.join(tag, "tag_id").groupBy(by).agg(_united("tag_name", "tags"))


def _united(names: str, alias: str) -> Column:
    return F.concat_ws(", ", F.array_sort(F.collect_set(names))).alias(alias)


def _latest(history: DataFrame, by: str) -> DataFrame:
    """The last row of each history; the key, its first column, decides between rows of one moment."""
    key = history.columns[0]
    newest = Window.partitionBy(by).orderBy(F.desc("since"), F.desc(key))
    return history.withColumn("age", F.row_number().over(newest)).where("age = 1").drop("age", key)


def _state(rows: DataFrame, states: DataFrame, reason: DataFrame, by: str) -> DataFrame:
    latest = rows.select(by).join(_latest(states, by), by, "left")
    return latest.join(reason, "reason_id", "left").selectExpr(by, "status", "reason_text reason", "since")


def _currency() -> Column:
    return F.upper("code").alias("currency")


def _or_zero(number: str) -> Column:
    return F.coalesce(number, F.lit(0)).alias(number)


def _amount(number: str) -> Column:
    return F.coalesce(number, F.lit(0)).cast("decimal(16,2)").alias(number)
