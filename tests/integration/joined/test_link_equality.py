"""The servers' own ``=`` against what we take for exact, and a foreign key that takes 'a' for 'A'."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg
import pytest

from migrator.adapters.sources.binlog.catalog import BinlogCatalog
from migrator.adapters.sources.mariadb.catalog import MariaCatalog
from migrator.adapters.sources.mysql.catalog import MysqlCatalog
from migrator.adapters.sources.postgres.catalog import PostgresCatalog
from migrator.model.table import Column
from tests.fix_postgres_source import source_of
from tests.integration import binlog_reading
from tests.integration.key_spellings import CASES, MARIADB, MYSQL, POSTGRES, Kind
from tests.servers import Database
from transforms.analysis.link_equality import compared_exactly

pytestmark = pytest.mark.integration
EXACT_IN_POSTGRES = (
    Kind("texts", "text", CASES),
    Kind("collated", 'varchar(20) COLLATE "C"', CASES),
    Kind("integers", "bigint", (("1",), ("01",), ("-1",))),
    Kind("decimals", "numeric(10,2)", (("1", "1.00"), ("-0", "0"))),
    Kind("uuids", "uuid", (("{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}", "a0eebc999c0b4ef8bb6d6bb9bd380a11"),)),
    Kind("times", "time", (("24:00", "00:00"), ("1:00", "01:00:00"))),
    Kind("stamps", "timestamptz", (("2024-01-01 00:00+00", "2024-01-01 01:00+01"), ("infinity",))),
    Kind("bytes", "bytea", (("\\x61", "a"), ("\\x6100",))),
)
EXACT_IN_BINLOG = (
    Kind(
        "padded", "char(8) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", (("a", "a "), ("A",)), shown="HEX({0})"
    ),
    Kind("bytes", "varbinary(8)", (("a",), ("a ",), ("A",)), shown="HEX({0})"),
    Kind("decimals", "decimal(10,2)", (("1", "1.00"), ("0", "-0")), shown="CAST({0} AS CHAR)"),
    Kind("stamps", "datetime(3)", (("2024-01-01", "2024-01-01 00:00:00.0004"),), shown="CAST({0} AS CHAR)"),
    Kind("ci", "varchar(8) COLLATE utf8mb4_general_ci", CASES, shown="HEX({0})"),
)


def spelt_apart_and_equal(database: Database, kind: Kind, equal: str) -> bool:
    """Whether the server takes two stored values for one that it shows differently."""
    shown = kind.shown.replace("{0}", "{0}.k")
    return bool(
        database.query(
            f"SELECT 1 FROM t a, t b WHERE a.k {equal} b.k AND {shown.format('a')} <> {shown.format('b')} LIMIT 1"
        )
    )


def judged(column: Column, found: bool, exact: bool, name: str) -> None:
    """``exact``: such a column has to be taken for exact, else nobody could use a foreign key."""
    if exact:
        assert compared_exactly(column, column), name
    assert not (found and compared_exactly(column, column)), name


@pytest.mark.parametrize("kind", [*POSTGRES, *EXACT_IN_POSTGRES], ids=lambda kind: kind.name)
def test_what_we_take_for_exact_is_to_postgresql(old_pg: Database, kind: Kind) -> None:
    try:
        old_pg.execute(*(one for one in kind.setup if "public.=" not in one))
    except psycopg.errors.FeatureNotSupported as error:
        pytest.skip(f"{error} (Debian's servers have it)")
    old_pg.execute(f"CREATE TABLE t (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, k {kind.declared})")
    for spelling in (one for group in kind.groups for one in group):
        old_pg.execute(f"INSERT INTO t (k) VALUES ('{spelling}')")
    [schema] = PostgresCatalog(source_of(old_pg)).tables(["t"])
    found = spelt_apart_and_equal(old_pg, Kind(kind.name, "", (), shown='{0}::text COLLATE "C"'), "=")
    judged(schema.columns[1], found, kind in EXACT_IN_POSTGRES, kind.name)


def in_binlog(database: Database, catalog: BinlogCatalog, kinds: Sequence[Kind]) -> int:
    """How many kinds the server takes two spellings for one of."""
    wider = 0
    for kind in kinds:
        database.execute(
            "DROP TABLE IF EXISTS t", f"CREATE TABLE t (id int AUTO_INCREMENT PRIMARY KEY, k {kind.declared})"
        )
        for spelling in (one for group in kind.groups for one in group):
            database.execute(f"INSERT INTO t (k) VALUES ('{spelling}')")
        [schema] = catalog.tables(["t"])
        shown = Kind(kind.name, "", (), shown=kind.shown if kind in EXACT_IN_BINLOG else "HEX({0})")
        found = spelt_apart_and_equal(database, shown, "=")
        exact = kind.declared.endswith(("nopad_bin", "0900_bin")) or kind in EXACT_IN_BINLOG[:-1]
        judged(schema.columns[1], found, exact, kind.name)
        wider += found
    return wider


def test_what_we_take_for_exact_is_to_mysql(old_mysql: Database) -> None:
    catalog = MysqlCatalog(binlog_reading.source_of(old_mysql))
    assert in_binlog(old_mysql, catalog, [*MYSQL, *EXACT_IN_BINLOG]) > 5


def test_what_we_take_for_exact_is_to_mariadb(old_maria: Database) -> None:
    catalog = MariaCatalog(binlog_reading.source_of(old_maria))
    assert in_binlog(old_maria, catalog, [*MARIADB, *EXACT_IN_BINLOG]) > 5


def test_a_key_by_an_operator_class_of_ones_own_is_told(old_pg: Database) -> None:
    kind = next(one for one in POSTGRES if one.name == "own operator class")
    old_pg.execute(
        *kind.setup,
        "CREATE TABLE kind (id int PRIMARY KEY, code varchar(20) NOT NULL)",
        "CREATE UNIQUE INDEX ON kind (code ci_ops)",
        "CREATE TABLE plain (code varchar(20) PRIMARY KEY)",
        "CREATE TABLE item (id int PRIMARY KEY, code varchar(20), of varchar(20) REFERENCES plain)",
        "ALTER TABLE item ADD FOREIGN KEY (code) REFERENCES kind (code)",
    )
    catalog = PostgresCatalog(source_of(old_pg))
    found = {
        one.columns: one.own_equality for one in catalog.references(catalog.tables(["kind", "plain", "item"]))
    }
    assert found == {("code",): True, ("of",): False}
