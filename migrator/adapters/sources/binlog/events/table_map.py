"""TABLE_MAP events: the layout of the rows that follow, with ``binlog_row_metadata=FULL``.

Format: MySQL ``Table_map_log_event`` (optional metadata fields), MariaDB 10.5 and later.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from migrator.adapters.sources.binlog.events.lengths import read_length
from migrator.errors import SourceError
from migrator.model.table import TableId

TINY, SHORT, LONG, FLOAT, DOUBLE, LONGLONG, INT24 = 1, 2, 3, 4, 5, 8, 9
DATE, YEAR, NEWDATE, VARCHAR, BIT, TIMESTAMP2, DATETIME2, TIME2 = 10, 13, 14, 15, 16, 17, 18, 19
TIMESTAMP, TIME, DATETIME, BLOB_COMPRESSED, VARCHAR_COMPRESSED = 7, 11, 12, 140, 141
VECTOR, JSON, NEWDECIMAL, ENUM, SET, BLOB, VAR_STRING, STRING, GEOMETRY = (
    242,
    245,
    246,
    247,
    248,
    252,
    253,
    254,
    255,
)
TYPE_NAMES = {
    0: "DECIMAL (before 5.0)",
    6: "NULL",
    7: "TIMESTAMP in the old format (mysql56_temporal_format=OFF)",
    11: "TIME in the old format (mysql56_temporal_format=OFF)",
    12: "DATETIME in the old format (mysql56_temporal_format=OFF)",
    20: "array of a multi-valued index",
}
_META_BYTES = {
    **dict.fromkeys((TINY, SHORT, LONG, LONGLONG, INT24, DATE, NEWDATE, YEAR, TIMESTAMP, TIME, DATETIME), 0),
    **dict.fromkeys((FLOAT, DOUBLE, BLOB, GEOMETRY, JSON, VECTOR, TIMESTAMP2, DATETIME2, TIME2), 1),
    **dict.fromkeys((VARCHAR, VAR_STRING, BIT, NEWDECIMAL, STRING, ENUM, SET, VARCHAR_COMPRESSED), 2),
    BLOB_COMPRESSED: 1,
}
_NUMERIC = frozenset((TINY, SHORT, INT24, LONG, LONGLONG, FLOAT, DOUBLE, NEWDECIMAL, YEAR))
_SIGNEDNESS, _DEFAULT_CHARSET, _COLUMN_CHARSET, _COLUMN_NAME, _SET_LABELS, _ENUM_LABELS = 1, 2, 3, 4, 5, 6
_LABEL_DEFAULT_CHARSET, _LABEL_COLUMN_CHARSET = 10, 11
BINARY_COLLATION = 63


@dataclass(frozen=True, slots=True)
class LoggedColumn:
    """A column as the log stores it.

    Attributes:
        name: the column's name.
        type: binlog type code; ENUM and SET are told apart from STRING already.
        meta: the type's metadata: length in bytes, or (precision, scale), or fraction digits.
        scale: scale of a decimal.
        unsigned: for numbers.
        collation: collation id of text and of enum and set labels; 63 is binary.
        labels: of an enum or set, in the collation's character set.
    """

    name: str
    type: int
    meta: int
    scale: int
    unsigned: bool
    collation: int
    labels: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class TableMap:
    """The content of one TABLE_MAP event."""

    table: TableId
    columns: tuple[LoggedColumn, ...]


class _Reader:
    """Walks over bytes; lengths are MySQL's length-encoded integers."""

    def __init__(self, data: bytes, at: int = 0):
        self.data = data
        self.at = at

    def number(self) -> int:
        number, self.at = read_length(self.data, self.at)
        return number

    def take(self, size: int) -> bytes:
        piece = self.data[self.at : self.at + size]
        if len(piece) != size:
            raise IndexError("the event ends too early")
        self.at += size
        return piece

    def text(self) -> bytes:
        return self.take(self.number())

    def numbers(self) -> Iterator[int]:
        while self.at < len(self.data):
            yield self.number()


def table_of(body: bytes) -> tuple[int, TableId]:
    """Number and name of the table, without looking at the rest: all that a table nobody captures costs."""
    at = 9 + body[8]
    name_at = at + 2
    name = body[name_at : name_at + body[at + 1]]
    return int.from_bytes(body[:6], "little"), TableId(body[9:at].decode(), name.decode())


def parse_table_map(body: bytes, character: frozenset[int]) -> TableMap:
    """The layout; ``character`` as in ``Dialect``.

    Raises ``SourceError`` naming a column type that can't be decoded, or missing metadata.
    """
    _, table = table_of(body)
    try:
        return TableMap(table, _columns(table, body, character))
    except (IndexError, KeyError, struct.error) as error:
        raise SourceError(
            "the layout of a table can't be read from the log",
            where=str(table),
            cause=f"{type(error).__name__}: {error}",
            remedy="this server's log format is not supported; please report its version",
        ) from error


def _columns(table: TableId, body: bytes, character: frozenset[int]) -> tuple[LoggedColumn, ...]:
    name_length_at = 9 + body[8] + 1
    reader = _Reader(body, name_length_at + 1 + body[name_length_at] + 1)
    types = list(reader.take(reader.number()))
    metas = _Reader(reader.text())
    reader.take((len(types) + 7) // 8)
    optional = {}
    while reader.at < len(body):
        kind = reader.take(1)[0]
        optional[kind] = reader.text()
    if _COLUMN_NAME not in optional:
        raise SourceError(
            "the log has no column names",
            where=str(table),
            cause="the transaction was logged with binlog_row_metadata other than FULL",
            remedy="SET GLOBAL binlog_row_metadata = 'FULL', then start the migration anew"
            " (docs/how-to/start-anew.md)",
        )
    names = _texts(optional[_COLUMN_NAME])
    shapes = [_shape(table, names[i].decode(), kind, metas) for i, kind in enumerate(types)]
    return tuple(_assemble(names, shapes, types, optional, character))


def _shape(table: TableId, name: str, kind: int, metas: _Reader) -> tuple[int, int, int]:
    """Type, meta and scale of a column."""
    if kind not in _META_BYTES:
        raise SourceError(
            f"column {table}.{name} has a type that can't be read from the log",
            where=TYPE_NAMES.get(kind, f"binlog type {kind}"),
            remedy="change the column's type, or leave the table out of the migration",
        )
    meta = metas.take(_META_BYTES[kind])
    if kind in (VARCHAR, VAR_STRING, VARCHAR_COMPRESSED):
        return VARCHAR if kind == VAR_STRING else kind, int.from_bytes(meta, "little"), 0
    if kind == NEWDECIMAL:
        return kind, meta[0], meta[1]
    if kind == BIT:
        return kind, meta[0] + 8 * meta[1], 0
    if kind in (STRING, ENUM, SET):
        if meta[0] in (ENUM, SET):
            return meta[0], meta[1], 0
        # CHAR longer than 255 bytes: two bits of its length hide in the type byte
        return STRING, meta[1] | ((meta[0] & 0x30 ^ 0x30) << 4), 0
    return kind, meta[0] if meta else 0, 0


def _assemble(
    names: list[bytes],
    shapes: list[tuple[int, int, int]],
    types: list[int],
    optional: dict[int, bytes],
    character: frozenset[int],
) -> Iterator[LoggedColumn]:
    kinds = [shape[0] for shape in shapes]
    numeric = [i for i, kind in enumerate(kinds) if kind in _NUMERIC]
    labelled = [i for i, kind in enumerate(kinds) if kind in (ENUM, SET)]
    texts = [i for i, kind in enumerate(types) if kind in character and i not in labelled]
    bits = optional.get(_SIGNEDNESS, b"")
    unsigned = {i for place, i in enumerate(numeric) if bits[place >> 3] & (0x80 >> (place & 7))}
    if any(kinds[i] == YEAR and i not in unsigned for i in numeric):
        raise KeyError("a YEAR is never signed: the bits of signedness are not where they were expected")
    collations = _collations(optional, texts, _DEFAULT_CHARSET, _COLUMN_CHARSET)
    collations |= _collations(optional, labelled, _LABEL_DEFAULT_CHARSET, _LABEL_COLUMN_CHARSET)
    labels = _labels([i for i in labelled if kinds[i] == SET], optional.get(_SET_LABELS, b""))
    labels |= _labels([i for i in labelled if kinds[i] == ENUM], optional.get(_ENUM_LABELS, b""))
    for i, (kind, meta, scale) in enumerate(shapes):
        yield LoggedColumn(
            names[i].decode(),
            kind,
            meta,
            scale,
            i in unsigned,
            collations.get(i, BINARY_COLLATION),
            labels.get(i, ()),
        )


def _collations(
    optional: dict[int, bytes], places: list[int], default: int, per_column: int
) -> dict[int, int]:
    """Collation ids of the columns at ``places``: one default with exceptions, or one each."""
    if default in optional:
        first, *pairs = _Reader(optional[default]).numbers()
        exceptions = dict(zip(pairs[::2], pairs[1::2], strict=True))
        return {place: exceptions.get(number, first) for number, place in enumerate(places)}
    if per_column in optional:
        return dict(zip(places, _Reader(optional[per_column]).numbers(), strict=True))
    return {}


def _texts(data: bytes) -> list[bytes]:
    reader = _Reader(data)
    texts = []
    while reader.at < len(data):
        texts.append(reader.text())
    return texts


def _labels(places: list[int], data: bytes) -> dict[int, tuple[bytes, ...]]:
    reader = _Reader(data)
    return {place: tuple(reader.text() for _ in range(reader.number())) for place in places}
