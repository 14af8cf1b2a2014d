"""Preflight names everything at once with its remedy, the remedies work, and least privilege is enough."""

from __future__ import annotations

import psycopg
import pytest

from migrator.adapters.sources.postgres.catalog import PostgresCatalog
from migrator.adapters.sources.postgres.chunks.watermark import mark_writer
from migrator.adapters.sources.postgres.publication import create_statement
from migrator.adapters.sources.postgres.settings import MESSAGE, WATERMARK
from migrator.embedded.process import scratch_directory
from migrator.errors import GapError, SourceError
from migrator.model.chunk import ChunkRequest
from migrator.model.event import MarkKind
from migrator.model.table import TableId
from tests.fix_postgres_source import (
    changes,
    chunk_reader,
    log_reader,
    prepared,
    read_to,
    read_until,
    source_of,
)
from tests.servers import POSTGRES_VERSION, Database, PostgresServer, embedded_postgres, needs_postgres

pytestmark = pytest.mark.integration


def fatal(database: Database, *tables: str, **changes: object) -> dict[tuple[str, str], str]:
    """(check, subject) -> remedy of the fatal findings."""
    found = PostgresCatalog(source_of(database, **changes)).preflight(tables)
    return {(finding.check, finding.subject): finding.remedy for finding in found if finding.fatal}


def test_a_ready_source_has_no_findings(old_pg: Database) -> None:
    old_pg.execute("CREATE TABLE t (k int PRIMARY KEY)", "ALTER TABLE t REPLICA IDENTITY FULL")
    assert PostgresCatalog(source_of(old_pg)).preflight(["t"]) == []


def test_every_unfit_table_is_named_with_its_remedy(old_pg: Database) -> None:
    old_pg.execute(
        "CREATE TABLE no_identity (k int PRIMARY KEY)",
        "CREATE TABLE no_key (k int)",
        "ALTER TABLE no_key REPLICA IDENTITY FULL",
        "CREATE UNLOGGED TABLE fleeting (k int PRIMARY KEY)",
        "CREATE VIEW a_view AS SELECT 1 AS k",
        "CREATE MATERIALIZED VIEW a_matview AS SELECT 1 AS k",
        "CREATE TABLE parent (k int PRIMARY KEY)",
        "CREATE TABLE child () INHERITS (parent)",
        "ALTER TABLE parent REPLICA IDENTITY FULL",
        "CREATE TABLE part (k int PRIMARY KEY) PARTITION BY LIST (k)",
        "CREATE TABLE part_1 PARTITION OF part FOR VALUES IN (1)",
        "ALTER TABLE part REPLICA IDENTITY FULL",
        "CREATE TABLE deferred (k int PRIMARY KEY DEFERRABLE)",
        "CREATE OPERATOR CLASS own FOR TYPE int USING btree AS FUNCTION 1 btint4cmp(int, int),"
        " OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >",
        "CREATE TABLE compared (k int NOT NULL)",
        "CREATE UNIQUE INDEX ON compared (k own)",
        "ALTER TABLE compared REPLICA IDENTITY FULL",
        "ALTER TABLE deferred REPLICA IDENTITY FULL",
        'CREATE TABLE "Odd ""name" (k int PRIMARY KEY)',
        'CREATE TABLE twins (k int PRIMARY KEY, a int, "A" int)',
        "ALTER TABLE twins REPLICA IDENTITY FULL",
    )
    names = [
        "no_identity",
        "no_key",
        "fleeting",
        "a_view",
        "a_matview",
        "parent",
        "part",
        "deferred",
        "compared",
        'Odd "name',
        "twins",
        "x",
    ]
    found = fatal(old_pg, *names)
    assert set(found) == {
        ("replica_identity", "public.no_identity"),
        ("key", "public.no_key"),
        ("table_kind", "public.fleeting"),
        ("table_kind", "public.a_view"),
        ("table_kind", "public.a_matview"),
        ("inheritance", "public.parent"),
        ("replica_identity", "public.part_1"),
        ("key", "public.deferred"),
        ("key", "public.compared"),
        ("replica_identity", 'public.Odd "name'),
        ("column_name", "public.twins"),
        ("table", "public.x"),
    }
    for check, subject in found:
        if check == "replica_identity":
            old_pg.execute(found[check, subject])
    assert not [key for key in fatal(old_pg, *names) if key[0] == "replica_identity"]


def test_generated_columns_are_a_warning_where_they_are_not_logged(old_pg: Database) -> None:
    old_pg.execute(
        "CREATE TABLE g (k int PRIMARY KEY, twice int GENERATED ALWAYS AS (k * 2) STORED)",
        "ALTER TABLE g REPLICA IDENTITY FULL",
    )
    findings = PostgresCatalog(source_of(old_pg)).preflight(["g"])
    assert [(finding.check, finding.fatal, "twice" in finding.problem) for finding in findings] == (
        [] if POSTGRES_VERSION >= 18 else [("generated_columns", False, True)]
    )


def test_virtual_columns_are_refused_as_they_break_updates_and_stored_ones_are_published(
    old_pg: Database,
) -> None:
    """The server's own word for it: with a publication, UPDATE fails on the one table and not on the other."""
    needs_postgres(18, "virtual generated columns")
    old_pg.execute(
        "CREATE TABLE s (k int PRIMARY KEY, v int, twice int GENERATED ALWAYS AS (v * 2) STORED)",
        "CREATE TABLE w (k int PRIMARY KEY, v int, twice int GENERATED ALWAYS AS (v * 2) VIRTUAL)",
        *(f"ALTER TABLE {name} REPLICA IDENTITY FULL" for name in "sw"),
        "INSERT INTO s VALUES (1, 1)",
        "INSERT INTO w VALUES (1, 1)",
    )
    found = fatal(old_pg, "s", "w")
    assert {key for key in found if key[0] == "generated_columns"} == {("generated_columns", "public.w")}
    assert "change_tables" in found["generated_columns", "public.w"]
    prepared(source_of(old_pg), "s", "w")
    old_pg.execute("UPDATE s SET v = 2")
    with pytest.raises(psycopg.errors.InvalidColumnReference, match='cannot update table "w"'):
        old_pg.execute("UPDATE w SET v = 2")


def test_values_that_no_native_type_holds_are_looked_for_without_a_scan(
    old_pg: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In small tables, by an index, by statistics; what none of them shows is not found, and infinities are
    right."""
    late = "294276-12-31"
    old_pg.execute(
        "CREATE TABLE v (k int PRIMARY KEY, amount numeric(12,2), other numeric(12,2), free numeric, at timestamp,"
        ' "Zo""ned" timestamptz, fine timestamptz)',
        "ALTER TABLE v REPLICA IDENTITY FULL",
        f"INSERT INTO v VALUES (1, 'NaN', 1, 'NaN', '{late}', '{late}+00', 'infinity'),"
        " (2, 1, 'NaN', 1, now(), now(), '4713-01-01 BC')",
        "CREATE INDEX ON v (at DESC, k)",
    )
    every = {("column_values", f"public.v.{name}") for name in ("amount", "other", "at", 'Zo"ned')}
    found = fatal(old_pg, "v")
    assert set(found) == every
    assert '{ v = ["Zo\\"ned"] }' in found["column_values", 'public.v.Zo"ned']
    monkeypatch.setattr("migrator.adapters.sources.postgres.preflight_values._SMALL_BYTES", 0)
    assert set(fatal(old_pg, "v")) == {("column_values", "public.v.at")}, "by its index"
    old_pg.execute("ANALYZE v")
    assert set(fatal(old_pg, "v")) == every
    chosen = {"v": frozenset({"amount", "other", "at", 'Zo"ned'})}
    assert fatal(old_pg, "v", text_columns=chosen) == {}
    old_pg.execute(found["column_values", "public.v.amount"].split(";")[0].replace("...", "0"))
    old_pg.execute("ANALYZE v")
    assert set(fatal(old_pg, "v")) == every - {("column_values", "public.v.amount")}


def test_text_columns_that_are_wrong_are_named(old_pg: Database) -> None:
    old_pg.execute("CREATE TABLE v (k int PRIMARY KEY, n numeric)", "ALTER TABLE v REPLICA IDENTITY FULL")
    chosen = {"v": frozenset({"k", "n", "m"}), "w": frozenset({"k"})}
    assert set(fatal(old_pg, "v", text_columns=chosen)) == {
        ("text_columns", subject) for subject in ("v.k", "v.n", "v.m", "w")
    }


def test_a_publication_without_stored_columns_is_mended(old_pg: Database) -> None:
    needs_postgres(18, "publish_generated_columns")
    old_pg.execute(
        "CREATE TABLE s (k int PRIMARY KEY, v int, twice int GENERATED ALWAYS AS (v * 2) STORED)",
        "ALTER TABLE s REPLICA IDENTITY FULL",
    )
    source = source_of(old_pg)
    old_pg.execute(create_statement(source.slot, [TableId("public", "s")]), "INSERT INTO s VALUES (1, 1)")
    with pytest.raises(psycopg.errors.InvalidColumnReference):
        old_pg.execute("UPDATE s SET v = 2")
    schemas = prepared(source, "s")
    old_pg.execute("UPDATE s SET v = 2")
    with log_reader(source, schemas) as log:
        old_pg.execute("UPDATE s SET v = 3")
        (_, change) = changes(read_until(log, lambda records: len(changes(records)) == 2))
        assert (change.before, change.after) == (("1", "2", "4"), ("1", "3", "6"))
        old_pg.execute(f'ALTER PUBLICATION "{source.slot}" SET (publish_generated_columns = none)')
        with pytest.raises(GapError, match="doesn't cover"):
            log.finish()


def test_least_privilege_each_finding_names_the_grant_that_mends_it(
    postgres: PostgresServer, old_pg: Database, reader_role: str
) -> None:
    old_pg.execute(
        "CREATE TABLE t (k int PRIMARY KEY, v text)",
        "ALTER TABLE t REPLICA IDENTITY FULL",
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY",
        "REVOKE ALL ON SCHEMA public FROM PUBLIC",
    )
    as_reader = source_of(old_pg, user=reader_role)
    found = fatal(old_pg, "t", user=reader_role)
    checks = {check for check, _ in found}
    assert checks == {"replication_role", "usage", "select", "row_security", "publication"}
    bypass = found.pop(("row_security", "public.t"))
    for (check, _), remedy in found.items():
        old_pg.execute(
            remedy.removeprefix("as the owner of the tables: ") if check == "publication" else remedy
        )
    assert set(fatal(old_pg, "t", user=reader_role)) == {("row_security", "public.t")}
    (schema,) = PostgresCatalog(as_reader).tables(["t"])
    with chunk_reader(as_reader) as chunks, pytest.raises(SourceError, match="can't be read"):
        chunks.read(ChunkRequest(1, schema.id, None, 5), schema)  # an error, never a part of the rows
    old_pg.execute(bypass)
    assert PostgresCatalog(as_reader).preflight(["t"]) == []

    catalog = PostgresCatalog(as_reader)
    schemas = catalog.tables(["t"])
    catalog.prepare(schemas)
    old_pg.execute("INSERT INTO t VALUES (1, 'x')")
    with log_reader(as_reader, schemas) as log, chunk_reader(as_reader) as chunks:
        chunk = chunks.read(ChunkRequest(1, schemas[0].id, None, 5), schemas[0])
        (change,) = changes(read_to(log, chunk.high))
    assert chunk.rows.to_pylist() == [{"k": 1, "v": "x"}]
    assert change.after == ("1", "x")


def test_an_owner_with_create_needs_no_publication_made_for_it(
    postgres: PostgresServer, old_pg: Database, reader_role: str
) -> None:
    old_pg.execute(
        "CREATE TABLE t (k int PRIMARY KEY)",
        "ALTER TABLE t REPLICA IDENTITY FULL",
        f"ALTER TABLE t OWNER TO {reader_role}",
        f"ALTER ROLE {reader_role} REPLICATION",
    )
    assert set(fatal(old_pg, "t", user=reader_role)) == {("publication", source_of(old_pg).slot)}
    old_pg.execute(f'GRANT CREATE ON DATABASE "{old_pg.database}" TO {reader_role}')
    catalog = PostgresCatalog(source_of(old_pg, user=reader_role))
    assert catalog.preflight(["t"]) == []
    catalog.prepare(catalog.tables(["t"]))
    old_pg.execute(f"DROP PUBLICATION {source_of(old_pg).slot}")


def test_the_watermark_placement_needs_its_table(old_pg: Database) -> None:
    old_pg.execute("CREATE TABLE t (k int PRIMARY KEY)", "ALTER TABLE t REPLICA IDENTITY FULL")
    assert set(fatal(old_pg, "t", placement=WATERMARK)) == {("watermark", "migrator.watermark")}


def test_the_message_placement_needs_no_table_but_the_right_to_write_messages(
    old_pg: Database, reader_role: str
) -> None:
    old_pg.execute(
        "CREATE TABLE t (k int PRIMARY KEY)",
        "ALTER TABLE t REPLICA IDENTITY FULL",
        f"GRANT SELECT ON t TO {reader_role}",
        f"ALTER ROLE {reader_role} REPLICATION",
    )
    source = source_of(old_pg)
    old_pg.execute(create_statement(source.slot, [TableId("public", "t")]))
    assert fatal(old_pg, "t", user=reader_role, placement=MESSAGE) == {}
    functions = old_pg.query(
        "SELECT oid::regprocedure::text FROM pg_proc WHERE proname = 'pg_logical_emit_message'"
    )
    old_pg.execute(*(f"REVOKE EXECUTE ON FUNCTION {name} FROM PUBLIC" for (name,) in functions))
    found = fatal(old_pg, "t", user=reader_role, placement=MESSAGE)
    assert list(found) == [("message", reader_role)]
    as_reader = source_of(old_pg, user=reader_role, placement=MESSAGE)
    marks = mark_writer(as_reader)
    assert marks is not None
    with pytest.raises(SourceError, match="permission denied"):
        marks().write("token", MarkKind.LOW)
    old_pg.execute(*found.values())
    assert fatal(old_pg, "t", user=reader_role, placement=MESSAGE) == {}
    writer = marks()
    writer.write("token", MarkKind.LOW)
    writer.close()


def test_an_unfit_server_is_named_setting_by_setting() -> None:
    settings = {
        "wal_level": "replica",
        "max_replication_slots": "0",
        "max_wal_senders": "0",
        "max_slot_wal_keep_size": "64MB",
        "synchronous_standby_names": "*",
        **({"idle_replication_slot_timeout": "1h"} if POSTGRES_VERSION >= 18 else {}),
    }
    with (
        scratch_directory("migrator-unfit-") as directory,
        embedded_postgres(directory / "pg", settings=settings) as server,
    ):
        database = Database(server.host, server.port, "postgres", server.superuser, "", "postgresql")
        with database.connect() as connection:
            connection.execute("SET synchronous_commit = local")
            connection.execute("CREATE DATABASE bytes ENCODING 'SQL_ASCII' TEMPLATE template0")
        found = PostgresCatalog(source_of(database, database="bytes")).preflight([])
    assert {(finding.check, finding.fatal) for finding in found} == {
        ("wal_level", True),
        ("max_replication_slots", True),
        ("max_wal_senders", True),
        ("server_encoding", True),
        ("max_slot_wal_keep_size", False),
        ("synchronous_standby_names", False),
        *((name, False) for name in settings if name == "idle_replication_slot_timeout"),
    }
