"""One version of a tracked row as any recorder sees it, and where its columns stand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from migrator.errors import VerifyError
from scenarios.workloads.base import Columns, key_text


class RowVersion(NamedTuple):
    """Key text, provenance and value of a row."""

    key: str
    session: int | None
    number: int | None
    value: int | None


class RowShape:
    """Picks a row's version out of its column values.

    Args:
        columns: which columns a side's tracked table has.
        names: all its columns in the order in which values come. Raises ``VerifyError`` when one is missing.
    """

    def __init__(self, columns: Columns, names: Sequence[str]):
        places = {name: place for place, name in enumerate(names)}
        wanted = [*columns.keys, columns.session, columns.number, *filter(None, [columns.value])]
        missing = [name for name in wanted if name not in places]
        if missing:
            raise VerifyError(
                f"table {columns.table} lost columns that its recorder needs",
                where=", ".join(missing),
                remedy="a scenario must leave the columns of keys, provenance and values where they are",
            )
        self._keys = tuple(places[name] for name in columns.keys)
        self._session = places[columns.session]
        self._number = places[columns.number]
        self._value = places[columns.value] if columns.value else None

    def version(self, values: Sequence[object]) -> RowVersion:
        """The version that these values (text, bytes of text, or native) make."""
        value = None if self._value is None else _number(values[self._value])
        return RowVersion(
            key_text([_text(values[place]) for place in self._keys]),
            _number(values[self._session]),
            _number(values[self._number]),
            value,
        )


def _text(value: object) -> object:
    return value.decode() if isinstance(value, bytes) else value


def _number(value: object) -> int | None:
    return None if value is None else int(_text(value))  # type: ignore[call-overload]
