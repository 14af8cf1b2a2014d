"""Errors about a change whose old row isn't whole in the log."""

from __future__ import annotations

from migrator.errors import SourceError
from migrator.model.table import TableId


def incomplete_image(table: TableId, operation: str, where: str) -> SourceError:
    """The error for a change without its full before image."""
    return SourceError(
        f"an {operation} of {table} came without its full before image",
        where=f"{table} at {where}",
        cause="the REPLICA IDENTITY of the table, or of one of its partitions, is not FULL (or wasn't when this was"
        " written)",
        remedy=f"ALTER TABLE {quoted(table)} REPLICA IDENTITY FULL, and so for each of its partitions; then start"
        " the migration anew (docs/how-to/start-anew.md)",
    )


def quoted(table: TableId) -> str:
    """The table's name with both parts quoted."""
    return ".".join(name_of(part) for part in (table.schema, table.name))


def name_of(name: str) -> str:
    """A quoted name, of a role for instance."""
    return '"' + name.replace('"', '""') + '"'
