"""The state in which a server refuses a statement, from the error of any of the drivers."""

from __future__ import annotations

from typing import Any

from migrator.connections.mysql import states as of_mysql
from migrator.connections.postgres import states as of_postgres
from migrator.connections.states import RefusingState


def refusing_state(error: BaseException | None) -> RefusingState | None:
    """Returns the state that a driver's error tells of; None for any other error, and for none."""
    code, *words = getattr(error, "args", None) or (None,)
    if isinstance(code, int):  # PyMySQL's errors have a SQLSTATE as well, which says less
        return of_mysql.state_of(code, str(words[0]) if words else "")
    return of_postgres.state_of(str(getattr(error, "sqlstate", "")))


def remedy_of(error: Any, otherwise: str) -> str:
    """Returns what ends the state that an error of SQLAlchemy's tells of; ``otherwise`` where it tells of none."""
    state = refusing_state(error.orig)
    return otherwise if state is None else state.remedy
