"""A PostgreSQL target database with tables of its own, and a writer on it, for the target's integration tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pyarrow as pa

from migrator.adapters.targets.postgres.settings import PostgresTarget
from migrator.adapters.targets.postgres.target import PostgresTargetWriter
from migrator.ports.target import TargetBatch, TargetRows
from tests.contract.targets.target_under_test import checkpoint
from tests.servers import Database, server_and_rest

MIGRATION = "bench"


def settings_of(database: Database, /, **changes: Any) -> PostgresTarget:
    """Settings of a writer on that database."""
    server, rest = server_and_rest(database, changes)
    return PostgresTarget(server, **{"migration": MIGRATION, **rest})


class Bench:
    """A writer with epoch 1 that numbers its batches."""

    def __init__(self, database: Database, **changes: Any):
        self.database = database
        self.settings = settings_of(database, **changes)
        self.target = PostgresTargetWriter(self.settings)
        self.segment = self.target.open(1).segment
        self._numbers = count(1)

    def part(
        self,
        table: str,
        chunk: pa.Table | None = None,
        before: pa.Table | None = None,
        after: pa.Table | None = None,
        strict: bool = True,
    ) -> TargetRows:
        """One table's share of a batch."""
        return TargetRows(self.target.tables([table])[0], chunk, before, after, strict)

    def apply(self, *parts: TargetRows, done: bool = True) -> None:
        """The next batch."""
        self.target.apply(TargetBatch(self.segment + 1, checkpoint(self.segment + 1, done), parts))
        self.segment += 1

    def new_table(self, columns: str) -> str:
        """Makes a table of its own for a case, beside those of others, and tells its name."""
        name = f"t{next(self._numbers)}"
        self.database.execute(f"CREATE TABLE {name} ({columns})")
        return name

    def ledger_segment(self) -> int:
        """What the ledger says, read beside the writer."""
        return int(
            self.database.query("SELECT segment FROM migrator.ledger WHERE migration = %s", [MIGRATION])[0][0]
        )


@contextmanager
def bench(database: Database, *statements: str, **changes: Any) -> Iterator[Bench]:
    """A bench on a database in which these statements were run first."""
    database.execute(*statements)
    made = Bench(database, **changes)
    try:
        yield made
    finally:
        made.target.close()


def ints(name: str, *values: int | None) -> dict[str, pa.Array]:
    """One int32 column."""
    return {name: pa.array(values, pa.int32())}


def texts(name: str, *values: str | None) -> dict[str, pa.Array]:
    """One text column."""
    return {name: pa.array(values, pa.string())}
