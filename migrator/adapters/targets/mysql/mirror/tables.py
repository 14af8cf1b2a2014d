"""The tables of the mirror, in the database ``<target>_mirror`` of the target's server.

A database of its own may be lost, or restored, without the target's. So ``moved`` says of every table with which
segment it was moved last; a table that isn't at the ledger's segment is not used.
"""

from __future__ import annotations

from collections.abc import Sequence

from migrator.adapters.targets.mysql.mirror.keys import by_bytes, index_parts, key_body, lengthen
from migrator.adapters.targets.mysql.mirror.names import (
    GRAIN,
    KEY,
    ROW,
    control_table,
    grain_column,
    index_name,
    mirror_database,
    mirror_table,
    number_table,
    place,
)
from migrator.adapters.targets.mysql.mirror.sql import BY_NUMBER, number_of
from migrator.adapters.targets.mysql.mirror.values import BYTES, column_of, sql_type
from migrator.adapters.targets.mysql.refusal import Refusal
from migrator.adapters.targets.mysql.rows.merge import columns as quoted_columns
from migrator.adapters.targets.mysql.rows.merge import qualified, quoted
from migrator.adapters.targets.mysql.session import Session
from migrator.adapters.targets.mysql.settings import MysqlTarget
from migrator.adapters.targets.shared.mirror.columns import (
    COMMENT,
    FORMAT,
    needed,
    out_of_step,
    outdated,
    refuse_another_key,
    refuse_late,
    refuse_newer,
    renamed,
    too_wide,
    wrong_columns,
)
from migrator.errors import TargetError
from migrator.model.ledger import Ledger
from migrator.model.reach import VALUE, linked_columns
from migrator.model.table import Column, TableId, TableSchema
from migrator.ports.log_notes import Notes, renamed_in
from migrator.ports.mirror import JoinedTarget

_MOST_COLUMNS = 950  # of InnoDB's 1,017: computed values and numbers of grains come on top
_MOST_WIDTH = 7000  # of some 8,100 bytes
_MOVED_OUT = 41
_DECIMAL = 30
_WIDTHS = {"TINYINT": 1, "SMALLINT": 2, "INT": 4, "BIGINT": 8}
_TOO_WIDE = frozenset({1117, 1118})
_MARIADB_TOO_WIDE = "errno: 185"  # of InnoDB, inside of 1005
_TEXT = "VARCHAR({}) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL"
_MAKE_FILLED = (
    f"migration {_TEXT.format(31)}, target {_TEXT.format(64)}, digest {_TEXT.format(16)},"
    " segment BIGINT NOT NULL, PRIMARY KEY (migration, target)"
)
_MAKE_FILLING = (
    f"migration {_TEXT.format(31)}, target {_TEXT.format(64)}, digest {_TEXT.format(16)}, reach SMALLINT NOT NULL,"
    " number BIGINT, pieces BIGINT NOT NULL, covered_rows BIGINT NOT NULL, of_rows BIGINT NOT NULL,"
    " PRIMARY KEY (migration, target)"
)
_FILLED_IS = f"ENGINE=InnoDB COMMENT = '{COMMENT}{FORMAT}'"
_MAKE_MOVED = (
    f"migration {_TEXT.format(31)}, mirrored {_TEXT.format(64)}, segment BIGINT NOT NULL,"
    " PRIMARY KEY (migration, mirrored)"
)
_DATABASE = "SELECT 1 FROM information_schema.schemata WHERE schema_name = %s"
_OF_TABLE = "WHERE table_schema = %s AND table_name = %s"
_COLUMNS = f"SELECT column_name, column_type FROM information_schema.columns {_OF_TABLE}"
_COMPUTED = f"""SELECT column_name FROM information_schema.columns {_OF_TABLE}
    AND LOCATE(%s, generation_expression) > 0"""
_COMMENT = f"SELECT table_comment FROM information_schema.tables {_OF_TABLE}"
_INDEXES = f"SELECT DISTINCT index_name FROM information_schema.statistics {_OF_TABLE}"
_LEFT = (
    "SELECT table_name FROM information_schema.tables WHERE table_schema = %s AND LOCATE(%s, table_name) = 1"
)
RIGHTS = "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX"
"""Rights that the login needs on the mirror's database."""


class MirrorTables:
    """Makes what is missing. DDL commits here: each step is repeated until it was done, and none undoes another.

    Args:
        session: outside of a transaction.
        settings: of the target.
        ledger: as it is now, ours.
    """

    def __init__(self, session: Session, settings: MysqlTarget, ledger: Ledger):
        self._session = session
        self._settings = settings
        self._ledger = ledger

    def prepare(self, targets: Sequence[JoinedTarget]) -> dict[TableId, tuple[str, ...]]:
        """Makes database, tables and indexes; returns per source table the columns that its mirror has.

        Raises ``TargetError``: the user may not, a table was dumped before it was mirrored, a column is missing, or
        the mirror isn't at the ledger's place.
        """
        database = mirror_database(self._settings.server.database)
        try:
            if not self._session.rows(_DATABASE, [database]):
                self._session.run(f"CREATE DATABASE {quoted(database)} CHARACTER SET utf8mb4")
            self._make(control_table(self._settings.server.database, "filled"), _MAKE_FILLED, _FILLED_IS)
            for (comment,) in self._session.rows(_COMMENT, [database, "filled"]):
                refuse_newer(_text(comment), f"database {database}")
                if _text(comment) != f"{COMMENT}{FORMAT}":
                    filled = control_table(self._settings.server.database, "filled")
                    self._session.run(f"ALTER TABLE {filled} COMMENT = '{COMMENT}{FORMAT}'")
            self._make(control_table(self._settings.server.database, "filling"), _MAKE_FILLING)
            self._make(control_table(self._settings.server.database, "moved"), _MAKE_MOVED)
            if self._ledger.segment == 0:
                self._forget()
            schemas = {schema.id: schema for target in targets for schema in target.sources.values()}
            found = {}
            for schema in schemas.values():
                found[schema.id] = self._table(schema, targets)
            self._indexes(targets)
        except Refusal as refusal:
            if refusal.retryable():
                raise
            if refusal.code in _TOO_WIDE or _MARIADB_TOO_WIDE in refusal.message:
                raise too_wide(f"database {database}", refusal.cause()) from None
            user = self._settings.server.user
            raise TargetError(
                "the mirror of the source's tables can't be made beside the target",
                where=f"database {database}",
                cause=refusal.cause(),
                remedy=f"CREATE DATABASE {quoted(database)}; GRANT {RIGHTS} ON {quoted(database)}.* TO '{user}'",
            ) from None
        return found

    def _forget(self) -> None:
        """Drops what a migration of this name left before it was started anew: else rows that are gone would
        stay."""
        target, migration = self._settings.server.database, self._settings.migration
        for (name,) in self._session.rows(_LEFT, [mirror_database(target), f"{migration}."]):
            self._session.run(f"DROP TABLE {qualified(TableId(mirror_database(target), _text(name)))}")
        for kept in ("filled", "filling", "moved"):
            self._session.run(f"DELETE FROM {control_table(target, kept)} WHERE migration = %s", [migration])
        self._session.run("COMMIT")

    def _make(self, name: str, body: str, options: str = "ENGINE=InnoDB") -> None:
        self._session.run(f"CREATE TABLE IF NOT EXISTS {name} ({body}) {options}")

    def _table(self, schema: TableSchema, targets: Sequence[JoinedTarget]) -> tuple[str, ...]:
        target, migration = self._settings.server.database, self._settings.migration
        there = mirror_table(target, migration, schema.id)
        name, moved = qualified(there), control_table(target, "moved")
        known = self._session.rows(
            f"SELECT segment FROM {moved} WHERE migration = %s AND mirrored = %s", [migration, there.name]
        )
        if known and out_of_step(schema, self._ledger):
            self._session.run(
                f"DELETE FROM {moved} WHERE migration = %s AND mirrored = %s", [migration, there.name]
            )
            known = []
        if not known:
            refuse_late(schema, self._ledger, name)
            self._session.run(
                f"DROP TABLE IF EXISTS {name}"
            )  # of another attempt that didn't get as far as here
            wide = len(schema.columns) > _MOST_COLUMNS or sum(map(_width, schema.columns)) > _MOST_WIDTH
            columns = needed(schema, targets) if wide else schema.names()
            names = [f"{place(one)} {_declared(schema, one)}" for one in columns]
            self._make(name, ", ".join([*names, *key_body(schema)]))
            self._session.run(
                f"INSERT INTO {moved} VALUES (%s, %s, %s)", [migration, there.name, self._ledger.segment]
            )
            self._session.run("COMMIT")
            return columns
        if int(known[0][0]) != self._ledger.segment:
            raise _elsewhere(schema, name, int(known[0][0]), self._ledger.segment)
        refuse_another_key(schema, self._ledger, name)
        self._lengthen(there, schema)
        present = self._present(there)
        for column in schema.columns:  # values of a newer mapping: filling its target computes them
            if column.name.startswith(VALUE) and place(column.name) not in present:
                declared = _declared(schema, column.name)
                self._session.run(f"ALTER TABLE {name} ADD COLUMN {place(column.name)} {declared}")
                present = self._present(there)
        self._follow_names(there, schema, needed(schema, targets))
        outdated_now = self._outdated(there, schema, needed(schema, targets))
        found = self._present(there).items()
        held = {column: _shown(kind) for column, kind in found if column[1:-1] not in outdated_now}
        wanted = {one.name: _shown(sql_type(one)) for one in schema.columns}
        kept = {one: held[place(one)] for one in schema.names() if place(one) in held}
        read = {column for target in targets for column in target.columns.get(schema.id.name, ())}
        wrong_columns(schema, name, wanted, kept, read)
        self._drop(there, outdated_now)  # last: nothing brings a column back once the mapping is put back
        return tuple(kept)

    def _follow_names(self, there: TableId, schema: TableSchema, needed_now: Sequence[str]) -> None:
        """Gives columns the names that they have at the source by now; numbers of grains are computed anew."""
        wanted = {one.name: _shown(sql_type(one)) for one in schema.columns}
        held = {name: _shown(kind) for name, kind in self._present(there).items()}
        known = [*schema.names(), *(old for old, _ in renamed_in(self._notes()).get(schema.id, ()))]
        present = {name: held[place(name)] for name in known if place(name) in held}
        for old, new in renamed(schema, self._ledger, present, wanted, needed_now):
            dropped = [f"DROP COLUMN {quoted(name)}" for name in self._computed_from(there, place(old))]
            if dropped:
                self._session.run(f"ALTER TABLE {qualified(there)} {', '.join(dropped)}")
            self._session.run(f"ALTER TABLE {qualified(there)} RENAME COLUMN {place(old)} TO {place(new)}")

    def _notes(self) -> Notes:
        return () if self._ledger.checkpoint is None else self._ledger.checkpoint.notes

    def _computed_from(self, there: TableId, column: str) -> list[str]:
        """The columns with numbers of grains that the server computes from a column (its quoted name)."""
        rows = self._session.rows(_COMPUTED, [there.schema, there.name, column])
        return [_text(name) for (name,) in rows]

    def _outdated(self, there: TableId, schema: TableSchema, needed_now: Sequence[str]) -> tuple[str, ...]:
        """The columns that the source has no more."""
        names = {place(one.name)[1:-1]: _shown(sql_type(one)) for one in schema.columns}
        present = {name[1:-1]: _shown(kind) for name, kind in self._present(there).items()}
        kept = [place(one)[1:-1] for one in needed_now]
        return outdated(present, names, kept, (GRAIN, KEY, ROW))

    def _drop(self, there: TableId, columns: Sequence[str]) -> None:
        """Drops columns, and first the numbers of grains that were computed from them."""
        for gone in columns:
            dropped = [*self._computed_from(there, quoted(gone)), gone]
            clauses = ", ".join(f"DROP COLUMN {quoted(name)}" for name in dropped)
            self._session.run(f"ALTER TABLE {qualified(there)} {clauses}")

    def _lengthen(self, there: TableId, schema: TableSchema) -> None:
        """Converts a table of the first format, where a key held no more bytes than an index takes."""
        if by_bytes(schema) and quoted(ROW) not in self._present(there):
            self._session.run(f"ALTER TABLE {qualified(there)} {lengthen(schema)}")

    def _present(self, table: TableId) -> dict[str, str]:
        """Types of a table's columns by quoted name."""
        rows = self._session.rows(_COLUMNS, [table.schema, table.name])
        return {quoted(str(name)): _text(kind) for name, kind in rows}

    def _indexes(self, targets: Sequence[JoinedTarget]) -> None:
        target, migration = self._settings.server.database, self._settings.migration
        reaches = tuple(reach for one in targets for reach in one.reaches)
        schemas = {node.schema.id: node.schema for reach in reaches for node in reach.nodes}
        for table, linked in linked_columns(reaches).items():
            schema = schemas[table]
            for names in sorted(linked):
                _refuse_floats(schema, names)
                if schema.key[: len(names)] != names:
                    kinds = [sql_type(column_of(schema, name)) for name in names]
                    parts = index_parts(list(map(place, names)), kinds)
                    self._index(mirror_table(target, migration, table), index_name(names), parts)
        for reach in reaches:
            if reach.grain:
                for index in reach.roots():
                    schema = reach.nodes[index].schema
                    self._grain(mirror_table(target, migration, schema.id), schema, reach.grain_of(index))
                continue
            schema = reach.root.schema
            there = number_table(target, migration, reach)
            body = [f"{place(name)} {_declared(schema, name)}" for name in schema.key]
            more = ["number BIGINT NOT NULL", *key_body(schema), f"KEY {quoted(BY_NUMBER)} (number)"]
            self._make(qualified(there), ", ".join([*body, *more]))
            self._lengthen(there, schema)

    def _grain(self, table: TableId, schema: TableSchema, grain: Sequence[str]) -> None:
        _refuse_floats(schema, grain)
        column = grain_column(grain)
        if quoted(column) not in self._present(table):
            computed = number_of([place(name) for name in grain])
            self._session.run(
                f"ALTER TABLE {qualified(table)} ADD COLUMN {quoted(column)} BIGINT AS ({computed}) VIRTUAL"
            )
        self._index(table, index_name([column]), quoted_columns([column]))

    def _index(self, table: TableId, name: str, parts: str) -> None:
        present = {_text(one[0]) for one in self._session.rows(_INDEXES, [table.schema, table.name])}
        if name not in present:
            self._session.run(f"CREATE INDEX {quoted(name)} ON {qualified(table)} ({parts})")


def _declared(schema: TableSchema, name: str) -> str:
    declared = sql_type(column_of(schema, name))
    return f"{declared} {'NOT NULL' if name in schema.key else 'NULL DEFAULT NULL'}"


def _width(column: Column) -> int:
    """Bytes of a page that a value takes at most: long ones are moved out of it."""
    kind = sql_type(column)
    return _MOVED_OUT if kind == BYTES else _WIDTHS.get(kind, _DECIMAL)


def _shown(declared: str) -> str:
    """A type without the width of display that some versions add to integers."""
    kind, bracket, rest = declared.lower().partition("(")
    return f"{kind}({rest}" if bracket and kind in ("decimal", "varbinary") else kind


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _refuse_floats(schema: TableSchema, names: Sequence[str]) -> None:
    """Floats are held by their bits, of which 0 and -0 have two sorts: a link by them could miss rows."""
    floats = [name for name in names if column_of(schema, name).type in ("float32", "float64")]
    if floats:
        raise TargetError(
            f"a mapping links or groups {schema.id} by a floating-point column",
            where=f"column {', '.join(floats)}",
            cause="targets on MySQL and MariaDB can't look such values up",
            remedy="name the value with values= (for a grain: grain=lambda ...), as"
            " docs/how-to/mapping/joined-mappings.md says",
        )


def _elsewhere(schema: TableSchema, name: str, moved: int, segment: int) -> TargetError:
    return TargetError(
        f"the mirror of {schema.id} isn't where the ledger is",
        where=f"{name}: segment {moved}, the ledger: segment {segment}",
        cause="the target, or the mirror's database, was restored without the other one; or the migration ran with a"
        " mapping that didn't read the table",
        remedy="restore both from one backup, or start a migration of another name with an empty target",
    )
