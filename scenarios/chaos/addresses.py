"""A database of the user's own by its address, such as ``postgresql://me@old.example.org/shop``."""

from __future__ import annotations

from typing import Literal
from urllib.parse import unquote, urlsplit

from migrator.errors import ConfigError
from scenarios.database import Database

_KINDS: dict[str, Literal["postgresql", "mariadb", "mysql"]] = {
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "mysql": "mysql",
    "mariadb": "mariadb",
}
_PORT = {"postgresql": 5432, "mariadb": 3306, "mysql": 3306}


def is_address(origin: str) -> bool:
    """Tells an address from the name of a file."""
    return "://" in origin


def addressed(address: str, kind: str, what: str, remedy: str) -> Database:
    """The database of an address.

    Args:
        address: with login and password where they are needed.
        kind: the engine of the project's source; MySQL and MariaDB stand for each other.
        what: the thing that is read from there, for the error.
        remedy: what to do about an address that doesn't fit.

    Raises ``ConfigError`` for an address of another engine.
    """
    found = urlsplit(address)
    engine = _KINDS.get(found.scheme)
    if engine is None or (engine == "postgresql") is not (kind == "postgresql"):
        raise ConfigError(
            f"{what} can't be read from this address",
            where=f"{found.scheme}://{found.hostname or ''}{found.path}",
            cause=f"the project's source is {kind}",
            remedy=remedy,
        )
    return Database(
        engine if engine == "postgresql" else _KINDS[kind],
        found.hostname or "localhost",
        found.port or _PORT[engine],
        unquote(found.path.lstrip("/")),
        unquote(found.username or ""),
        unquote(found.password or ""),
    )
