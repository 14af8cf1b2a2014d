"""The states in which a PostgreSQL refuses statements whatever rights the login has, by their SQLSTATEs."""

from __future__ import annotations

from migrator.connections.states import RefusingState

_REFUSED: dict[str, tuple[str, str, bool]] = {
    "25006": (
        "the {side} takes no writes",
        "connect to the primary, and not by a pooler's port for readers; or promote this server: SELECT pg_promote()",
        False,
    ),
    "25P04": (
        "transactions on the {side} end before anything can be done in them",
        "ALTER ROLE ... RESET transaction_timeout, ALTER DATABASE ... RESET transaction_timeout",
        False,
    ),
}


def state_of(sqlstate: str) -> RefusingState | None:
    """Returns the state that an error tells of; None for any other error."""
    known = _REFUSED.get(sqlstate)
    return None if known is None else RefusingState(*known)
