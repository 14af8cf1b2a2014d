"""Texts as a PostgreSQL target reads and prints them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from verify.readers.as_printed import Ask, AsPrinted
from verify.readers.postgres.pins import connect_postgres
from verify.settings import ServerSettings

_AT_ONCE = 500
"""Texts in a query. One that can't be read has its half asked again, and so on."""
ONE_TEXT = ("text", "varchar", "bpchar", "name", "json", "jsonb", "uuid")
"""Types of PostgreSQL every text of which is another value, or whose rules
``verify.tables.compare.normalise`` has."""
_UNREADABLE = ("22", "42601", "0A000", "54000")
"""Beginnings of the codes by which an input function refuses a text."""


@dataclass(frozen=True, slots=True)
class _TypeOfPostgres:
    settings: ServerSettings = field(repr=False)
    name: str

    @contextmanager
    def asking(self) -> Iterator[Ask]:
        with connect_postgres(self.settings) as connection:
            yield lambda texts: list(_of_postgres(connection, self.name, texts))


def as_printed(settings: ServerSettings, base: str, type_: str) -> AsPrinted | None:
    """Returns how to ask for a column's texts; None where each text is a value of its own.

    Args:
        settings: the target.
        base: the type's own name.
        type_: the type in the target's words, without length or precision.
    """
    return None if base in ONE_TEXT else AsPrinted(_TypeOfPostgres(settings, type_))


def _of_postgres(connection: Any, type_: str, texts: Sequence[str]) -> Iterator[str]:
    for start in range(0, len(texts), _AT_ONCE):
        yield from _asked(connection, type_, texts[start : start + _AT_ONCE])


def _asked(connection: Any, type_: str, texts: Sequence[str]) -> list[str]:
    import psycopg

    # A parameter of no declared type goes to the type's own input function, whatever casts somebody made from text.
    expression = f"pg_catalog.format('%%s', %s::{type_.replace('%', '%%')})"
    try:
        row = connection.execute(
            f"SELECT ARRAY[{', '.join([expression] * len(texts))}]", list(texts)
        ).fetchone()
        return list(row[0])
    except psycopg.DataError:
        refused = True
    except psycopg.Error as error:
        refused = (error.sqlstate or "").startswith(_UNREADABLE)
        if not refused:
            raise
    if len(texts) == 1:
        return list(texts)
    half = len(texts) // 2
    return [*_asked(connection, type_, texts[:half]), *_asked(connection, type_, texts[half:])]
