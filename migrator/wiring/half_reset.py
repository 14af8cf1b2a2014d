"""The refusal of a migration of which a reset has removed a part."""

from __future__ import annotations

from migrator.config.project import Settings
from migrator.errors import HalfResetError, MigratorError
from migrator.wiring.coordination import refuse_noted
from migrator.wiring.target import peek


def refuse_half(settings: Settings) -> None:
    """Raises ``HalfResetError`` where state folder or ledger say that a reset isn't finished. Whatever else keeps the
    ledger from being read, the checks that follow name with its remedy."""
    refuse_noted(settings)
    try:
        peek(settings)
    except HalfResetError:
        raise
    except MigratorError:
        return
