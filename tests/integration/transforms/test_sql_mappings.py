"""Mappings written as Spark SQL: what they read, what is refused, where it is said to be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.errors import MappingError
from migrator.model.reach import Reference
from migrator.model.table import Column, TableId, TableSchema
from migrator.model.target import TargetColumn
from transforms import load_mapping
from transforms.analysis.plan import MappingKind, MappingPlan, analyse
from transforms.testing import run

pytestmark = pytest.mark.spark

Write = Callable[..., Path]


def table(name: str, **types: str) -> TableSchema:
    columns = tuple(Column(column, type_, True, type_) for column, type_ in types.items())
    return TableSchema(TableId("public", name), columns, (columns[0].name,))


SCHEMAS = {
    "orders": table("orders", order_id="int64", customer="string", at="timestamp"),
    "line": table("line", line_id="int64", order_id="int64", amount="decimal(10,2)", code="string"),
    "order-note": table("order-note", note_id="int64", text="string"),
}
LINE_TO_ORDER = Reference(SCHEMAS["line"].id, ("order_id",), SCHEMAS["orders"].id, ("order_id",))
HEAD = "-- target: summary\n-- key: order_id\n"
GRAIN = "-- grain: orders.order_id\n"
JOIN = (
    "SELECT o.order_id, sum(l.amount) AS total FROM orders o JOIN line l USING (order_id) GROUP BY o.order_id"
)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a ``.sql`` file beside a mapping.py that need not exist; the path to load."""

    def file(text: str, name: str = "summary.sql") -> Path:
        (tmp_path / name).write_text(text)
        return tmp_path / "mapping.py"

    return file


def plan_of(spark: SparkSession, path: Path, *columns: tuple[str, str]) -> MappingPlan:
    [target] = load_mapping(path, lambda: spark)
    wanted = columns or (("order_id", "bigint"), ("total", "decimal(20,2)"))
    found = tuple(TargetColumn(name, kind, kind, True, False, False) for name, kind in wanted)
    return analyse(spark, target, SCHEMAS, found, [LINE_TO_ORDER])


def refusal(spark: SparkSession, path: Path, *columns: tuple[str, str]) -> str:
    with pytest.raises(MappingError) as failure:
        plan_of(spark, path, *columns)
    assert failure.value.where
    assert failure.value.remedy
    return "\n".join(failure.value.lines())


def test_a_select_over_one_table_is_row_wise(spark: SparkSession, write: Write) -> None:
    plan = plan_of(spark, write(HEAD + "SELECT order_id, 1.5 AS total FROM orders WHERE customer <> '';"))
    assert plan.kind is MappingKind.ROW_WISE
    assert dict(plan.reads) == {"orders": ("order_id", "customer")}


def test_a_join_has_its_links_from_foreign_keys_as_in_python(spark: SparkSession, write: Write) -> None:
    plan = plan_of(spark, write(HEAD + GRAIN + JOIN))
    assert plan.kind is MappingKind.GRAIN
    [reach] = plan.reaches
    assert [(node.role, node.columns) for node in reach.nodes] == [("orders", ()), ("line", ("order_id",))]


def test_links_roles_and_values_are_declared_in_the_head(spark: SparkSession, write: Write) -> None:
    head = "-- grain: line.kind\n-- value: line.kind = upper(code)\n-- role: twin = line\n"
    head += "-- link: twin.line_id = line.order_id\n"
    query = (
        "SELECT a.line_id AS order_id, b.amount AS total FROM line a JOIN line b ON b.line_id = a.order_id"
    )
    [reach] = plan_of(spark, write(HEAD + head + query)).reaches
    assert [node.role for node in reach.nodes] == ["line", "twin"]
    assert reach.grain[0].startswith("~kind")


def test_surrogates_are_declared_in_the_head(spark: SparkSession, write: Write) -> None:
    head = "-- surrogate: order_id = orders\n-- surrogate: buyer = person\n"
    text = f"{HEAD}{head}SELECT order_id, customer AS buyer FROM orders"
    [target] = load_mapping(write(text), lambda: spark)
    assert target.surrogates == (("order_id", "orders"), ("buyer", "person"))


def test_tables_are_those_of_the_parsed_plan(spark: SparkSession, write: Write) -> None:
    text = (
        HEAD
        + """
        WITH orders AS (SELECT order_id FROM line)      -- hides the table orders, in this query alone
        SELECT order_id, 'FROM customer' AS text FROM orders
        WHERE EXISTS (SELECT 1 FROM `order-note` n WHERE n.note_id = orders.order_id)"""
    )
    [target] = load_mapping(write(text), lambda: spark)
    assert target.sources == ("line", "order-note")
    assert target.where_named("order-note").endswith("summary.sql:6")


def test_several_queries_in_a_file_and_functions_beside_it(spark: SparkSession, write: Write) -> None:
    second = "-- what comes next\n-- target: note\n-- key: note_id\nSELECT note_id FROM `order-note`;\n"
    path = write(f"{HEAD}SELECT order_id FROM orders;\n\n{second}")
    path.write_text(
        "from transforms import Mapping\nmapping = Mapping()\n"
        "@mapping.target('a', key='order_id')\ndef a(orders):\n    return orders\n"
    )
    write("CREATE TABLE x (y int);", "schema.sql")
    mapping = load_mapping(path, lambda: spark)
    assert [target.name for target in mapping] == ["a", "summary", "note"]
    assert [file.name for file in mapping.aside] == ["schema.sql"]
    assert [t.name for t in load_mapping(path.parent / "summary.sql", lambda: spark)] == ["summary", "note"]


def test_a_query_may_be_the_next_one_of_its_target(spark: SparkSession, write: Write) -> None:
    following = f"{HEAD.replace('target', 'next')}SELECT order_id, 2 AS total FROM orders;\n"
    mapping = load_mapping(write(f"{HEAD}SELECT order_id FROM orders;\n{following}"), lambda: spark)
    assert [one.name for one in mapping] == ["summary"]
    assert mapping.nexts["summary"].where().endswith("summary.sql:4")
    with pytest.raises(MappingError, match="two next functions"):
        load_mapping(write(f"{HEAD}SELECT order_id FROM orders;\n{following}{following}"), lambda: spark)


def test_the_unit_test_helper_runs_a_query(spark: SparkSession, write: Write) -> None:
    mapping = load_mapping(write(HEAD + GRAIN + JOIN))
    lines = [{"order_id": 1, "amount": 2}, {"order_id": 1, "amount": 3}, {"order_id": 9, "amount": 4}]
    assert run(mapping, "summary", orders=[{"order_id": 1}], line=lines) == [{"order_id": 1, "total": 5}]
    assert not spark.catalog.tableExists("orders"), "a view was left behind"
    with pytest.raises(MappingError, match=r"unknown column 'l\.amount'.*summary\.sql:4"):
        run(mapping, "summary", orders=[{"order_id": 1}], line=[{"order_id": 1}])


@pytest.mark.parametrize(
    ("function", "name"),
    [
        ("rand()", "rand"),
        ("uuid()", "uuid"),
        ("now()", "now"),
        ("current_timestamp", "current_timestamp"),
        ("current_date()", "current_date"),
        ("monotonically_increasing_id()", "monotonically_increasing_id"),
        ("current_user()", "current_user"),
        ("cast('today' AS date)", "'today'"),
    ],
)
def test_what_differs_each_time_is_refused(
    spark: SparkSession, write: Write, function: str, name: str
) -> None:
    said = refusal(spark, write(f"{HEAD}SELECT order_id, string({function}) AS total FROM orders"))
    assert "other values each time" in said
    assert name in said


def test_a_join_without_grain_or_links_says_what_to_declare(spark: SparkSession, write: Write) -> None:
    said = refusal(spark, write(HEAD + JOIN))
    assert "Join of orders with line" in said
    assert "-- grain: orders.order_id" in said
    text = f"{HEAD}{GRAIN}SELECT order_id, count(note_id) AS total FROM orders CROSS JOIN `order-note` GROUP BY 1"
    said = refusal(spark, write(text))
    assert "nothing links table order-note to the grain's table orders" in said
    assert "order-note.<column> = orders.<column>" in said


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (f"{HEAD}SELECT order_id\nFORM orders x y;", 4, "Syntax error"),
        (f"{HEAD}SELECT order_id,\n  amuont\nFROM line;", 4, "unknown column 'amuont'"),
        (f"{HEAD}SELECT order_id\nFROM ordres;", 4, "did you mean 'orders'"),
        (f"{HEAD}SELECT order_id\nFROM shop.orders;", 4, "name the table alone: orders"),
        (f"{HEAD}SELECT order_id FROM orders\nJOIN Orders USING (order_id);", 4, "in two ways"),
        (f"{HEAD}INSERT INTO orders SELECT 1;", 3, "Syntax error"),
        (f"{HEAD}SELECT 1 AS order_id;", 1, "reads no table"),
        (f"{HEAD}SELECT order_id FROM orders;\n{HEAD}SELECT order_id FROM line;", 4, "is mapped twice"),
        ("-- target: summary\nSELECT order_id FROM orders", 1, "-- key: order_id"),
        (f"{HEAD}-- grian: orders.order_id\nSELECT order_id FROM orders", 3, "write `-- grain: ...`"),
        (f"{HEAD}-- key: customer\nSELECT order_id FROM orders", 3, "comes twice"),
        (f"{HEAD}-- grain: orders.order_id\n-- role: x\n{JOIN}", 4, "-- role: manager = employee"),
        (f"{HEAD}-- link: a.b = c.d\n{JOIN}", 1, "grain"),
        ("-- key: id\n-- target: x\nSELECT id FROM orders", 1, "comes before `-- target:`"),
        (f"{HEAD}-- nothing else", 1, "no query follows"),
    ],
)
def test_mistakes_are_named_with_file_and_line(
    spark: SparkSession, write: Write, text: str, line: int, says: str
) -> None:
    said = refusal(spark, write(text))
    assert f"summary.sql:{line}" in said
    assert says in said


def test_a_word_of_the_environment_is_not_put_into_the_text(spark: SparkSession, write: Write) -> None:
    mapping = load_mapping(
        write(f"{HEAD}SELECT order_id, '${{env:HOME}}' AS home FROM orders"), lambda: spark
    )
    assert run(mapping, "summary", orders=[{"order_id": 1}]) == [{"order_id": 1, "home": "${env:HOME}"}]


def test_nothing_to_load_is_said(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(MappingError, match="does not exist"):
        load_mapping(tmp_path / "mapping.py", lambda: spark)
    (tmp_path / "empty.sql").write_text("SELECT 1;")
    with pytest.raises(MappingError, match="has no target table"):
        load_mapping(tmp_path / "empty.sql", lambda: spark)
