"""Preflight finds what stands in the way, and following its remedies is enough."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from migrator.adapters.targets.postgres.settings import PostgresTarget
from migrator.adapters.targets.postgres.target import PostgresTargetWriter
from migrator.errors import TargetError
from migrator.model.finding import Finding
from migrator.ports.target import TargetBatch, TargetRows
from tests.contract.targets.target_under_test import checkpoint
from tests.integration.target_bench import bench, ints, settings_of
from tests.servers import Database, needs_postgres

pytestmark = pytest.mark.integration

TABLES = (
    "CREATE TABLE parent (id int PRIMARY KEY)",
    "CREATE TABLE child (id int PRIMARY KEY, p int REFERENCES parent)",
)


def found(settings: PostgresTarget, *tables: str) -> dict[tuple[str, str], Finding]:
    """Findings by check and subject."""
    return {(one.check, one.subject): one for one in PostgresTargetWriter(settings).preflight(tables)}


@pytest.fixture
def poor(new_pg: Database) -> Iterator[PostgresTarget]:
    """A role that may log in and nothing else."""
    role = f"poor_{new_pg.database}"
    new_pg.execute(
        f"CREATE ROLE {role} LOGIN PASSWORD 'poor'",
        f"REVOKE ALL ON DATABASE {new_pg.database} FROM PUBLIC",
        f"GRANT CONNECT ON DATABASE {new_pg.database} TO {role}",
        "REVOKE ALL ON SCHEMA public FROM PUBLIC",
    )
    yield settings_of(new_pg, user=role, password="poor")
    new_pg.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_a_ready_target_has_no_findings(new_pg: Database) -> None:
    new_pg.execute(*TABLES)
    assert found(settings_of(new_pg), "parent", "child") == {}


def test_tables_that_cannot_be_written_are_named(new_pg: Database) -> None:
    new_pg.execute(
        "CREATE TABLE bare (id int)",
        "CREATE TABLE late (id int PRIMARY KEY DEFERRABLE)",
        "CREATE TABLE ruled (id int PRIMARY KEY)",
        "CREATE RULE nothing AS ON INSERT TO ruled DO INSTEAD NOTHING",
        "CREATE TABLE above (id int PRIMARY KEY)",
        "CREATE TABLE below (own int) INHERITS (above)",
        "CREATE TABLE parted (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE part PARTITION OF parted DEFAULT",
        "CREATE TABLE cash (id int PRIMARY KEY, m money)",
        "CREATE TABLE noisy (id int PRIMARY KEY)",
        "CREATE FUNCTION noise() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
        "CREATE TRIGGER noise BEFORE INSERT ON noisy FOR EACH ROW EXECUTE FUNCTION noise()",
        "CREATE TABLE full_already (id int PRIMARY KEY)",
        "INSERT INTO full_already VALUES (1), (2)",
        "CREATE VIEW seen AS SELECT 1 AS id",
    )
    names = (
        "bare",
        "late",
        "ruled",
        "above",
        "below",
        "parted",
        "cash",
        "noisy",
        "full_already",
        "seen",
        "missing",
    )
    findings = found(settings_of(new_pg), *names)
    assert set(findings) == {
        ("key", "public.bare"),
        ("key", "public.late"),
        ("rules", "public.ruled"),
        ("inherited", "public.above"),
        ("key", "public.below"),
        ("column_type", "public.cash.m"),
        ("trigger", "public.noisy.noise"),
        ("not_empty", "public.full_already"),
        ("table", "public.seen"),
        ("table", "public.missing"),
    }
    new_pg.execute(findings["inherited", "public.above"].remedy)
    assert ("inherited", "public.above") not in found(settings_of(new_pg), *names)
    assert [key for key, one in findings.items() if not one.fatal] == [("trigger", "public.noisy.noise")]
    assert "2 rows" in findings["not_empty", "public.full_already"].problem
    assert 'TRUNCATE "public"."full_already"' in findings["not_empty", "public.full_already"].remedy


def test_rows_that_the_ledger_accounts_for_are_no_finding(new_pg: Database) -> None:
    with bench(new_pg, *TABLES) as it:
        it.apply(it.part("parent", after=pa.table(ints("id", 1))))
        assert found(it.settings, "parent") == {}


def test_the_remedies_are_all_that_a_poor_role_needs(new_pg: Database, poor: PostgresTarget) -> None:
    new_pg.execute(*TABLES)
    for _ in range(4):  # some checks can only be made once others hold
        findings = PostgresTargetWriter(poor).preflight(["parent", "child"])
        for one in findings:
            new_pg.execute(*one.remedy.rpartition(": ")[2].split(";"))
        if not findings:
            break
    assert findings == []
    target = PostgresTargetWriter(poor)
    target.open(1)
    parent, child = target.tables(["parent", "child"])
    rows = pa.table({**ints("id", 1), **ints("p", 1)})
    for segment in (1, 2):  # the dump with foreign keys off, then a change with an order they forbid
        batch = (
            TargetRows(child, rows, None, None, False),
            TargetRows(parent, pa.table(ints("id", 1)), None, None, False),
        )
        target.apply(TargetBatch(segment, checkpoint(segment, done=segment > 1), batch))
    target.close()
    assert new_pg.query("SELECT * FROM child JOIN parent ON parent.id = p") == [(1, 1, 1)]


def test_a_poor_role_finds_everything_at_once(new_pg: Database, poor: PostgresTarget) -> None:
    new_pg.execute(
        *TABLES,
        f"GRANT USAGE ON SCHEMA public TO {poor.server.user}",
        f"GRANT SELECT ON parent TO {poor.server.user}",
        "ALTER TABLE parent ENABLE ROW LEVEL SECURITY",
    )
    findings = found(poor, "parent", "child")
    assert {check for check, _ in findings} == {
        "temporary",
        "grants",
        "row_security",
        "foreign_keys",
        "control_schema",
    }
    assert "INSERT, UPDATE, DELETE" in findings["grants", "public.parent"].problem
    assert "SELECT, INSERT, UPDATE, DELETE" in findings["grants", "public.child"].problem
    assert f'GRANT SET ON PARAMETER session_replication_role TO "{poor.server.user}"' in str(findings)


def test_opening_without_rights_names_the_statement(new_pg: Database, poor: PostgresTarget) -> None:
    with pytest.raises(TargetError, match=r'CREATE SCHEMA migrator AUTHORIZATION "poor_') as raised:
        PostgresTargetWriter(poor).open(1)
    assert "permission denied" in raised.value.cause
    assert "'poor'" not in str(raised.value)


def test_circles_that_cannot_be_deferred_are_found(new_pg: Database, poor: PostgresTarget) -> None:
    new_pg.execute(
        "CREATE TABLE a (id int PRIMARY KEY, b int)",
        "CREATE TABLE b (id int PRIMARY KEY, a int REFERENCES a DEFERRABLE)",
        "ALTER TABLE a ADD CONSTRAINT hard FOREIGN KEY (b) REFERENCES b",
        f"GRANT USAGE ON SCHEMA public TO {poor.server.user}",
    )
    findings = found(poor, "a", "b")
    circle = findings["foreign_key_cycle", "public.a, public.b"]
    assert 'ALTER TABLE "public"."a" ALTER CONSTRAINT "hard" DEFERRABLE' in circle.remedy


def test_a_trigger_that_finds_nothing_in_our_sessions_is_named_and_the_remedy_helps(new_pg: Database) -> None:
    statements = (
        "CREATE TABLE item (id int PRIMARY KEY)",
        "CREATE TABLE noted (id int)",
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN INSERT INTO noted VALUES (NEW.id); RETURN NEW; END'",
        "CREATE TRIGGER note BEFORE INSERT ON item FOR EACH ROW EXECUTE FUNCTION note()",
    )
    with bench(new_pg, *statements) as it:
        finding = found(it.settings, "item")["trigger", "public.item.note"]
        assert "pg_catalog only" in finding.problem
        row = pa.table({"id": pa.array([1], pa.int32())})
        with pytest.raises(TargetError, match="doesn't find what it names") as caught:
            it.apply(it.part("item", chunk=row))
        command = 'ALTER FUNCTION public.note() SET search_path = "public", pg_temp'
        assert finding.remedy.endswith(f"; else {command}")
        assert caught.value.remedy.startswith(f"{command} ")
        new_pg.execute(command)
        it.apply(it.part("item", chunk=row))
    assert "pg_catalog only" not in found(it.settings, "item")["trigger", "public.item.note"].problem
    assert new_pg.query("SELECT id FROM noted") == [(1,)]


def test_keys_that_tell_what_overlaps_are_no_keys_to_merge_by(new_pg: Database) -> None:
    """Nor are foreign keys with PERIOD: a parent's value isn't equal to its children's."""
    needs_postgres(18, "WITHOUT OVERLAPS")
    span = "place int4range, at daterange"
    overlapping = "PRIMARY KEY (place, at WITHOUT OVERLAPS)"
    new_pg.execute(
        f"CREATE TABLE rent ({span}, {overlapping})",
        f"CREATE TABLE numbered (id int NOT NULL UNIQUE, {span}, {overlapping})",
        f"CREATE TABLE stay (id int PRIMARY KEY, {span},"
        " CONSTRAINT within FOREIGN KEY (place, PERIOD at) REFERENCES rent (place, PERIOD at))",
    )
    findings = found(settings_of(new_pg), "rent", "numbered", "stay")
    assert {*findings} == {("key", "public.rent"), ("foreign_key_period", "public.stay constraint within")}
    new_pg.execute(findings["foreign_key_period", "public.stay constraint within"].remedy.split(" until ")[0])
    assert found(settings_of(new_pg), "numbered", "stay") == {}
    [table] = PostgresTargetWriter(settings_of(new_pg)).tables(["numbered"])
    assert table.key == ("id",)
