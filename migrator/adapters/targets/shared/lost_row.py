"""The error for a target whose ledger lost the migration's row."""

from __future__ import annotations

from migrator.errors import TargetError


def lost_row(migration: str, ledger: str) -> TargetError:
    """Nobody knows then what is in the target: a dump over it would leave rows that are gone from the source."""
    return TargetError(
        f"the target's ledger has no row for migration {migration}",
        where=ledger,
        cause="it was deleted, or another database is configured now",
        remedy="configure the target that the migration writes into, or put the row back as a backup of the target"
        " has it; else start the migration anew (docs/how-to/start-anew.md)",
    )
