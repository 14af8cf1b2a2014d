"""Writes and reads mirrored rows in PostgreSQL, inside a batch's transaction (``mirror.store``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa

from migrator.adapters.targets.postgres.mirror.sql import PostgresMirrored
from migrator.adapters.targets.postgres.mirror.tables import (
    FILLED,
    FILLING,
    TOO_WIDE,
    held,
    mirror_table,
    number_table,
    restored,
)
from migrator.adapters.targets.postgres.refusal import UNIQUE_VIOLATION, Refusal
from migrator.adapters.targets.postgres.rows.merge import qualified, quoted
from migrator.adapters.targets.postgres.rows.scratch import Scratch
from migrator.adapters.targets.postgres.session import Session
from migrator.adapters.targets.shared.mirror.mirrored import Mirrored, Typed
from migrator.adapters.targets.shared.mirror.refused import not_held
from migrator.adapters.targets.shared.mirror.session_store import SessionStore, covered_of, covered_row
from migrator.adapters.targets.shared.refused import first_refused, temporary
from migrator.errors import TargetError
from migrator.model.reach import Reach
from migrator.model.table import TableSchema
from migrator.model.target import TargetTable
from migrator.ports.mirror import Covered, JoinedTarget

_LOAD = quoted("migrator_mirror_load")


class PostgresMirror(SessionStore[Session, Scratch]):
    """Implements ``mirror.store.MirrorStore`` over the session's open transaction.

    Statements wait until rows are asked for or loaded: a batch has many, and each would wait for the server.
    """

    def run(self, statement: str) -> None:
        """Has one statement run before the next that brings or takes rows."""
        self._session.later(statement)

    def selected(self, statement: str, table: Mirrored) -> pa.Table:
        """Source rows that a query gives."""
        rows = self._session.table(statement)
        self._scratch.seen(rows.num_rows)
        return restored(rows, table.schema, table.columns)

    def flagged(self, statement: str, table: Mirrored) -> tuple[pa.ChunkedArray, pa.Table]:
        """The same behind a column of flags."""
        rows = self._session.table(statement)
        self._scratch.seen(rows.num_rows)
        return rows.column(0), restored(rows.select(range(1, rows.num_columns)), table.schema, table.columns)

    def whole(self, table: Mirrored) -> Iterator[pa.Table]:
        """All rows of a mirrored table, in parts."""
        for part in self._session.parts(table.whole()):
            yield restored(part, table.schema, table.columns)

    def mirrored(self, schema: TableSchema) -> Mirrored:
        """The mirrored table of a source table."""
        table = qualified(mirror_table(self._migration, schema.id))
        return PostgresMirrored(schema, self._kept[schema.id], table)

    def scratch(self, owner: str, columns: Typed, by: Sequence[str] = ()) -> str:
        """An empty temporary table; without indexes, as the planner joins by hashes."""
        return self._scratch.table(owner, columns)

    def load(
        self, name: str, table: Mirrored, rows: pa.Table, names: Sequence[str], chunk: bool | None = None
    ) -> None:
        """Appends columns of source rows to a temporary table."""
        staged = held(rows, table.schema, names).rename_columns(table.places(names))
        if chunk is not None:
            staged = staged.add_column(0, "chunk", pa.array([chunk] * rows.num_rows, pa.bool_()))
        self._scratch.seen(rows.num_rows)
        self._session.run(f"SAVEPOINT {_LOAD}")
        try:
            self._session.load(name, staged)
        except Refusal as refusal:
            raise self._not_held(
                table, refusal, rows, lambda one: self._session.load(name, one), staged
            ) from None
        self._session.later(f"RELEASE SAVEPOINT {_LOAD}")

    def load_directly(self, table: Mirrored, parts: Iterator[pa.Table]) -> bool:
        """Loads dump rows straight into the mirror, and tells whether that succeeded."""
        self._session.run(f"SAVEPOINT {_LOAD}")
        place = mirror_table(self._migration, table.schema.id)
        for part in parts:
            rows = held(part, table.schema, table.columns)
            try:
                self._session.load(place, rows)
            except Refusal as refusal:
                if refusal.sqlstate != UNIQUE_VIOLATION:
                    raise self._not_held(
                        table, refusal, part, lambda one: self._session.load(place, one), rows
                    ) from None
                self._session.run(f"ROLLBACK TO SAVEPOINT {_LOAD}")
                return False
        return True

    def _not_held(
        self,
        table: Mirrored,
        refusal: Refusal,
        rows: pa.Table,
        load: Callable[[pa.Table], None],
        staged: pa.Table,
    ) -> TargetError:
        """The error for rows that the server refused behind the savepoint."""
        self._session.run(f"ROLLBACK TO SAVEPOINT {_LOAD}")
        if refusal.retryable() and refusal.sqlstate not in TOO_WIDE:
            return temporary(refusal)

        def refused(first: int, last: int) -> bool:
            try:
                load(staged.slice(first, last - first))
            except Refusal as found:
                return found.sqlstate == refusal.sqlstate
            finally:
                self._session.run(f"ROLLBACK TO SAVEPOINT {_LOAD}")
            return False

        row = first_refused(0, rows.num_rows, refused)
        return not_held(table.schema, table.table, refusal.cause(), rows, row)

    def number_table(self, reach: Reach) -> str:
        """Quoted name of the table of a computed grain's numbers."""
        return qualified(number_table(self._migration, reach))

    def load_numbers(self, reach: Reach, table: Mirrored, numbers: pa.Table) -> None:
        """Appends keys with their numbers."""
        keyed = held(numbers, table.schema, table.key).append_column("~number", numbers["~number"])
        self._session.load(number_table(self._migration, reach), keyed)

    def filled(self) -> frozenset[tuple[str, str]]:
        """Name and digest of the joined targets that are in step with the mirror."""
        rows = self._session.rows(
            f"SELECT target, digest FROM {FILLED} WHERE migration = $1::text", [self._migration]
        )
        return frozenset((str(name), str(digest)) for name, digest in rows)

    def mark_filled(self, target: JoinedTarget) -> None:
        """Notes that the target is in step with the mirror from this transaction on."""
        self._session.run(
            f"INSERT INTO {FILLED} VALUES ($1::text, $2::text, $3::text, $4::bigint) ON CONFLICT (migration, target)"
            " DO UPDATE SET digest = excluded.digest, segment = excluded.segment",
            [self._migration, target.table.id.name, target.digest(), self._segment],
        )

    def covering(self) -> Mapping[tuple[str, str], Covered]:
        """The joined targets that are being filled, locked until the transaction ends."""
        return covered_of(
            self._session.rows(
                "SELECT target, digest, reach, number, pieces, covered_rows, of_rows"
                f" FROM {FILLING} WHERE migration = $1::text FOR UPDATE",
                [self._migration],
            )
        )

    def note_covered(self, target: JoinedTarget, covered: Covered) -> None:
        """Notes what of a target is covered."""
        self.forget_covered(target)
        self._session.run(
            f"INSERT INTO {FILLING} VALUES ($1::text, $2::text, $3::text, $4::smallint, $5::bigint, $6::bigint,"
            " $7::bigint, $8::bigint)",
            [self._migration, *covered_row(target, covered)],
        )

    def forget_covered(self, target: JoinedTarget) -> None:
        """Notes nothing of it any more."""
        self._session.run(
            f"DELETE FROM {FILLING} WHERE migration = $1::text AND target = $2::text",
            [self._migration, target.table.id.name],
        )

    def is_empty(self, table: TargetTable) -> bool:
        """Tells whether the target table has no row."""
        return not self._session.rows(f"SELECT 1 FROM {qualified(table.id)} LIMIT 1")
