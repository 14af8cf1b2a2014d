"""Orders of keys that changed under their indexes: a read in key order would miss rows, on both sides perhaps."""

from __future__ import annotations

from collections.abc import Sequence

from migrator.connections.postgres.collations import stale_orders
from migrator.errors import VerifyError
from migrator.model.table import TableId
from verify.readers.postgres.session import PostgresSnapshot


def refuse_stale_orders(view: PostgresSnapshot, schema: str, tables: Sequence[str]) -> None:
    """Raises ``VerifyError`` for a table whose keys were indexed by another version of their collation."""
    for found in stale_orders(view.rows, ("%s", "%s"), [TableId(schema, name) for name in tables]):
        raise VerifyError(
            f"the keys of {', '.join(tables)} can't be read in their order",
            where=found.subject,
            cause=found.problem,
            remedy=found.remedy,
        )
