"""Which tables share a view: together no more rows than a chunk, on either side; and how links become
conditions."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from migrator.model.reach import Node, Reach
from migrator.model.table import Column, TableId, TableSchema
from transforms.registry import TargetMapping
from verify.readers.mysql.chunks import DIALECT as MYSQL
from verify.readers.postgres.chunks import DIALECT as POSTGRES
from verify.readers.postgres.chunks import literal
from verify.tables.rounds.progress import Sizes, TableProgress
from verify.tables.rounds.table_reads import shared_views
from verify.tables.sweeps.grain_plan import Grain

NAMES = st.sampled_from("abcde")
TABLE = st.tuples(st.dictionaries(NAMES, st.just(0), min_size=1), st.integers(0, 12))


def progress(number: int, source: Mapping[str, int], target: int) -> TableProgress:
    mapping = TargetMapping(f"t{number}", ("k",), None, lambda: None, tuple(source))  # type: ignore[arg-type, return-value]
    return TableProgress(mapping, sizes=Sizes(dict(source), target))


@given(st.lists(TABLE), st.dictionaries(NAMES, st.integers(0, 12)), st.integers(1, 10))
def test_no_view_has_more_rows_than_a_chunk_and_no_table_is_left_out(
    tables: list[tuple[dict[str, int], int]], sizes: dict[str, int], rows: int
) -> None:
    given_tables = [
        progress(n, {name: sizes.get(name, 0) for name in names}, target)
        for n, (names, target) in enumerate(tables)
    ]
    groups, large = shared_views(given_tables, rows)
    assert [each.target.name for each in given_tables if each not in large] == [
        each.target.name for group in groups for each in group
    ]
    for group in groups:
        names = {name for each in group for name in each.target.sources}
        assert sum(sizes.get(name, 0) for name in names) <= rows
        assert sum(each.sizes.target for each in group if each.sizes) <= rows
    for each in large:
        assert each.sizes is not None
        assert sum(each.sizes.source.values()) > rows or each.sizes.target > rows


def table(name: str) -> TableSchema:
    columns = tuple(Column(column, "int64", True, "bigint") for column in ("id", "up", "o"))
    return TableSchema(TableId("s", name), columns, ("id",))


def test_rows_are_found_link_by_link() -> None:
    nodes = (
        Node("a", table("a")),
        Node("b", table("b"), 0, ("up",), ("id",)),
        Node("c", table("c"), 1, ("id", "o"), ("up", "o")),
    )
    grain = Grain(Reach(("id",), nodes), [("id", "integer")], nullable=True)
    assert grain.wheres('"id" > 3', POSTGRES) == [
        ("a", '"id" > 3'),
        ("b", '("up") IN (SELECT "id" FROM "s"."a" WHERE "id" > 3)'),
        (
            "c",
            '("id", "o") IN (SELECT "up", "o" FROM "s"."b"'
            ' WHERE ("up") IN (SELECT "id" FROM "s"."a" WHERE "id" > 3))',
        ),
    ]


@given(st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_a_text_is_no_sql(value: str) -> None:
    """Whatever it is: between quotes that it can't end, or as hexadecimal digits."""
    said = literal("text", value)
    body = said.strip().removeprefix("E")
    assert body.startswith("'")
    assert body.endswith("'")
    inner = body[1:-1].replace("''", "")
    assert "'" not in inner.replace("\\\\", "")
    assert MYSQL.literal("text", value) == f"_utf8mb4 X'{value.encode().hex()}'"
