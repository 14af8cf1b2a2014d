"""Looks for rows of target tables, at a cost that doesn't grow with the rows that somebody has deleted.

Until VACUUM has been there, and where an old snapshot keeps it away, a search for a row of a table reads through all
that were deleted before it finds one that is left: of ten million rows, 81,380 pages, which takes seconds. So a look
begins with the page in which a row was seen last, which is one read; only where that page has none any more is the
table searched, from the end of its key. Whatever row the page holds by now, the table has one: a page that isn't
known, or is another's, costs a search, and can't answer wrongly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from migrator.adapters.targets.postgres.rows.merge import qualified, quoted
from migrator.adapters.targets.shared.identities import WithRows, any_row, as_text
from migrator.model.table import TableId

Ask = Callable[[str, Sequence[object]], Iterable[Sequence[Any]]]


class Looks:
    """Looks for rows in the tables of one schema, in any session.

    Args:
        schema: where they are.
    """

    def __init__(self, schema: str) -> None:
        self._schema = schema
        self._pages: dict[str, int] = {}

    def rows_there(self, ask: Ask, keys: Mapping[str, Sequence[str]]) -> WithRows:
        """Returns what tells which tables have rows.

        Args:
            ask: runs a query in the session that is asked.
            keys: columns of primary keys by table, as far as they are known.
        """

        def there(names: Sequence[str]) -> set[str]:
            found = self._where_seen(ask, [name for name in names if name in self._pages])
            if left := [name for name in names if name not in found]:
                found |= self._searched(ask, keys, left)
            return found

        return there

    def _where_seen(self, ask: Ask, names: Sequence[str]) -> set[str]:
        """Returns those of some tables that have a row in the page where one was seen last."""
        if not names:
            return set()
        looks = (
            f"(SELECT {place} FROM {self._qualified(name)} WHERE ctid >= ${2 * place + 1}::text::tid"
            f" AND ctid < ${2 * place + 2}::text::tid LIMIT 1)"
            for place, name in enumerate(names)
        )
        pages = (self._pages[name] for name in names)
        bounds = [f"({page},0)" for first in pages for page in (first, first + 1)]
        return {names[int(place)] for (place,) in ask(" UNION ALL ".join(looks), bounds)}

    def _searched(self, ask: Ask, keys: Mapping[str, Sequence[str]], names: Sequence[str]) -> set[str]:
        """Returns those of some tables that have a row anywhere, and takes note of its page."""
        tables = [
            (self._qualified(name), [quoted(column) for column in keys.get(name, ())]) for name in names
        ]
        seen = {names[int(place)]: as_text(row) for place, row in ask(any_row(tables, "ctid::text"), [])}
        self._pages |= {name: int(row.strip("()").partition(",")[0]) for name, row in seen.items()}
        return {*seen}

    def _qualified(self, name: str) -> str:
        return qualified(TableId(self._schema, name))
