"""The visibility race under every placement: a commit is in the log, and delivered, before a SELECT can see it.

Placed, not hoped for: with a synchronous standby that doesn't exist, T1 waits after its commit record was written.
"""

from __future__ import annotations

import pytest

from migrator.adapters.sources.postgres.settings import MESSAGE, WATERMARK, WITNESS
from tests.fix_postgres_commits import Capturing, HangingCommit, let_go, no_standby_answers
from tests.fix_postgres_source import (
    WATERMARK_TABLE,
    parts,
    prepared,
    source_of,
)
from tests.servers import Database, PostgresServer

pytestmark = pytest.mark.integration


@pytest.fixture
def one_table(old_pg: Database) -> Database:
    """Ten rows (k, 'old'), and the watermark table."""
    old_pg.execute(
        "CREATE TABLE t (k int PRIMARY KEY, v text)",
        "ALTER TABLE t REPLICA IDENTITY FULL",
        "INSERT INTO t SELECT g, 'old' FROM generate_series(1, 10) g",
        *WATERMARK_TABLE,
    )
    return old_pg


@pytest.mark.parametrize(
    ("placement", "witness"),
    [(WITNESS, True), (WATERMARK, True), (MESSAGE, True), (WATERMARK, False), (MESSAGE, False)],
)
def test_a_commit_that_is_delivered_before_it_is_visible_wins_over_the_chunk(
    postgres: PostgresServer, one_table: Database, placement: str, witness: bool
) -> None:
    """Marks alone let the old row follow the new one, as a row or as a message: the witness is needed with each."""
    source = source_of(one_table, placement=placement)
    (schema,) = prepared(source, "t")
    with (
        no_standby_answers(postgres.admin, one_table),
        Capturing(source, schema, witness=witness) as capturing,
    ):
        t1 = HangingCommit(one_table, "UPDATE t SET v = 'NEW' WHERE k = 5")
        (part,) = parts(capturing.deliver())
        assert part.id == (t1.xid,)
        chunk = capturing.read_chunk()
        assert chunk.rows.to_pylist()[4] == {"k": 5, "v": "old"}
        capturing.deliver()
        assert capturing.chunks_placed == 1
        assert capturing.rows["5",] == ("5", "NEW" if witness else "old")
        assert len(capturing.rows) == 10
        let_go(postgres.admin)
        t1.finish()
