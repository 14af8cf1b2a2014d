"""The new database on MySQL or MariaDB as the judge reads it: ledger and rows of one snapshot, values as
exact text.

Text is asked from the server itself, one rule per type. A type is named by the kind of
``verify.tables.compare.normalise`` that has its values: ``tinyint(1)`` is read as ``bool``, ``datetime`` as
``timestamp``, ``timestamp`` as ``timestamptz``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from migrator.errors import VerifyError
from verify.readers.ledger_row import ledger_state
from verify.readers.mysql.chunks import MySQLTargetChunks
from verify.readers.mysql.printed import as_printed
from verify.readers.mysql.rows import row_batches
from verify.readers.mysql.session import open_session, quoted, rows_of
from verify.readers.row_files import row_file
from verify.readers.snapshot import LedgerState, TargetColumnText, TargetRowsText, TargetSnapshot
from verify.settings import ServerSettings

_LEDGER = "migrator_ledger"
_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)
_EXISTS = "SELECT 1 FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"
_COLUMNS = """
SELECT column_name, column_type, data_type, COALESCE(generation_expression, '') <> '',
 COALESCE(collation_name, '')
FROM information_schema.columns WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position
"""
_JSON_OF_MARIADB = """
SELECT constraint_name FROM information_schema.check_constraints
WHERE constraint_schema = %s AND table_name = %s AND level = 'Column' AND check_clause IN
 (CONCAT('json_valid(`', constraint_name, '`)'), CONCAT('json_valid("', constraint_name, '")'))
"""
"""Names of the columns that were declared JSON: to MariaDB they are texts with a check, named as the column."""
_WHOLE_NUMBERS = ("tinyint", "smallint", "mediumint", "int", "bigint", "year")
_BASES = {
    **dict.fromkeys(_WHOLE_NUMBERS, "int8"),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "bit"), "bytea"),
    "decimal": "numeric",
    "float": "float4",
    "double": "float8",
    "date": "date",
    "datetime": "timestamp",
    "timestamp": "timestamptz",
    "time": "time",
    "json": "json",
    "uuid": "uuid",
    "char": "bpchar",
}
_BASES_OF_MARIADB = {**_BASES, "float": "float", "double": "double"}
_CHARACTERS = ("varchar", "tinytext", "text", "mediumtext", "longtext")
"""Types that a conversion takes as they are; a cast would be bounded by a packet."""
# What a rule can't express (a zero date) keeps the server's own text, which no mapped value has.
_TEXTS = {
    "bool": "CASE {0} WHEN 1 THEN 'true' WHEN 0 THEN 'false' ELSE CAST({0} + 0 AS CHAR) END",
    "int8": "CAST({0} + 0 AS CHAR)",
    **dict.fromkeys(("float4", "float"), "CAST({0} + 0e0 AS CHAR)"),  # as a float it would print six digits
    "date": "COALESCE(CAST(DATEDIFF({0}, '1970-01-01') AS CHAR), CAST({0} AS CHAR))",
    "timestamp": "COALESCE(CAST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {0}) AS CHAR), CAST({0} AS CHAR))",
}


class MySQLTarget:
    """The new database on MySQL or MariaDB."""

    def __init__(self, settings: ServerSettings, migration: str):
        self._settings = settings
        self._migration = migration

    def ledger(self) -> LedgerState | None:
        """The ledger now; None when nothing was ever applied. Raises ``VerifyError``, ``ConnectionFailed``."""
        with open_session(self._settings, "target") as session:
            return self._ledger(session)

    def snapshot(self, tables: Sequence[str], directory: Path) -> TargetSnapshot:
        """Reads ledger and whole tables of one read view. Raises ``VerifyError``, ``ConnectionFailed``."""
        with open_session(self._settings, "target") as session:
            rows_of(session, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
            ledger = self._ledger(session)
            found = {
                name: self._read(session, name, directory / f"target-{index}.parquet")
                for index, name in enumerate(tables)
            }
        return TargetSnapshot(ledger, found)

    def _ledger(self, session: Any) -> LedgerState | None:
        if not rows_of(session, _EXISTS, (self._settings.server.database, _LEDGER)):
            return None
        rows = rows_of(
            session,
            f"SELECT epoch, segment, position_order, position_token, checkpoint FROM {_LEDGER} WHERE migration = %s",
            (self._migration,),
        )
        where = f"{self._settings.server.url()}, table {_LEDGER}, migration {self._migration}"
        return ledger_state(rows[0], where) if rows else None

    @contextmanager
    def chunks(self, table: str) -> Iterator[MySQLTargetChunks]:
        """See ``verify.readers.ports.ChunkedTarget``."""
        with open_session(self._settings, "target") as session:
            columns, name = self._columns(session, table), (self._settings.server.database, table)

            def read(session: Any, where: str, path: Path) -> int:
                return _read_rows(session, name, columns, path, where)

            yield MySQLTargetChunks(session, self._ledger, name, columns, read)

    def _read(self, session: Any, name: str, path: Path) -> TargetRowsText:
        columns = self._columns(session, name)
        rows = _read_rows(session, (self._settings.server.database, name), columns, path)
        return TargetRowsText(name, columns, path, rows)

    def _columns(self, session: Any, name: str) -> tuple[TargetColumnText, ...]:
        rows = rows_of(session, _COLUMNS, (self._settings.server.database, name))
        if not rows:
            raise VerifyError(
                f"target table {self._settings.server.database}.{name} does not exist",
                where=self._settings.server.url(),
                remedy="bring the target's schema up to date (`migrator schema upgrade`), or correct the mapping",
            )
        mariadb = self._settings.server.kind == "mariadb"
        bases = _BASES_OF_MARIADB if mariadb else _BASES
        place = (self._settings.server.database, name)
        json = {row[0] for row in rows_of(session, _JSON_OF_MARIADB, place)} if mariadb else set()
        return tuple(
            TargetColumnText(
                column,
                native,
                "json" if column in json else _base(str(kind).lower(), str(native).lower(), bases),
                str(generated) == "1",
                collation,
                as_printed(self._settings, str(kind).lower()),
            )
            for column, native, kind, generated, collation in rows
        )


def _read_rows(
    session: Any,
    table: tuple[str, str],
    columns: Sequence[TargetColumnText],
    path: Path,
    where: str = "1 = 1",
) -> int:
    """The rows under a condition into a Parquet file of texts; gives their number."""
    kept = [column for column in columns if not column.generated]
    selected = ", ".join(_text(column) for column in kept)
    query = f"SELECT {selected} FROM {'.'.join(map(quoted, table))} WHERE {where}"
    wanted = pa.schema([pa.field(column.name, pa.string()) for column in kept])
    total = 0
    with row_file(path, wanted) as writer:
        for values in row_batches(session, query):
            arrays = [
                _hexadecimal(cells) if _as_bytes(column) else _texts(cells, ".".join((*table, column.name)))
                for cells, column in zip(values, kept, strict=True)
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=wanted))
            total += len(values[0])
    return total


def _texts(values: pa.Array, where: str) -> pa.Array:
    try:
        return pc.cast(values, pa.string())
    except pa.ArrowException as error:
        raise VerifyError(
            "a text is not UTF-8, though the server says so",
            where=where,
            cause=str(error).splitlines()[0],
            remedy="correct the value in the target",
        ) from error


def _as_bytes(column: TargetColumnText) -> bool:
    """Returns whether a column is read as the bytes it has: a server makes no digits of more than half a packet."""
    return column.base == "bytea" and not column.native.lower().startswith("bit(")


def _base(kind: str, native: str, bases: Mapping[str, str]) -> str:
    if native == "bit(1)" or (native.startswith("tinyint(1)") and "unsigned" not in native):
        return "bool"
    return bases.get(kind, "text")


def _text(column: TargetColumnText) -> str:
    name = quoted(column.name)
    if column.native.lower().startswith("bit(") and column.base == "bytea":
        digits = 2 * ((int(column.native[4:-1]) + 7) // 8)
        return f"LPAD(LOWER(HEX({name})), {digits}, '0')"
    if _as_bytes(column):
        return name
    if column.native.lower().split("(")[0] in _CHARACTERS:
        return f"CONVERT({name} USING utf8mb4)"
    rule = _TEXTS.get("timestamp" if column.base == "timestamptz" else column.base, "CAST({0} AS CHAR)")
    return f"CONVERT({rule.replace('{0}', name)} USING utf8mb4)"


def _hexadecimal(values: pa.Array) -> pa.Array:
    """A binary array as an array of lower-case hexadecimal texts, NULLs kept."""
    plain = values.cast(pa.large_binary())
    _, places, data = plain.buffers()
    offsets = np.frombuffer(places, np.int64)[plain.offset : plain.offset + len(plain) + 1]
    octets = np.frombuffer(data or b"", np.uint8)[offsets[0] : offsets[-1]]
    digits = np.empty(2 * len(octets), np.uint8)
    digits[0::2], digits[1::2] = _DIGITS[octets >> 4], _DIGITS[octets & 15]
    null = None
    if plain.null_count:
        null = pa.py_buffer(np.packbits(np.array(plain.is_valid()), bitorder="little").tobytes())
    ends = pa.py_buffer(((offsets - offsets[0]) * 2).astype(np.int64).tobytes())
    texts = pa.Array.from_buffers(pa.large_string(), len(plain), [null, ends, pa.py_buffer(digits.tobytes())])
    return texts.cast(pa.string())
