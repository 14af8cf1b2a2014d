"""Row changes and transactions as values: written to a server as SQL, and to a file as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["insert", "update", "delete"]
Values = Mapping[str, object]
"""Column values by name: texts (each server reads them as the column's type), bytes, or None."""


@dataclass(frozen=True, slots=True)
class Change:
    """One row change.

    Attributes:
        kind: of the statement.
        table: its name.
        key: values of the primary key that find the row; empty for an insert.
        row: the columns written; empty for a delete.
    """

    kind: Kind
    table: str
    key: Values
    row: Values

    def statement(self, engine: str) -> tuple[str, tuple[object, ...]]:
        """The statement with ``%s`` for each of the parameters, names in double quotes."""
        table = quoted(self.table)
        where = " AND ".join(f"{quoted(name)} = %s" for name in self.key)
        if self.kind == "delete":
            return f"DELETE FROM {table} WHERE {where}", tuple(self.key.values())
        if self.kind == "update":
            settings = ", ".join(f"{quoted(name)} = %s" for name in self.row)
            return f"UPDATE {table} SET {settings} WHERE {where}", (*self.row.values(), *self.key.values())
        identity = "OVERRIDING SYSTEM VALUE " if engine == "postgresql" else ""
        names, marks = ", ".join(map(quoted, self.row)), ", ".join(["%s"] * len(self.row))
        return f"INSERT INTO {table} ({names}) {identity}VALUES ({marks})", tuple(self.row.values())


@dataclass(frozen=True, slots=True)
class Transaction:
    """Changes that are committed together.

    Attributes:
        name: the kind of transaction, e.g. ``family``.
        changes: in the order in which they are written.
        undone: whether the client rolls it back in the end.
    """

    name: str
    changes: tuple[Change, ...]
    undone: bool = False

    def line(self) -> str:
        """The transaction as one line of JSON; bytes are ``{"hex": ...}``."""
        changes = [
            {"kind": one.kind, "table": one.table, "key": _plain(one.key), "row": _plain(one.row)}
            for one in self.changes
        ]
        return json.dumps({"name": self.name, "changes": changes, "undone": self.undone}, ensure_ascii=False)


def parsed(line: str) -> Transaction:
    """The transaction of a line that ``Transaction.line`` wrote."""
    found = json.loads(line)
    changes = tuple(
        Change(one["kind"], one["table"], _values(one["key"]), _values(one["row"]))
        for one in found["changes"]
    )
    return Transaction(found["name"], changes, found["undone"])


def quoted(name: str) -> str:
    """An identifier in double quotes; ``%`` as drivers want it."""
    return '"' + name.replace('"', '""').replace("%", "%%") + '"'


def _plain(values: Values) -> dict[str, object]:
    return {name: {"hex": one.hex()} if isinstance(one, bytes) else one for name, one in values.items()}


def _values(found: Mapping[str, Any]) -> dict[str, object]:
    return {name: bytes.fromhex(one["hex"]) if isinstance(one, dict) else one for name, one in found.items()}
