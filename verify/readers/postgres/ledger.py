"""The target's ledger on PostgreSQL: the query, and what its rows say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import sql

from verify.readers.ledger_row import ledger_state
from verify.readers.postgres.session import PostgresSnapshot
from verify.readers.snapshot import LedgerState


@dataclass(frozen=True, slots=True)
class PostgresLedger:
    """One migration's row; ``where`` is the target, for messages."""

    where: str
    migration: str

    @property
    def query(self) -> sql.Composed:
        """At most one row; refused where nothing was ever applied, and there is no ledger."""
        return sql.SQL(
            "SELECT epoch, segment, position_order, position_token, checkpoint::text FROM migrator.ledger"
            " WHERE migration = {}"
        ).format(sql.Literal(self.migration))

    def state(self, rows: Sequence[Sequence[Any]]) -> LedgerState | None:
        """Builds the ledger's state from the query's rows; None without a row. Raises ``VerifyError``."""
        where = f"{self.where}, table migrator.ledger, migration {self.migration}"
        return ledger_state(rows[0], where) if rows else None

    def read(self, view: PostgresSnapshot) -> LedgerState | None:
        """The ledger; None where nothing was ever applied. Raises ``VerifyError``."""
        if view.rows("SELECT to_regclass('migrator.ledger')")[0][0] is None:
            return None
        return self.state(view.rows(self.query))
