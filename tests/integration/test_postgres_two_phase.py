"""Prepared transactions: nothing before their outcome, nothing at all after a rollback."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from migrator.adapters.postgres.catalog import PostgresCatalog
from migrator.embedded.postgres import EmbeddedPostgres
from migrator.embedded.process import scratch_directory
from tests.fix_postgres_source import changes, chunk_reader, log_reader, parts, prepared, read_to, source_of
from tests.servers import Database

pytestmark = pytest.mark.integration


@pytest.fixture
def two_phase() -> Iterator[Database]:
    """A server of its own: max_prepared_transactions is fixed at start. PostgreSQL 16, for a second version."""
    settings = {"max_prepared_transactions": "5"}
    with (
        scratch_directory("migrator-2pc-") as directory,
        EmbeddedPostgres(directory / "pg", version=16, settings=settings) as server,
    ):
        yield Database(server.host, server.port, "postgres", server.superuser, "", "postgresql")


def test_rows_of_a_prepared_transaction_wait_for_its_outcome(two_phase: Database) -> None:
    two_phase.execute(
        "CREATE TABLE t (k int PRIMARY KEY, v text)",
        "ALTER TABLE t REPLICA IDENTITY FULL",
        "INSERT INTO t VALUES (1, 'old')",
    )
    source = source_of(two_phase)
    schemas = prepared(source, "t")
    catalog = PostgresCatalog(source)
    connection = two_phase.connect(autocommit=False)
    connection.execute("UPDATE t SET v = 'kept' WHERE k = 1")
    xid = int(connection.execute("SELECT pg_current_xact_id()::text").fetchone()[0])
    connection.execute("PREPARE TRANSACTION 'kept'")
    connection.execute("INSERT INTO t VALUES (2, 'undone')")
    connection.execute("PREPARE TRANSACTION 'undone'")
    connection.close()
    with log_reader(source, schemas) as reader, chunk_reader(source) as chunks:
        assert changes(read_to(reader, catalog.position())) == []
        assert not chunks.witness().contains((xid,))
        two_phase.execute("ROLLBACK PREPARED 'undone'", "COMMIT PREPARED 'kept'")
        (part,) = parts(read_to(reader, catalog.position()))
        assert part.id == (xid,)
        assert [change.after for change in part.changes] == [("1", "kept")]
        assert chunks.witness().contains((xid,))
