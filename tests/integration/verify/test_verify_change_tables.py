"""The judge's own idea of where a source with change tables stands, and of what still waits there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrator.adapters.sources.postgres.change_tables.catalog import ChangeTableCatalog
from tests.fix_change_tables import captured, read_all, started
from tests.fix_postgres_source import parts
from tests.servers import Database, server_of
from verify.readers.engines import source_reader
from verify.readers.pending import PendingAnswer
from verify.readers.postgres.change_tables import ChangeTableSource
from verify.readers.snapshot import LedgerState
from verify.settings import ServerSettings

pytestmark = pytest.mark.integration


def judge_of(database: Database) -> ChangeTableSource:
    settings = ServerSettings(server_of(database))
    found = source_reader(replace(settings, change_tables=True), "m")
    assert isinstance(found, ChangeTableSource)
    return found


def test_the_judge_counts_positions_as_the_pipeline_does_and_finds_what_waits(old_pg: Database) -> None:
    old_pg.execute("CREATE TABLE t (k int PRIMARY KEY)")
    source, schemas = captured(old_pg, "t")
    judge = judge_of(old_pg)
    with started(source, schemas) as reader:
        old_pg.execute("INSERT INTO t VALUES (1)")
        (part,) = parts(read_all(reader, source))
    assert judge.position().order == ChangeTableCatalog(source).position().order == part.position.order
    ledger = LedgerState(1, 1, part.position.order, part.position.token, None)

    def answer(state: LedgerState) -> PendingAnswer:
        return judge.pending(state, judge.position(), ["t"]).answer

    assert answer(ledger) is PendingAnswer.NO
    old_pg.execute("CREATE TABLE other (k int)")
    assert judge.position().order > ledger.order
    assert answer(ledger) is PendingAnswer.NO, "what nobody captures doesn't wait"
    with old_pg.connect(autocommit=False) as late:
        late.execute("INSERT INTO t VALUES (2)")
        assert answer(ledger) is PendingAnswer.NO, "not committed yet"
        late.commit()
    assert answer(ledger) is PendingAnswer.YES
    old_pg.execute("SELECT migrator_cdc.forget('9999999'::xid8, 100)")
    assert answer(ledger) is PendingAnswer.UNKNOWN, "nobody can know any more"
    assert answer(replace(ledger, token="16/B374D848@7")) is PendingAnswer.UNKNOWN
    assert judge.pending(ledger, judge.position(), ["gone"]).answer is PendingAnswer.UNKNOWN
