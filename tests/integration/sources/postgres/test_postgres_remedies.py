"""What preflight of a PostgreSQL source prints is done as it is printed; then it finds nothing any more."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from migrator.adapters.sources.postgres.catalog import PostgresCatalog
from migrator.adapters.sources.postgres.publication import create_statement
from migrator.adapters.sources.postgres.settings import MESSAGE, WATERMARK
from migrator.model.finding import Finding
from migrator.model.table import TableId
from migrator.schema.control import upgrade_source
from tests.fix_postgres_source import WATERMARK_TABLE, source_of
from tests.remedies.followed import statements
from tests.servers import Database

pytestmark = pytest.mark.integration

TABLE = ("CREATE TABLE t (k int PRIMARY KEY, v text)", "ALTER TABLE t REPLICA IDENTITY FULL")
T = TableId("public", "t")


@dataclass(frozen=True)
class Case:
    """What is wrong (with {slot} and {role} put in), what finds it, and who asks."""

    wrong: tuple[str, ...]
    check: str
    settings: dict[str, str] = field(default_factory=dict)
    poor: bool = False


READY = (*TABLE, "GRANT SELECT ON t TO {role}", "ALTER ROLE {role} REPLICATION")
OURS = create_statement("{slot}", [T])
CASES = {
    "images": Case(("CREATE TABLE t (k int PRIMARY KEY)",), "replica_identity"),
    "unlogged": Case(
        ("CREATE UNLOGGED TABLE t (k int PRIMARY KEY)", "ALTER TABLE t REPLICA IDENTITY FULL"), "table_kind"
    ),
    "slot of another kind": Case((*TABLE, "SELECT pg_create_physical_replication_slot('{slot}')"), "slot"),
    "slot with two_phase": Case(
        (*TABLE, "SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput', false, true)"), "slot"
    ),
    "rights": Case((*TABLE, "REVOKE ALL ON SCHEMA public FROM PUBLIC"), "select", {}, True),
    "hidden rows": Case((*READY, "ALTER TABLE t ENABLE ROW LEVEL SECURITY", OURS), "row_security", {}, True),
    "no publication": Case(READY, "publication", {}, True),
    "publication of another table": Case(
        (*READY, "CREATE TABLE u (k int)", OURS.replace('"t"', '"u"')), "publication", {}, True
    ),
    "publication of more tables": Case(
        (*READY, "CREATE TABLE u (k int)", OURS.replace('"t"', '"t", "u"')), "publication", {}, True
    ),
    "publication of inserts": Case(
        (*READY, 'CREATE PUBLICATION "{slot}" FOR TABLE t WITH (publish = insert)'), "publication", {}, True
    ),
    "watermark outside of it": Case(
        (*READY, OURS, *WATERMARK_TABLE, "GRANT USAGE ON SCHEMA migrator TO {role}"),
        "publication",
        {"placement": WATERMARK},
        True,
    ),
    "messages": Case(
        (
            *READY,
            OURS,
            "DO $$ BEGIN EXECUTE (SELECT string_agg(format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC',"
            " oid::regprocedure), '; ') FROM pg_proc WHERE proname = 'pg_logical_emit_message'); END $$",
        ),
        "message",
        {"placement": MESSAGE},
        True,
    ),
}


def found_by(database: Database, **settings: str) -> list[Finding]:
    """What refuses this source."""
    found = PostgresCatalog(source_of(database, **settings)).preflight(["t"])
    return [finding for finding in found if finding.fatal]


@pytest.mark.parametrize("name", CASES)
def test_the_statements_that_preflight_prints_mend_what_it_finds(
    old_pg: Database, reader_role: str, name: str
) -> None:
    case = CASES[name]
    slot = source_of(old_pg).slot
    old_pg.execute(*(each.replace("{slot}", slot).replace("{role}", reader_role) for each in case.wrong))
    settings = {**case.settings, **({"user": reader_role} if case.poor else {})}
    found = found_by(old_pg, **settings)
    assert case.check in {finding.check for finding in found}, "the control: it is found"
    for finding in found:
        done = statements(finding.remedy)
        assert done, finding.remedy
        old_pg.execute(*done)
    assert found_by(old_pg, **settings) == []


def test_the_watermarks_table_is_made_by_the_role_that_is_let_to(old_pg: Database, reader_role: str) -> None:
    old_pg.execute(*TABLE, f"GRANT SELECT ON t TO {reader_role}", f"ALTER ROLE {reader_role} REPLICATION")
    found = found_by(old_pg, placement=WATERMARK, user=reader_role)
    (missing,) = (finding for finding in found if finding.check == "watermark")
    old_pg.execute(*statements(missing.remedy))
    upgrade_source(  # as `migrator run` does first
        f"postgresql+psycopg://{reader_role}@{old_pg.host}:{old_pg.port}/{old_pg.database}"
    )
    for finding in found_by(old_pg, placement=WATERMARK, user=reader_role):
        old_pg.execute(*statements(finding.remedy))
    assert found_by(old_pg, placement=WATERMARK, user=reader_role) == []
    old_pg.execute("DROP SCHEMA migrator CASCADE")
