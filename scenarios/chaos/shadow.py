"""The old database as it was at any place of its log: a copy of its first rows, in which the log is done again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from scenarios.chaos.writes.changes import Change
from scenarios.chaos.writes.plain_rows import plain_rows
from scenarios.database import Database
from scenarios.faults.session import execute, query
from scenarios.recording.whole_rows import Committed, Image, RowChange
from scenarios.rehearsal.tables import Table

_SUFFIX = "_as_it_was"


def copied(old: Database) -> Database:
    """Copies a database to another one of the same server, while nobody is connected. Raises ``MigratorError``."""
    copy = replace(old, database=f"{old.database}{_SUFFIX}")
    if old.kind == "postgresql":
        elsewhere = replace(old, database="template1")
        execute(elsewhere, [f"CREATE DATABASE {_q(copy.database)} TEMPLATE {_q(old.database)}"])
        return copy
    found = query(
        old,
        "SELECT table_name FROM information_schema.tables WHERE table_schema = %s AND table_type = 'BASE TABLE'",
        [old.database],
    )
    statements = [
        "SET SESSION sql_log_bin = 0, foreign_key_checks = 0",
        f"CREATE DATABASE {_q(copy.database)}",
    ]
    for (name,) in found:
        columns = query(
            old,
            "SELECT column_name FROM information_schema.columns WHERE table_schema = %s AND table_name = %s"
            " AND COALESCE(generation_expression, '') = '' ORDER BY ordinal_position",
            [old.database, name],
        )
        copy_name, old_name = f"{_q(copy.database)}.{_q(str(name))}", f"{_q(old.database)}.{_q(str(name))}"
        chosen = ", ".join(_q(str(column)) for (column,) in columns)
        statements += [
            f"CREATE TABLE {copy_name} LIKE {old_name}",
            f"INSERT INTO {copy_name} ({chosen}) SELECT {chosen} FROM {old_name}",
        ]
    execute(old, statements)
    return copy


class Shadow:
    """The copy, brought forward in the log.

    Args:
        database: as ``copied`` left it.
        tables: of the old database.
        transactions: of its log, in commit order.

    Attributes:
        changed: how many changes of each table are done again so far.
    """

    def __init__(self, database: Database, tables: Mapping[str, Table], transactions: Sequence[Committed]):
        self.database = database
        self.changed = Counter[str]()
        self._tables, self._left = tables, list(reversed(transactions))
        self._connection = database.connect()
        own = (
            "SET session_replication_role = replica"  # neither triggers nor foreign keys
            if database.kind == "postgresql"
            else "SET SESSION sql_log_bin = 0, foreign_key_checks = 0, unique_checks = 0"
        )
        self._connection.cursor().execute(own)
        self._connection.commit()

    def upto(self, order: int) -> None:
        """Does everything again that is at or before this place. Raises a driver's error."""
        while self._left and self._left[-1].order <= order:
            for change in self._left.pop().changes:
                self._again(change)
                self.changed[change.table] += 1
        self._connection.commit()

    def upto_end(self) -> None:
        """Does the whole log again."""
        if self._left:
            self.upto(self._left[0].order)

    def unlike(self, old: Database) -> list[str]:
        """Names of tables whose rows aren't those of the old database now."""
        return [
            name
            for name, table in self._tables.items()
            if table.key and plain_rows(self.database, table) != plain_rows(old, table)
        ]

    def close(self) -> None:
        """Ends the session."""
        self._connection.close()

    def _again(self, change: RowChange) -> None:
        table = self._tables[change.table]
        if change.before is not None:
            before = self._taken(table, change.before)
            self._run(Change("delete", table.name, {name: before[name] for name in table.key}, {}))
        if change.after is not None:
            self._run(Change("insert", table.name, {}, self._taken(table, change.after)))

    def _run(self, change: Change) -> None:
        statement, parameters = change.statement(self.database.kind)
        self._connection.cursor().execute(statement, parameters)

    def _taken(self, table: Table, image: Image) -> dict[str, object]:
        found = {name: image[name] for name in table.written()}
        if self.database.kind != "postgresql":
            for column in table.columns:
                value = found.get(column.name)
                if column.type.startswith("bit") and isinstance(value, str):
                    found[column.name] = int(value, 2)  # the decoder writes its digits
        return found


def _q(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
