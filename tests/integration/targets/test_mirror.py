"""The mirror beside each target: exact values, links that compare as mappings do, indexes, and where it stands."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from migrator.adapters.targets.mysql.mirror.names import control_table, grain_column, index_name
from migrator.adapters.targets.mysql.target import MysqlTargetWriter
from migrator.adapters.targets.postgres.mirror import tables as mirror_tables
from migrator.adapters.targets.postgres.target import PostgresTargetWriter
from migrator.adapters.targets.shared.mirror.batch import BatchMirror
from migrator.columnar.types import arrow_schema
from migrator.errors import TargetError
from migrator.model.reach import Node, Reach
from migrator.model.table import Column, TableId, TableSchema
from migrator.model.target import TargetTable
from migrator.ports.mirror import JoinedTarget, Mirror, MirrorRows
from migrator.ports.target import Target, TargetBatch
from tests.contract.targets.target_under_test import checkpoint
from tests.integration import target_bench, target_bench_mysql
from tests.servers import Database

pytestmark = pytest.mark.integration


def schema_of(name: str, key: tuple[str, ...], /, **types: str) -> TableSchema:
    columns = tuple(Column(one, kind, one not in key, kind) for one, kind in types.items())
    return TableSchema(TableId("old", name), columns, key)


THING = schema_of(
    "thing", ("Code", "part"), Code="string", part="binary", code="string", number="decimal(38,35)",
    chunk="decimal(20,0)", flag="bool", tiny="int8", small="int16", middle="int32", big="int64", single="float32",
    double="float64", note="string", bytes="binary", day="date", at="timestamp", instant="timestamptz",
)  # fmt: skip
WORD = schema_of("word", ("id",), id="int32", name="string")
USE = schema_of("use", ("id",), id="int32", word_name="string", times="int32")


class Bench:
    """A writer whose batches bring mirrored rows only."""

    def __init__(self, new: Database, folder: Path):
        self.new, self.folder, self.segment = new, folder, 0
        self.target = self.another()
        self.target.open(1)

    def another(self) -> Target:
        if self.new.kind == "postgresql":
            return PostgresTargetWriter(target_bench.settings_of(self.new))
        return MysqlTargetWriter(target_bench_mysql.settings_of(self.new))

    def apply(self, use: Callable[[Mirror], object], *rows: MirrorRows) -> Any:
        """One batch; what ``use`` gives inside its transaction."""
        found = []

        def joined(mirror: Mirror) -> Iterator[Any]:
            found.append(use(mirror))
            return iter(())

        self.segment += 1
        self.target.apply(TargetBatch(self.segment, checkpoint(self.segment), (), rows, joined))
        return found[0]

    def dumped(self, schema: TableSchema, *rows: tuple[Any, ...]) -> MirrorRows:
        path = self.folder / f"{schema.id.name}-{self.segment}.parquet"
        pq.write_table(table(schema, *rows), path)
        return MirrorRows(schema, (str(path),), None, None)


def table(schema: TableSchema, *rows: tuple[Any, ...]) -> pa.Table:
    shape = arrow_schema(schema)
    columns = list(zip(*rows, strict=True)) or [()] * len(shape)
    return pa.table(
        [pa.array(values, field.type) for values, field in zip(columns, shape, strict=True)], schema=shape
    )


def marking(*targets: JoinedTarget) -> Callable[[Mirror], None]:
    """For ``Bench.apply``: has the targets in step with the mirror."""

    def mark(mirror: Mirror) -> None:
        for one in targets:
            mirror.mark_filled(one)

    return mark


def joined_by(reach: Reach) -> JoinedTarget:
    made = TargetTable(TableId("new", f"made from {reach.grain}"), (), ("id",))
    return JoinedTarget(made, (reach,), {name: one.names() for name, one in reach.tables().items()})


WORDS = joined_by(
    Reach(("id",), (Node("word", WORD), Node("use", USE, 0, ("word_name",), ("name",))))
)  # by a text column, on both sides no key
NAMES = joined_by(Reach(("name",), (Node("word", WORD),)))


@pytest.fixture(params=["pg", "maria", "mysql"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(request.getfixturevalue(f"new_{request.param}"), tmp_path)
    yield made
    made.target.close()


@pytest.fixture(params=["maria", "mysql"])
def mysql_bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(request.getfixturevalue(f"new_{request.param}"), tmp_path)
    yield made
    made.target.close()


def thing(code: str, part: bytes, *rest: Any) -> tuple[Any, ...]:
    return (code, part, *rest, *[None] * (len(THING.columns) - 2 - len(rest)))


def test_every_value_comes_back_as_it_was(bench: Bench) -> None:
    tiny = Decimal("0.00000000000000000000000000000000001")
    rows = [
        thing("a", b"\x00", "A", tiny, Decimal(2**64 - 1), True, -128, -(2**15), -(2**31), -(2**63), -0.0, -0.0, "",
              b"", -719162, -(2**63) + 1, 2**63 - 1),
        thing("a", b"\x00\x00", "a ", -tiny, Decimal(0), False, 127, 2**15 - 1, 2**31 - 1, 2**63 - 1, 1.1, 5e-324,
              "tab\t line\n back\\slash 'quote' \U0001f600", bytes(range(256)), 2**31 - 1, 0, 0),
        thing("A", b"\x00", None, Decimal("999.99999999999999999999999999999999999"), None, None, 0, 0, 0, 0,
              math.inf, -math.inf, " " * 70_000, b"\xff" * 300, -(2**31), -(2**63), 1),
        thing("a ", b"\x00", None, None, None, None, 0, 0, 0, 0, math.nan, math.nan),
        thing("é", b"\x00"),
        thing("e\u0301", b"\x00"),
    ]  # fmt: skip
    target = joined_by(Reach(("Code", "part"), (Node("thing", THING),)))
    bench.target.prepare_mirror([target])
    bench.apply(lambda mirror: mirror.mark_filled(target), bench.dumped(THING, *rows))

    def whole(mirror: Mirror) -> pa.Table:
        return pa.concat_tables(list(mirror.whole(THING)))

    def shown(found: pa.Table) -> list[str]:
        days = found.set_column(14, "day", found["day"].cast(pa.int32()))
        for place, name in ((15, "at"), (16, "instant")):
            days = days.set_column(place, name, days[name].cast(pa.int64()))
        return sorted(map(repr, days.to_pylist()))

    assert shown(bench.apply(whole)) == shown(table(THING, *rows))
    before, after = table(THING, rows[0]), table(THING, thing("a", b"\x00", "new"))
    changed = bench.apply(
        lambda mirror: (mirror.trace(target), next(mirror.slices(target, 9))),
        MirrorRows(THING, (), before, after),
    )
    assert changed[0] == 1
    assert shown(changed[1].before["thing"]) == shown(before)
    assert shown(changed[1].after["thing"]) == shown(after)
    gone = MirrorRows(THING, (), table(THING, *rows[1:]), None)
    assert shown(bench.apply(whole, gone)) == shown(after)


def test_links_and_grains_compare_bytes_as_the_mapping_does(bench: Bench) -> None:
    names = ["a", "A", "a ", "à", "a\u0300", None, None, "x" * 300 + "a", "x" * 300 + "b"]
    words = list(enumerate(names, 1))
    bench.target.prepare_mirror([WORDS, NAMES])
    bench.apply(
        marking(WORDS, NAMES),
        bench.dumped(WORD, *words),
        bench.dumped(USE, *((number, name, 0) for number, name in words)),
    )
    for number, name in words:
        change = MirrorRows(USE, (), table(USE, (number, name, 0)), table(USE, (number, name, 1)))
        grains, sides = bench.apply(
            lambda mirror: (mirror.trace(WORDS), list(mirror.slices(WORDS, 9))), change
        )
        if name is None:
            assert (grains, sides) == (0, [])
            continue
        assert grains == 1
        (side,) = sides
        assert side.after["word"].to_pylist() == [{"id": number, "name": name}]
        assert side.after["use"].to_pylist() == [{"id": number, "word_name": name, "times": 1}]
        assert side.before["use"].to_pylist() == [{"id": number, "word_name": name, "times": 0}]
    for number, name in ((1, "a"), (6, None)):
        moved = MirrorRows(WORD, (), table(WORD, (number, name)), table(WORD, (number, "A")))
        grains, sides = bench.apply(
            lambda mirror: (mirror.trace(NAMES), list(mirror.slices(NAMES, 9))), moved
        )
        assert grains == 2
        there = {row["id"] for row in sides[0].after["word"].to_pylist()}
        assert there == ({1, 2} if name == "a" else {1, 2, 6, 7}), "NULLs are one grain"


def test_lookups_go_by_an_index(mysql_bench: Bench) -> None:
    """By a column of bytes too, of which the index has the first ones only."""
    bench = mysql_bench
    bench.target.prepare_mirror([WORDS, NAMES])
    rows = [(number, f"name {number}", 0) for number in range(3000)]

    def explained(mirror: Mirror) -> list[Any]:
        assert isinstance(mirror, BatchMirror)
        use, word = mirror._store.mirrored(USE), mirror._store.mirrored(WORD)
        given = "SELECT CAST('name 7' AS BINARY) AS name, 7 AS id UNION ALL SELECT CAST('y' AS BINARY), 8"
        return [
            mirror._store.rows(f"EXPLAIN SELECT m.* FROM ({given}) x {lookup}")
            for lookup in (
                use.lookup(("id",), ("word_name",), ["x.name"]),
                word.lookup(("id",), ("id",), ["x.id"]),
                word.of_grain(("id",), ("name",), "x.id", False),
            )
        ]

    plans = bench.apply(explained, bench.dumped(USE, *rows))
    for plan, index in zip(
        plans, (index_name(("word_name",)), "PRIMARY", index_name([grain_column(("name",))])), strict=True
    ):
        found = rf"index lookup on m using {index}|'m', (None, )?'(eq_)?ref', .*'{index}'"
        assert re.search(found, repr(plan), re.IGNORECASE), plan


def test_a_whole_number_key_is_its_grains_number(new_pg: Database, tmp_path: Path) -> None:
    """Found by the key's own index: the one by hashes, which older mirrors have, is dropped."""
    bench = Bench(new_pg, tmp_path)
    bench.target.prepare_mirror([WORDS, NAMES])
    (mirrored,) = bench.new.query("SELECT tablename FROM pg_tables WHERE tablename LIKE '%.word'")[0]
    hashed = mirror_tables._hashed(['"id"'])
    name = mirror_tables._index_name(TableId("", mirrored), f"({hashed})")
    bench.new.execute(f'CREATE INDEX {name} ON migrator_mirror."{mirrored}" (({hashed}))')
    bench.target.prepare_mirror([WORDS, NAMES])
    indexes = dict(
        bench.new.query("SELECT indexname, indexdef FROM pg_indexes WHERE tablename = %s", [mirrored])
    )
    assert name not in indexes
    assert sum("hash_record_extended" in one for one in indexes.values()) == 1, (
        "of the text, which may be NULL"
    )

    def lookup(mirror: Mirror) -> str:
        assert isinstance(mirror, BatchMirror)
        return mirror._store.mirrored(WORD).of_grain(("id", "name"), ("id",), "p.number", False)

    rows = [(number, f"name {number}") for number in range(-2000, 2000)]
    found = bench.apply(lookup, bench.dumped(WORD, *rows))
    given = "(SELECT generate_series(-5, 5)::bigint AS number) p"
    plan = repr(bench.new.query(f"EXPLAIN SELECT m.* FROM {given} {found}"))
    assert re.search(r"Index Scan using \S+word_pkey", plan), plan

    changed = table(WORD, *((number, f"NAME {number}") for number in range(-5, 6)))
    bench.apply(
        lambda mirror: mirror.mark_filled(WORDS), bench.dumped(USE)
    )  # from now on changes are followed
    grains, sides = bench.apply(
        lambda mirror: (mirror.trace(WORDS), list(mirror.slices(WORDS, 4))),
        MirrorRows(WORD, (), changed, changed),
    )
    assert grains == 11
    slices = [sorted(row["id"] for row in one.after["word"].to_pylist()) for one in sides]
    assert slices == [[-5, -4, -3, -2], [-1, 0, 1, 2], [3, 4, 5]]
    bench.target.close()


def test_a_mirror_that_is_not_at_the_ledgers_place_is_not_used(mysql_bench: Bench) -> None:
    bench = mysql_bench
    bench.target.prepare_mirror([WORDS])
    bench.apply(lambda mirror: None, bench.dumped(WORD, (1, "a")))
    bench.apply(lambda mirror: None)  # brings no rows: the mirror is at its end all the same
    moved = control_table(bench.new.database, "moved")
    assert bench.new.query(f"SELECT DISTINCT segment FROM {moved}") == [(2,)]
    later = bench.another()
    later.open(2)
    later.prepare_mirror([WORDS])
    bench.new.execute(f"UPDATE {moved} SET segment = 1 WHERE mirrored LIKE '%word'")
    with pytest.raises(TargetError, match="isn't where the ledger is"):
        later.prepare_mirror([WORDS])
    later.close()


def test_a_migration_started_anew_begins_with_an_empty_mirror(bench: Bench) -> None:
    bench.target.prepare_mirror([WORDS])
    bench.apply(lambda mirror: mirror.mark_filled(WORDS), bench.dumped(WORD, (1, "vanishes")))
    bench.target.close()
    ledger = "migrator.ledger" if bench.new.kind == "postgresql" else "migrator_ledger"
    bench.new.execute(f"DELETE FROM {ledger}")
    bench.target, bench.segment = bench.another(), 0
    bench.target.open(1)
    bench.target.prepare_mirror([WORDS])

    def seen(mirror: Mirror) -> tuple[list[dict[str, Any]], frozenset[tuple[str, str]]]:
        return [row for part in mirror.whole(WORD) for row in part.to_pylist()], mirror.filled()

    assert bench.apply(seen, bench.dumped(WORD, (2, "stays"))) == ([{"id": 2, "name": "stays"}], frozenset())
    bench.target.prepare_mirror([WORDS])
    assert bench.apply(seen)[0] == [{"id": 2, "name": "stays"}], "a mirror that is in use is kept"


def test_a_link_by_floats_is_refused_by_name(mysql_bench: Bench) -> None:
    price = schema_of("price", ("id",), id="int32", amount="float64")
    with pytest.raises(TargetError, match="floating-point column"):
        mysql_bench.target.prepare_mirror([joined_by(Reach(("amount",), (Node("price", price),)))])


def test_what_a_truncate_takes_away_is_traced_like_any_change(bench: Bench) -> None:
    bench.target.prepare_mirror([WORDS, NAMES])
    words = [(1, "a"), (2, "b"), (3, "a")]
    bench.apply(
        marking(WORDS, NAMES),
        bench.dumped(WORD, *words),
        bench.dumped(USE, *((number, name, 0) for number, name in words)),
    )
    emptied = MirrorRows(USE, (), None, table(USE, (2, "b", 7), (9, "c", 1)), emptied=True)
    grains, sides, left = bench.apply(
        lambda mirror: (
            mirror.trace(WORDS),
            list(mirror.slices(WORDS, 9)),
            pa.concat_tables(list(mirror.whole(USE))).to_pylist(),
        ),
        emptied,
    )
    assert grains == 3
    (side,) = sides
    assert sorted(row["id"] for row in side.before["use"].to_pylist()) == [1, 2, 3]
    assert [tuple(row.values()) for row in side.after["use"].to_pylist()] == [(2, "b", 7)]
    assert sorted(row["id"] for row in side.after["word"].to_pylist()) == [1, 2, 3]
    assert sorted(tuple(row.values()) for row in left) == [(2, "b", 7), (9, "c", 1)]
    dumped = bench.dumped(WORD, (2, "B"), (8, "new"))
    again = MirrorRows(WORD, dumped.chunks, None, None, emptied=True)
    grains, sides = bench.apply(lambda mirror: (mirror.trace(NAMES), list(mirror.slices(NAMES, 9))), again)
    assert grains == 4
    assert sorted(row["name"] for row in sides[0].before["word"].to_pylist()) == ["a", "a", "b"]
    assert sorted(row["name"] for row in sides[0].after["word"].to_pylist()) == ["B", "new"]
