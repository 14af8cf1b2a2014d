"""Whatever a source can hold, the mirror beside each target holds, finds and tells apart."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from migrator.adapters.targets.mysql.mirror.names import control_table, mirror_table
from migrator.adapters.targets.postgres.mirror import tables as mirror_tables
from migrator.adapters.targets.shared.mirror.columns import COMMENT, FORMAT
from migrator.errors import TargetError
from migrator.model.reach import Node, Reach
from migrator.model.table import Column, TableId, TableSchema
from migrator.ports.mirror import JoinedTarget, Mirror, MirrorRows
from tests.integration.target_bench import MIGRATION
from tests.integration.targets.test_mirror import Bench, joined_by, marking, schema_of, table
from tests.servers import Database

pytestmark = pytest.mark.integration

NAME = schema_of("name", ("text", "part"), text="string", part="binary", note="string")
USE = schema_of("use", ("id",), id="int32", text="string", part="binary")
NAMES = joined_by(
    Reach(("text", "part"), (Node("name", NAME), Node("use", USE, 0, ("text", "part"), ("text", "part"))))
)
USES = joined_by(
    Reach(("text", "part"), (Node("use", USE), Node("name", NAME, 0, ("text", "part"), ("text", "part"))))
)
COMPUTED = joined_by(Reach((), (Node("name", NAME),), "first letter"))


@pytest.fixture(params=["pg", "maria", "mysql"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(request.getfixturevalue(f"new_{request.param}"), tmp_path)
    yield made
    made.target.close()


def texts() -> list[str]:
    """Different texts that servers, indexes, collations or programs take for one, cut, or don't take at all."""
    dice = random.Random(27)
    long = "".join(chr(dice.randrange(32, 0xD7FF)) for _ in range(40_000))
    edges = ["x" * size for size in (62, 63, 64, 65, 254, 255, 256, 767, 1023, 1024, 1025, 2704, 3072, 3073)]
    return [
        "", "\0", "\0\0", "a\0", "a\0b", "a", "A", "a ", "a  ", " a", "ä", "a\u0308", "\\", "\\0", "\\N", "NULL",
        "\t", "\r\n", "\ufeff", "\uffff", "\U0010ffff", "\x7f", "\x80", "\u200b", "\U0001f600", "'\"`%s{0}", *edges,
        long, long + "a", long + "b", "b" + long, "z" * 5000 + "a", "z" * 5000 + "b", "z" * 5000,
    ]  # fmt: skip


def keys() -> list[tuple[str, bytes]]:
    """Those texts; and bytes that look like what is kept of longer ones."""
    found = [(text, b"") for text in texts()]
    longer = b"y" * 100
    short = longer[:32] + hashlib.sha256(longer).digest()
    more = [longer, short, short + b"\0", b"\0", b"\xff" * 64, b"\xff" * 4000, bytes(range(256)) * 20]
    return found + [("k", part) for part in more]


def rows_of(mirror: Mirror, schema: TableSchema) -> list[tuple[Any, ...]]:
    return sorted(
        (tuple(row.values()) for part in mirror.whole(schema) for row in part.to_pylist()), key=repr
    )


def test_keys_links_and_grains_of_any_content_and_length(bench: Bench) -> None:
    """Dumped, looked up by link, by grain and by key, changed, computed and deleted, each without its
    neighbours."""
    bench.target.prepare_mirror([NAMES, USES, COMPUTED])
    known = keys()
    names = [(text, part, "old") for text, part in known]
    uses = [(number, text, part) for number, (text, part) in enumerate(known)]
    bench.apply(
        marking(NAMES, USES),
        bench.dumped(NAME, *names),
        bench.dumped(USE, *uses),
    )
    assert bench.apply(lambda mirror: (rows_of(mirror, NAME), rows_of(mirror, USE))) == (
        sorted(names, key=repr),
        sorted(uses, key=repr),
    )
    changed = [(text, part, f"new {text}") for text, part in known]
    change = MirrorRows(NAME, (), table(NAME, *names), table(NAME, *changed))
    grains, sides = bench.apply(
        lambda mirror: (mirror.trace(NAMES), list(mirror.slices(NAMES, 10_000))), change
    )
    assert grains == len(known), "no two values are one"
    assert sorted((tuple(r.values()) for r in sides[0].after["use"].to_pylist()), key=repr) == sorted(
        uses, key=repr
    )
    for number, (text, part) in list(enumerate(known))[::2]:
        again = MirrorRows(NAME, (), table(NAME, changed[number]), table(NAME, names[number]))
        found = bench.apply(
            lambda mirror: [(mirror.trace(one), list(mirror.slices(one, 9))) for one in (NAMES, USES)], again
        )
        for grains, sides in found:
            assert grains == 1, (text[:40], part[:40])
            (side,) = sides
            assert side.before["name"].to_pylist() == [dict(zip(NAME.names(), changed[number], strict=True))]
            assert side.after["name"].to_pylist() == [dict(zip(NAME.names(), names[number], strict=True))]
            assert [row["id"] for row in side.after["use"].to_pylist()] == [number]
    gone = MirrorRows(NAME, (), table(NAME, *names[::2]), None)
    assert bench.apply(lambda mirror: rows_of(mirror, NAME), gone) == sorted(changed[1::2], key=repr)


def test_computed_grains_of_such_keys_are_found_again(bench: Bench) -> None:
    bench.target.prepare_mirror([COMPUTED])
    (reach,) = COMPUTED.reaches
    names = [(text, part, "old") for text, part in keys()]

    def numbered(mirror: Mirror, rows: list[tuple[Any, ...]], first: int) -> pa.Table:
        found = table(NAME, *rows).select(["text", "part"])
        numbers = pa.array(range(first, first + len(rows)), pa.int64())
        return found.append_column("~number", numbers)

    def fill(mirror: Mirror) -> None:
        mirror.number_all(reach, iter([numbered(mirror, names, 0)]))
        mirror.mark_filled(COMPUTED)

    bench.apply(fill, bench.dumped(NAME, *names))
    for place in range(0, len(names), 7):
        changed = (*names[place][:2], "new")

        def renumbered(mirror: Mirror, place: int = place, row: tuple[Any, ...] = changed) -> Any:
            roots = mirror.roots(reach, [])
            assert roots is not None
            assert [tuple(one.values()) for one in roots["name"].to_pylist()] == [row]
            mirror.renumber(reach, numbered(mirror, [row], 1000 + place))
            return mirror.trace(COMPUTED), list(mirror.slices(COMPUTED, 9))

        grains, sides = bench.apply(
            renumbered, MirrorRows(NAME, (), table(NAME, names[place]), table(NAME, changed))
        )
        assert grains == 2, "its old number and its new one"
        after = {tuple(row.values()) for side in sides for row in side.after["name"].to_pylist()}
        assert after == {changed}


def test_a_database_of_a_small_character_set_holds_every_text(new_pg: Database, tmp_path: Path) -> None:
    new_pg.execute("CREATE DATABASE small TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    small = Database(new_pg.host, new_pg.port, "small", new_pg.user, new_pg.password, new_pg.kind)
    bench = Bench(small, tmp_path)
    try:
        bench.target.prepare_mirror([NAMES])
        rows = [("漢 \0 😀", b"\0", "€"), ("é", b"\xe9", "é")]
        bench.apply(lambda mirror: None, bench.dumped(NAME, *rows))
        assert bench.apply(lambda mirror: rows_of(mirror, NAME)) == sorted(rows, key=repr)
    finally:
        bench.target.close()
        new_pg.execute("DROP DATABASE small WITH (FORCE)")


def wide(columns: int, kind: str) -> TableSchema:
    more = tuple(Column(f"c{number}", kind, True, kind) for number in range(columns))
    return TableSchema(TableId("old", "wide"), (Column("id", "int32", False, "int"), *more), ("id",))


def reading(schema: TableSchema, *names: str) -> JoinedTarget:
    target = joined_by(Reach(("id",), (Node("wide", schema),)))
    return JoinedTarget(target.table, target.reaches, {"wide": names})


@pytest.mark.parametrize(("columns", "kind"), [(1599, "int8"), (900, "string"), (1200, "decimal(20,0)")])
def test_a_very_wide_table_is_held_as_far_as_it_is_read(bench: Bench, columns: int, kind: str) -> None:
    schema = wide(columns, kind)
    target = reading(schema, "c3", f"c{columns - 1}")
    bench.target.prepare_mirror([target])
    value = {"int8": 7, "string": "é" * 30, "decimal(20,0)": 2**64 - 1}[kind]
    bench.apply(lambda mirror: mirror.mark_filled(target), bench.dumped(schema, (1, *[value] * columns)))
    (row,) = bench.apply(lambda mirror: next(iter(mirror.whole(schema))).to_pylist())
    assert row == {"id": 1, "c3": value, f"c{columns - 1}": value}
    changed = table(schema, (1, *[None] * columns))
    grains, _ = bench.apply(
        lambda mirror: (mirror.trace(target), list(mirror.slices(target, 9))),
        MirrorRows(schema, (), changed, changed),
    )
    assert grains == 1
    with pytest.raises(TargetError, match="doesn't hold what the mapping reads") as refused:
        bench.target.prepare_mirror([reading(schema, "c4")])
    assert "so many columns" in refused.value.cause


def test_more_columns_than_a_table_can_have_are_refused_by_name(bench: Bench) -> None:
    schema = wide(1601, "string")
    with pytest.raises(
        TargetError, match="the mirror can't hold the columns that joined mappings read"
    ) as found:
        bench.target.prepare_mirror([reading(schema, *schema.names())])
    assert "read fewer" in found.value.remedy
    bench.target.prepare_mirror([reading(schema, "c3")])  # what the remedy says


@pytest.mark.slow
def test_a_row_that_no_page_of_the_server_holds_is_named(bench: Bench) -> None:
    """Its remedy is true: without the joined mapping the row isn't kept."""
    columns, kind, value = (
        (1500, "int64", 2**40) if bench.new.kind == "postgresql" else (400, "string", "v" * 40)
    )
    schema = wide(columns, kind)
    target = reading(schema, *schema.names())
    if bench.new.kind != "postgresql":
        with pytest.raises(TargetError, match="the mirror can't hold the columns"):
            bench.target.prepare_mirror([target])
        return
    bench.target.prepare_mirror([target])
    rows = [(number, *[value if number == 37 else None] * columns) for number in range(50)]
    with pytest.raises(TargetError, match=r"a row of old\.wide can't be kept in the mirror") as found:
        bench.apply(lambda mirror: None, bench.dumped(schema, *rows))
    assert "old.wide, id=37, the longest value: c0 = 1099511627776" in found.value.where
    bench.segment -= 1
    with pytest.raises(TargetError, match="can't be kept") as again:
        bench.apply(lambda mirror: None, MirrorRows(schema, (), table(schema, rows[0]), table(schema, *rows)))
    assert "id=37" in again.value.where


OLD_POSTGRES = (
    'CREATE TABLE {name} ("text" text COLLATE "C", part bytea, note text COLLATE "C", PRIMARY KEY ("text", part))',
    'CREATE TABLE {use} (id integer PRIMARY KEY, "text" text COLLATE "C", part bytea)',
    'CREATE INDEX {linked} ON {use} ("text", part)',
    'CREATE TABLE {number} ("text" text COLLATE "C", part bytea, "~number" bigint NOT NULL,'
    ' PRIMARY KEY ("text", part))',
)


def test_a_mirror_of_the_first_format_is_brought_up_to_date_on_postgresql(
    new_pg: Database, tmp_path: Path
) -> None:
    bench = Bench(new_pg, tmp_path)
    bench.target.prepare_mirror([NAMES])
    bench.apply(lambda mirror: None)  # some segment: what stands beside an empty ledger is dropped
    new_pg.execute("DROP SCHEMA migrator_mirror CASCADE")
    names = {
        "name": mirror_tables.mirror_table(MIGRATION, NAME.id), "use": mirror_tables.mirror_table(MIGRATION, USE.id),
        "number": mirror_tables.number_table(MIGRATION, COMPUTED.reaches[0]),
    }  # fmt: skip
    linked = mirror_tables._index_name(names["use"], '"text", "part"')
    quoted = {name: f'{place.schema}."{place.name}"' for name, place in names.items()}
    new_pg.execute(
        "CREATE SCHEMA migrator_mirror", mirror_tables._MAKE_FILLED,
        f"COMMENT ON TABLE {mirror_tables.FILLED} IS '{COMMENT}1'",
        *(one.format(**quoted, linked=linked) for one in OLD_POSTGRES),
        f"INSERT INTO {quoted['name']} VALUES ('é', '\\x00', 'note'), ('b', '', NULL)",
        f"INSERT INTO {quoted['use']} VALUES (1, 'é', '\\x00'), (2, NULL, NULL)",
        f"INSERT INTO {quoted['number']} VALUES ('é', '\\x00', 4), ('b', '', 5)",
    )  # fmt: skip
    for _ in range(2):
        bench.target.prepare_mirror([NAMES, USES, COMPUTED])
        assert new_pg.query(f"SELECT obj_description('{mirror_tables.FILLED}'::regclass)") == [
            (f"{COMMENT}{FORMAT}",)
        ]
    old = [("b", b"", None), ("é", b"\0", "note")]
    assert bench.apply(lambda mirror: rows_of(mirror, NAME)) == sorted(old, key=repr)
    _brought_up_to_date(bench)
    assert not new_pg.query("SELECT 1 FROM pg_indexes WHERE indexname = %s", [linked])
    bench.target.close()


def _brought_up_to_date(bench: Bench) -> None:
    """The old rows are found, and what the first format didn't take is taken."""
    new = ("\0" + "y" * 4000, b"\xff" * 4000, "\0")
    bench.apply(marking(NAMES, USES, COMPUTED))
    change = MirrorRows(
        NAME, (), table(NAME, ("é", b"\0", "note")), table(NAME, ("é", b"\0", "changed"), new)
    )

    def traced(mirror: Mirror) -> Any:
        roots = mirror.roots(COMPUTED.reaches[0], [])
        assert roots is not None
        assert roots["name"].num_rows == 2
        numbers = (
            roots["name"].select(["text", "part"]).append_column("~number", pa.array([8, 9], pa.int64()))
        )
        mirror.renumber(COMPUTED.reaches[0], numbers)
        return mirror.trace(COMPUTED), mirror.trace(NAMES), list(mirror.slices(NAMES, 9))

    computed, grains, (side,) = bench.apply(
        traced, change, MirrorRows(USE, (), None, table(USE, (3, *new[:2])))
    )
    assert (computed, grains) == (3, 2)
    assert sorted(row["id"] for row in side.after["use"].to_pylist()) == [1, 3]
    assert sorted(row["id"] for row in side.before["use"].to_pylist()) == [1]


def test_a_mirror_of_the_first_format_is_brought_up_to_date_on_mysql(mysql_bench: Bench) -> None:
    bench, new = mysql_bench, mysql_bench.new
    bench.target.prepare_mirror([NAMES, USES, COMPUTED])
    old = [("é", b"\0", "note"), ("b", b"", None)]
    bench.apply(
        lambda mirror: mirror.number_all(
            COMPUTED.reaches[0],
            iter([table(NAME, *old).select(["text", "part"]).append_column("~number", pa.array([4, 5], pa.int64()))]),
        ),
        bench.dumped(NAME, *old), bench.dumped(USE, (1, "é", b"\0"), (2, None, None)),
    )  # fmt: skip
    shorts = "DROP COLUMN `~row`, DROP KEY `~key`, DROP COLUMN `~key 0`, DROP COLUMN `~key 1`"
    first = "MODIFY text VARBINARY(1536) NOT NULL, MODIFY part VARBINARY(1536) NOT NULL, ADD PRIMARY KEY (text, part)"
    places = [mirror_table(new.database, MIGRATION, NAME.id)]
    places += [
        TableId(places[0].schema, str(name, "utf-8") if isinstance(name, bytes) else name)
        for (name,) in new.query(
            "SELECT table_name FROM information_schema.tables"
            " WHERE table_schema = %s AND table_name LIKE '%%.grain.%%'",
            [places[0].schema],
        )
    ]
    assert len(places) == 2
    for place in places:
        name = f"`{place.schema}`.`{place.name}`"
        new.execute(f"ALTER TABLE {name} {shorts}", f"ALTER TABLE {name} {first}")
    filled = control_table(new.database, "filled")
    new.execute(f"ALTER TABLE {filled} COMMENT = '{COMMENT}1'")
    for _ in range(2):
        bench.target.prepare_mirror([NAMES, USES, COMPUTED])
    comment = "SELECT table_comment FROM information_schema.tables WHERE table_schema = %s AND table_name = 'filled'"
    assert new.query(comment, [places[0].schema]) == [(f"{COMMENT}{FORMAT}",)]
    assert bench.apply(lambda mirror: rows_of(mirror, NAME)) == sorted(old, key=repr)
    _brought_up_to_date(bench)


@pytest.fixture(params=["maria", "mysql"])
def mysql_bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(request.getfixturevalue(f"new_{request.param}"), tmp_path)
    yield made
    made.target.close()
