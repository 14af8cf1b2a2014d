"""Foreign keys in any order, cycles, cascades, uniqueness of every kind, identity and generated columns."""

from __future__ import annotations

import threading
from contextlib import closing

import pyarrow as pa
import pytest

from migrator.errors import TargetError
from tests.integration.target_bench import Bench, bench, ints, texts
from tests.servers import Database, needs_postgres

pytestmark = pytest.mark.integration


def two(first: str, second: str, *rows: tuple[int | None, int | None]) -> pa.Table:
    """Rows of two integer columns."""
    return pa.table({**ints(first, *(row[0] for row in rows)), **ints(second, *(row[1] for row in rows))})


def named(*rows: tuple[int, str]) -> pa.Table:
    """Rows of id and name."""
    return pa.table({**ints("id", *(row[0] for row in rows)), **texts("name", *(row[1] for row in rows))})


PARENT = "CREATE TABLE parent (id int PRIMARY KEY, name text UNIQUE)"


@pytest.mark.parametrize("action", ["", "ON DELETE CASCADE", "ON DELETE SET NULL", "ON DELETE RESTRICT"])
@pytest.mark.parametrize("deferrable", ["", "DEFERRABLE"])
def test_children_survive_whatever_happens_to_their_parents(
    new_pg: Database, action: str, deferrable: str
) -> None:
    """Parents swap unique names, one is replaced by a new one of the same name: no child may notice."""
    points = f"p int REFERENCES parent {action} {deferrable}"
    child = f"CREATE TABLE child (id int PRIMARY KEY, {points}, x text DEFAULT 'x')"
    with bench(new_pg, PARENT, child) as it:
        it.apply(
            it.part("child", chunk=two("id", "p", (1, 1), (2, 2), (3, 3))),
            it.part("parent", chunk=named((1, "a"), (2, "b"), (3, "c"))),
        )
        new_pg.execute("UPDATE child SET x = 'own'")
        it.apply(it.part("parent", before=named((1, "a"), (2, "b")), after=named((1, "b"), (2, "a"))))
        assert new_pg.query("SELECT * FROM child ORDER BY id") == [
            (1, 1, "own"),
            (2, 2, "own"),
            (3, 3, "own"),
        ]
        it.apply(
            it.part("parent", before=named((3, "c")), after=named((4, "c"))),
            it.part("child", before=two("id", "p", (3, 3)), after=two("id", "p", (3, 4))),
        )
        assert new_pg.query("SELECT * FROM child ORDER BY id") == [
            (1, 1, "own"),
            (2, 2, "own"),
            (3, 4, "own"),
        ]
        assert new_pg.query("SELECT * FROM parent ORDER BY id") == [(1, "b"), (2, "a"), (4, "c")]
        with pytest.raises(TargetError, match=r"child.*parent.*id='1'.*p='1'|child.*Key \(id\)=\(1\)"):
            it.apply(it.part("parent", before=named((1, "b"))))
        assert len(new_pg.query("SELECT * FROM child WHERE p IS NOT NULL")) == 3


def test_a_chain_of_tables_is_filled_and_emptied(new_pg: Database) -> None:
    tables = [
        "CREATE TABLE a (id int PRIMARY KEY)",
        "CREATE TABLE b (id int PRIMARY KEY, a int NOT NULL REFERENCES a)",
        "CREATE TABLE c (id int PRIMARY KEY, b int NOT NULL REFERENCES b)",
    ]
    with bench(new_pg, *tables) as it:
        a, b, c = pa.table(ints("id", 1)), two("id", "a", (1, 1)), two("id", "b", (1, 1))
        it.apply(it.part("c", after=c), it.part("b", after=b), it.part("a", after=a))
        assert new_pg.query("SELECT count(*) FROM a JOIN b ON b.a = a.id JOIN c ON c.b = b.id") == [(1,)]
        it.apply(it.part("a", before=a), it.part("b", before=b), it.part("c", before=c))
        assert new_pg.query("SELECT 1 FROM a UNION ALL SELECT 1 FROM b UNION ALL SELECT 1 FROM c") == []


@pytest.mark.parametrize(
    "deferrable", ["", "DEFERRABLE INITIALLY IMMEDIATE", "DEFERRABLE INITIALLY DEFERRED"]
)
def test_cycles_and_self_references(new_pg: Database, deferrable: str) -> None:
    tables = [
        f"CREATE TABLE egg (id int PRIMARY KEY, hen int NOT NULL, up int REFERENCES egg {deferrable})",
        f"CREATE TABLE hen (id int PRIMARY KEY, egg int NOT NULL REFERENCES egg {deferrable})",
        f"ALTER TABLE egg ADD CONSTRAINT of_hen FOREIGN KEY (hen) REFERENCES hen {deferrable}",
    ]
    with bench(new_pg, *tables) as it:
        it.apply()  # the dump is over: keys hold from now on
        eggs = pa.table({**ints("id", 1, 2), **ints("hen", 1, 1), **ints("up", 2, 1)})
        hens = two("id", "egg", (1, 1))
        it.apply(it.part("egg", after=eggs), it.part("hen", after=hens))
        assert new_pg.query("SELECT id, hen, up FROM egg ORDER BY id") == [(1, 1, 2), (2, 1, 1)]
        lost = pa.table({**ints("id", 3), **ints("hen", 9), **ints("up", None)})
        with pytest.raises(TargetError, match=r"egg.*(of_hen).*hen"):
            it.apply(it.part("egg", after=lost))
        it.apply(it.part("egg", before=eggs), it.part("hen", before=hens))
        assert new_pg.query("SELECT 1 FROM egg UNION ALL SELECT 1 FROM hen") == []


@pytest.mark.parametrize(
    ("unique", "name"),
    [
        ("CREATE UNIQUE INDEX ON t (name)", "plain"),
        ("CREATE UNIQUE INDEX ON t (lower(name))", "expression"),
        ("CREATE UNIQUE INDEX ON t (id2) WHERE name <> 'free'", "partial"),
        ("ALTER TABLE t ADD UNIQUE (name) DEFERRABLE", "deferrable"),
        ("ALTER TABLE t ADD UNIQUE NULLS NOT DISTINCT (name, id2)", "nulls"),
        ("ALTER TABLE t ADD EXCLUDE USING btree (name WITH =)", "exclusion"),
    ],
    ids=lambda value: value if len(value) < 12 else "",
)
def test_unique_values_rotate(new_pg: Database, unique: str, name: str) -> None:
    create = "CREATE TABLE t (id int PRIMARY KEY, id2 int, name text NOT NULL, x text DEFAULT 'kept')"
    with bench(new_pg, create, unique) as it:

        def rows(*names: str) -> pa.Table:
            ids2 = [{"a": 1, "b": 2, "c": 3}[name] for name in names]
            return pa.table({**ints("id", 1, 2, 3), **ints("id2", *ids2), **texts("name", *names)})

        it.apply(it.part("t", after=rows("a", "b", "c")))
        new_pg.execute("UPDATE t SET x = 'own'")
        for start, end in ((("a", "b", "c"), ("b", "c", "a")), (("b", "c", "a"), ("c", "b", "a"))):
            it.apply(it.part("t", before=rows(*start), after=rows(*end)))
            assert new_pg.query("SELECT name, x FROM t ORDER BY id") == [(one, "own") for one in end]
        with pytest.raises(TargetError, match=r"public\.t"):
            it.apply(it.part("t", after=pa.table({**ints("id", 9), **ints("id2", 3), **texts("name", "c")})))


def test_identity_and_generated_columns(new_pg: Database) -> None:
    create = (
        "CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n int,"
        " twice int GENERATED ALWAYS AS (n * 2) STORED)"
    )
    other = "CREATE TABLE o (id int PRIMARY KEY, serial int GENERATED ALWAYS AS IDENTITY, x int DEFAULT 5)"
    with bench(new_pg, create, other) as it:
        columns = {column.name: column for column in it.target.tables(["t"])[0].columns}
        assert (columns["id"].has_default, columns["twice"].generated) == (True, True)
        it.apply(it.part("t", chunk=two("id", "n", (10, 1), (11, 2))))
        it.apply(it.part("t", before=two("id", "n", (10, 1)), after=two("id", "n", (10, 7), (12, 3))))
        assert new_pg.query("SELECT * FROM t ORDER BY id") == [(10, 7, 14), (11, 2, 4), (12, 3, 6)]
        it.apply(it.part("o", after=two("id", "serial", (1, 100), (2, 200))))
        new_pg.execute("UPDATE o SET x = 6")
        it.apply(it.part("o", before=two("id", "serial", (1, 100)), after=two("id", "serial", (1, 101))))
        assert new_pg.query("SELECT * FROM o ORDER BY id") == [(1, 101, 6), (2, 200, 6)]
        with pytest.raises(TargetError, match=r"computes by itself the column twice"):
            it.apply(it.part("t", after=pa.table({**ints("id", 1), **ints("twice", 2)})))


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({**ints("id", 1), **ints("nope", 1)}, "has no column nope"),
        (ints("n", 1), "needs for its key the column id"),
    ],
)
def test_columns_that_do_not_fit_are_named(
    new_pg: Database, columns: dict[str, pa.Array], problem: str
) -> None:
    with (
        bench(new_pg, "CREATE TABLE t (id int PRIMARY KEY, n int)") as it,
        pytest.raises(TargetError, match=rf"public\.t {problem}"),
    ):
        it.apply(it.part("t", after=pa.table(columns)))


def test_a_table_without_a_key_is_refused_and_a_unique_index_is_a_key(new_pg: Database) -> None:
    tables = (
        "CREATE TABLE bare (id int)",
        "CREATE TABLE u (id int NOT NULL, n int UNIQUE)",
        "CREATE UNIQUE INDEX ON u (id)",
    )
    with bench(new_pg, *tables) as it:
        assert it.target.tables(["u"])[0].key == ("id",)
        with pytest.raises(TargetError, match="no primary key"):
            it.apply(it.part("bare", after=pa.table(ints("id", 1))))
        it.apply(it.part("u", after=two("id", "n", (1, 1))))
        it.apply(it.part("u", before=two("id", "n", (1, 1)), after=two("id", "n", (1, 2))))
        assert new_pg.query("SELECT * FROM u") == [(1, 2)]


def test_partitioned_tables(new_pg: Database) -> None:
    tables = (
        "CREATE TABLE t (id int PRIMARY KEY, name text) PARTITION BY RANGE (id)",
        "CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (10)",
        "CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (10) TO (20)",
    )
    with bench(new_pg, *tables) as it:
        it.apply(it.part("t", chunk=named((1, "a"), (11, "b"))))
        it.apply(it.part("t", before=named((1, "a"), (11, "b")), after=named((12, "a"), (11, "c"))))
        assert new_pg.query("SELECT * FROM t ORDER BY id") == [(11, "c"), (12, "a")]
        with pytest.raises(TargetError, match=r"id=99"):
            it.apply(it.part("t", after=named((3, "ok"), (99, "nowhere"))))


END_WRITERS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'migrator%'"


def test_a_large_change_uses_joins(new_pg: Database) -> None:
    """Guards the plans: row-by-row subplans over staging tables would take hours here, joins take seconds."""
    number = 60_000
    ids = pa.array(range(number), pa.int32())
    old, new = (pa.table({"id": ids, "n": pa.array([add] * number, pa.int32())}) for add in (1, 2))
    with bench(new_pg, "CREATE TABLE t (id int PRIMARY KEY, n int, u int UNIQUE)") as it:
        it.apply(it.part("t", chunk=old))
        late = threading.Timer(40, new_pg.execute, [END_WRITERS])
        late.start()
        it.apply(it.part("t", chunk=new.slice(0, 9), before=old, after=new.slice(10)))
        late.cancel()
        assert new_pg.query("SELECT n, count(*) FROM t GROUP BY n") == [(2, number - 10)]


def test_a_foreign_key_that_is_not_enforced_keeps_no_row_out(new_pg: Database) -> None:
    needs_postgres(18, "NOT ENFORCED")
    child = "CREATE TABLE child (id int PRIMARY KEY, p int CONSTRAINT tie REFERENCES parent NOT ENFORCED)"
    with bench(new_pg, PARENT, child) as it:
        it.apply(it.part("child", chunk=two("id", "p", (1, 7))), done=False)
        it.apply(it.part("child", after=two("id", "p", (2, 8))))
        it.apply(it.part("parent", after=named((8, "a"))))
        it.apply(it.part("parent", before=named((8, "a"))))
        assert new_pg.query("SELECT * FROM child ORDER BY id") == [(1, 7), (2, 8)]
    new_pg.execute("DELETE FROM child", "ALTER TABLE child ALTER CONSTRAINT tie ENFORCED")
    again = Bench(new_pg)
    with closing(again.target), pytest.raises(TargetError, match=r"child.*parent.*doesn't exist"):
        again.apply(again.part("child", after=two("id", "p", (3, 9))))
