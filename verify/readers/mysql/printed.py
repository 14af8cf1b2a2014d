"""Texts as a MariaDB target reads and prints them: addresses, for which it has types of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from verify.readers.as_printed import Ask, AsPrinted
from verify.readers.mysql.session import open_session, rows_and_warnings
from verify.settings import ServerSettings

_TYPES = ("inet4", "inet6")


@dataclass(frozen=True, slots=True)
class _TypeOfMariaDB:
    settings: ServerSettings = field(repr=False)
    name: str

    @contextmanager
    def asking(self) -> Iterator[Ask]:
        with open_session(self.settings, "target") as session:
            yield lambda texts: [_of_mariadb(session, self.name, text) for text in texts]


def as_printed(settings: ServerSettings, base: str) -> AsPrinted | None:
    """Returns how to ask for a column's texts; None where each text is a value of its own, or the server is no
    MariaDB.

    Args:
        settings: the target.
        base: the type's own name.
    """
    if settings.server.kind != "mariadb" or base not in _TYPES:
        return None
    return AsPrinted(_TypeOfMariaDB(settings, base))


def _of_mariadb(session: Any, type_: str, text: str) -> str:
    rows, warnings = rows_and_warnings(session, f"SELECT CAST(%s AS {type_.upper()})", (text,))
    return text if warnings or rows[0][0] is None else str(rows[0][0])
