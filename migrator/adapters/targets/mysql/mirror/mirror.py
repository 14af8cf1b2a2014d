"""Writes and reads mirrored rows in MySQL and MariaDB, inside a batch's transaction (``mirror.store``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa

from migrator.adapters.targets.mysql.file_text import TEXT
from migrator.adapters.targets.mysql.mirror.keys import index_parts
from migrator.adapters.targets.mysql.mirror.names import control_table, mirror_table, number_table
from migrator.adapters.targets.mysql.mirror.sql import MysqlMirrored
from migrator.adapters.targets.mysql.mirror.values import restored, texts
from migrator.adapters.targets.mysql.refusal import DUPLICATE, Refusal
from migrator.adapters.targets.mysql.rows.merge import qualified
from migrator.adapters.targets.mysql.rows.scratch import Scratch
from migrator.adapters.targets.mysql.session import Session
from migrator.adapters.targets.mysql.settings import MysqlTarget
from migrator.adapters.targets.shared.mirror.mirrored import Mirrored, Typed
from migrator.adapters.targets.shared.mirror.refused import not_held
from migrator.adapters.targets.shared.mirror.session_store import SessionStore, covered_of, covered_row
from migrator.adapters.targets.shared.refused import first_refused
from migrator.model.reach import Reach
from migrator.model.table import TableId, TableSchema
from migrator.model.target import TargetTable
from migrator.ports.mirror import Covered, JoinedTarget

_DIRECT = "migrator_mirror_load"
_LOAD = "migrator_mirror_part"
_PART_ROWS = 20_000


class MysqlMirror(SessionStore[Session, Scratch]):
    """Implements ``mirror.store.MirrorStore`` over the session's open transaction.

    Args:
        session: with the batch's transaction open.
        scratch: its temporary tables.
        settings: of the target whose mirror it is.
        kept: per source table the columns that its mirror has.
        segment: last segment of the batch.
    """

    def __init__(
        self,
        session: Session,
        scratch: Scratch,
        settings: MysqlTarget,
        kept: Mapping[TableId, tuple[str, ...]],
        segment: int,
    ):
        super().__init__(session, scratch, settings.migration, kept, segment)
        self._database = settings.server.database

    def selected(self, statement: str, table: Mirrored) -> pa.Table:
        """Source rows that a query gives."""
        return restored(self._session.columns(statement), table.schema, table.columns)

    def flagged(self, statement: str, table: Mirrored) -> tuple[pa.ChunkedArray, pa.Table]:
        """The same behind a column of flags."""
        first, *columns = self._session.columns(statement)
        flags = pa.chunked_array([pa.array([flag != b"0" for flag in first], pa.bool_())])
        return flags, restored(columns, table.schema, table.columns)

    def whole(self, table: Mirrored) -> Iterator[pa.Table]:
        """All rows of a mirrored table, in parts."""
        for part in self._session.parts(table.whole(), _PART_ROWS):
            yield restored(part, table.schema, table.columns)

    def mirrored(self, schema: TableSchema) -> Mirrored:
        """The mirrored table of a source table."""
        table = qualified(mirror_table(self._database, self._migration, schema.id))
        return MysqlMirrored(schema, self._kept[schema.id], table)

    def scratch(self, owner: str, columns: Typed, by: Sequence[str] = ()) -> str:
        """An empty temporary table."""
        kinds = dict(columns)
        return self._scratch.table(
            owner, columns, index_parts(by, [kinds[name] for name in by]) if by else ""
        )

    def load(
        self, name: str, table: Mirrored, rows: pa.Table, names: Sequence[str], chunk: bool | None = None
    ) -> None:
        """Appends columns of source rows to a table."""
        values, loads = texts(rows, table.schema, names)
        columns = table.places(names)
        if chunk is not None:
            flag = pa.chunked_array([pa.array([str(int(chunk))] * rows.num_rows, TEXT)])
            values, loads, columns = [flag, *values], ["{0}", *loads], ["chunk", *columns]
        staged = pa.table(values, names=columns)
        self._session.run(f"SAVEPOINT {_LOAD}")
        try:
            self._session.load(name, columns, loads, staged)
        except Refusal as refusal:
            if refusal.retryable() or refusal.code == DUPLICATE:
                raise

            def refused(first: int, last: int, code: int = refusal.code) -> bool:
                part = staged.slice(first, last - first)
                return self._refused(code, lambda: self._session.load(name, columns, loads, part))

            self._session.run(f"ROLLBACK TO SAVEPOINT {_LOAD}")
            row = first_refused(0, rows.num_rows, refused)
            raise not_held(table.schema, table.table, refusal.cause(), rows, row) from None
        self._session.run(f"RELEASE SAVEPOINT {_LOAD}")

    def _refused(self, code: int, load: Callable[[], None]) -> bool:
        """Tells whether the server refuses this load with the same code. Undoes the load."""
        same = False
        try:
            load()
        except Refusal as found:
            if found.retryable():  # the transaction may be over: a statement now would be in another one
                raise
            same = found.code == code
        self._session.run(f"ROLLBACK TO SAVEPOINT {_LOAD}")
        return same

    def load_directly(self, table: Mirrored, parts: Iterator[pa.Table]) -> bool:
        """Loads dump rows straight into the mirror; undoes it and returns False when some exist already."""
        self._session.run(f"SAVEPOINT {_DIRECT}")
        try:
            for part in parts:
                self.load(table.table, table, part, table.columns)
        except Refusal as refusal:
            if refusal.code != DUPLICATE:
                raise
            self._session.run(f"ROLLBACK TO SAVEPOINT {_DIRECT}")
            return False
        return True

    def number_table(self, reach: Reach) -> str:
        """Quoted name of the table of a computed grain's numbers."""
        return qualified(number_table(self._database, self._migration, reach))

    def load_numbers(self, reach: Reach, table: Mirrored, numbers: pa.Table) -> None:
        """Appends keys with their numbers."""
        values, loads = texts(numbers, table.schema, table.key)
        columns = [*table.places(table.key), "number"]
        rows = pa.table([*values, numbers["~number"].cast(TEXT)], names=columns)
        self._session.load(self.number_table(reach), columns, [*loads, "{0}"], rows)

    def filled(self) -> frozenset[tuple[str, str]]:
        """Name and digest of the joined targets that are in step with the mirror."""
        filled = control_table(self._database, "filled")
        rows = self._session.rows(
            f"SELECT target, digest FROM {filled} WHERE migration = %s", [self._migration]
        )
        return frozenset((str(name), str(digest)) for name, digest in rows)

    def mark_filled(self, target: JoinedTarget) -> None:
        """Notes that the target is in step with the mirror from this transaction on."""
        self._session.run(
            f"REPLACE INTO {control_table(self._database, 'filled')} VALUES (%s, %s, %s, %s)",
            [self._migration, target.table.id.name, target.digest(), self._segment],
        )

    def covering(self) -> Mapping[tuple[str, str], Covered]:
        """The joined targets that are being filled, locked until the transaction ends."""
        return covered_of(
            self._session.rows(
                "SELECT target, digest, reach, number, pieces, covered_rows, of_rows"
                f" FROM {control_table(self._database, 'filling')} WHERE migration = %s FOR UPDATE",
                [self._migration],
            )
        )

    def note_covered(self, target: JoinedTarget, covered: Covered) -> None:
        """Notes what of a target is covered."""
        self._session.run(
            f"REPLACE INTO {control_table(self._database, 'filling')} VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
            [self._migration, *covered_row(target, covered)],
        )

    def forget_covered(self, target: JoinedTarget) -> None:
        """Notes nothing of it any more."""
        self._session.run(
            f"DELETE FROM {control_table(self._database, 'filling')} WHERE migration = %s AND target = %s",
            [self._migration, target.table.id.name],
        )

    def is_empty(self, table: TargetTable) -> bool:
        """Tells whether the target table has no row."""
        return not self._session.rows(f"SELECT 1 FROM {qualified(table.id)} LIMIT 1")
