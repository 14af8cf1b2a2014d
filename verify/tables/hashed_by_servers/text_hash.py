"""A piece's 64-bit hash where MySQL or MariaDB takes part: one SHA-256 of the text of all its rows, in key order.

The engines share no cheaper hash that tells all values apart (CRC32 is linear; MySQL 9.6 lost MD5 and SHA1).
To hash row by row would spend most of its time on turning hashes into numbers, so the text of a whole piece is
hashed at once.

- *Rows* are in the order of the key, on which both servers agree (``verify.readers.key_kinds``). A MySQL source
  walks its primary key, which is the order of its rows on disk. A target that finds them by another index may give
  them in another order. Then the hashes disagree, and the rows are read.
- *Cells* end with U+001F, a character that texts hardly ever contain. The target looks for it and replaces a row
  that contains it by a random text. So the target's text can be read in one way only. A source's text with that
  character would have a cell too many for the same number of rows, so it can't equal the target's. Lengths in front
  of cells would do as well, but a computed text would have to be computed twice.
- *Long values* are hashed by themselves, so that a piece's text stays small, and marked, because a short value may
  look like such a hash. Where the source's type has room for short values only, a PostgreSQL target replaces values
  that are too long to be equal.
- *Floating point* values are written as their 64 bits. MySQL and MariaDB have no function for these bits, but they
  are the last ones of a point, in reverse order. To write a number in digits takes these servers more than ten times
  as long.
- *NULL* is a minus in columns that may have it, and texts of such columns are marked. Where the source declares NOT
  NULL, a row with NULL is replaced by a text that the other side can't have.
- *A text that a server cuts off or gives up* comes with a warning. MariaDB's can't be longer than a packet.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from secrets import token_hex

CELLS_MAX = 500_000
"""The most cells in a piece. A cell has a kibibyte at most, and ten or twenty bytes mostly."""
_LONG = 255
"""Characters of a text, or bytes of a binary value: longer ones are hashed by themselves."""
_END = "\x1f"
"""Between cells, and between rows, which have equally many."""
_MYSQL_END = "X'1f'"
"""The end of a cell as bytes: some collations ignore the character, and would find it everywhere."""
_HASHED, _AS_IT_IS, _NULL = "#", "=", "-"
"""Marks that tell a long value's hash from a short value that is such a hash, and NULL from a text."""
_FREE = ("text", "json", "set")
"""Classes whose values may have any character."""
_MAY_BE_LONG = (*_FREE, "bytea")
_POSTGRES = {
    "integer": "{0}",
    "numeric": "trim_scale({0}::numeric)",
    "text": "{0}::text",
    "bytea": "encode({0}, 'hex')",
    "float4": "encode(float8send({0}), 'hex')",
    "float8": "encode(float8send({0}), 'hex')",
    "bool": "({0})::int",
    "date": "{0}::text",
    "timestamp": "{0}::text",
    "time": "{0}::text",
    "timestamptz": "({0} AT TIME ZONE interval '0')::text",
}
_POSTGRES_LONG = {
    "text": "encode(sha256(convert_to({0}::text, 'UTF8')), 'hex')",
    "bytea": "encode(sha256({0}), 'hex')",
}
_MYSQL = {
    "integer": "{0}",
    "bytea": "LOWER(HEX({0}))",
    "bool": "{0} + 0",
    **dict.fromkeys(("float", "double", "float4", "float8"), "LOWER(HEX(LEFT(REVERSE(POINT(0, {0})), 8)))"),
    **dict.fromkeys(("numeric", "text", "date", "timestamp", "timestamptz", "time"), "{0}"),
}
_INSTANTS = ("timestamp", "timestamptz")
_TIMES = (*_INSTANTS, "time")
_INSTANT = "IF(MICROSECOND({0}), TRIM(TRAILING '0' FROM {0}), LEFT({0}, 19))"
"""The text of an instant on MySQL: all have equally many characters before the point."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One column on one side.

    Attributes:
        name: quoted, or an expression.
        kind: the class of its values.
        declared: its type on this side.
        collation: of MySQL's texts; else empty.
        nullable: whether NULL may be in it, as the source says.
        scales_differ: whether one number or time may be written with more decimals than the other.
        only_if: see ``verify.tables.hashed_by_servers.sql_value.SqlValue``.
    """

    name: str
    kind: str
    declared: str
    collation: str
    nullable: bool
    scales_differ: bool
    only_if: tuple[str, str] | None = None


def may_be_long(kind: str, declared: str) -> bool:
    """Returns whether values of a column may have more than ``_LONG`` characters, by its type in the source."""
    if kind.removeprefix("mysql ") not in _MAY_BE_LONG or declared.lower().startswith("enum"):
        return False
    size = re.search(r"\w\((\d+)\)", declared)
    return size is None or int(size[1]) > _LONG


def select_in_postgres(
    cells: Sequence[Cell],
    long: Sequence[bool],
    key: Sequence[str],
    is_target: bool,
    unknown: Sequence[str] = (),
) -> str:
    """Writes the select list for PostgreSQL: rows, those with a hash, and the hash of them all.

    Args:
        cells: the columns.
        long: of which of them ``may_be_long`` is true.
        key: quoted names of the columns that order the rows.
        is_target: whether this is the target, which may hold values too long for the source's type, and looks for
            ends of cells.
        unknown: conditions, never NULL, of rows whose hash must agree with no other.
    """
    parts = [_postgres(cell, big, is_target) for cell, big in zip(cells, long, strict=True)]
    row = f"concat_ws('{_END}', {', '.join(parts)})"
    sure = [cell.name for cell in cells if not cell.nullable]
    if sure:
        row = f"CASE WHEN num_nulls({', '.join(sure)}) = 0 THEN {row} ELSE '{token_hex()}' END"
    found = "coalesce(strpos({0}::text COLLATE \"C\", '{1}') > 0, false)"
    ends = [found.format(cell.name, _END) for cell in _free(cells, is_target)]
    text = f"string_agg({_unless([*unknown, *ends], row)}, '{_END}' ORDER BY {', '.join(key)})"
    hash_ = f"('x' || encode(substr(sha256(convert_to({text}, 'UTF8')), 1, 8), 'hex'))::bit(64)::int8"
    return f"count(*), count(*), coalesce({hash_}, 0)::text"


def select_in_mysql(
    cells: Sequence[Cell],
    long: Sequence[bool],
    key: Sequence[str],
    is_target: bool,
    unknown: Sequence[str] = (),
) -> str:
    """Writes the select list for MySQL and MariaDB, as ``select_in_postgres`` does; rows as they are found
    (see above). The absence of warnings shows that the text is whole."""
    parts = [_mysql(cell, big) for cell, big in zip(cells, long, strict=True)]
    row = f"COALESCE(CONCAT({f', {_MYSQL_END}, '.join(parts)}), '{token_hex()}')"
    ends = [
        f"COALESCE(INSTR(CAST({cell.name} AS BINARY), {_MYSQL_END}) > 0, FALSE)"
        for cell in _free(cells, is_target)
    ]
    text = f"GROUP_CONCAT({_unless([*unknown, *ends], row)} SEPARATOR {_MYSQL_END})"
    return f"COUNT(*), COALESCE(CONV(LEFT(SHA2({text}, 256), 16), 16, 10), '0')"


def _free(cells: Sequence[Cell], is_target: bool) -> list[Cell]:
    """Returns the columns in which the target looks for the end of a cell."""
    return [cell for cell in cells if is_target and cell.kind.removeprefix("mysql ") in _FREE]


def _unless(unknown: Sequence[str], row: str) -> str:
    return f"CASE WHEN {' OR '.join(unknown)} THEN '{token_hex()}' ELSE {row} END" if unknown else row


def _postgres(cell: Cell, long: bool, is_target: bool) -> str:
    kind = "text" if cell.kind == "numeric" and not cell.scales_differ else cell.kind
    text = _POSTGRES[kind].format(cell.name)
    marked = f"'{_AS_IT_IS}' || {text}"
    if long:
        length = "char_length" if kind == "text" else "octet_length"
        hashed = f"'{_HASHED}' || {_POSTGRES_LONG[kind].format(cell.name)}"
        text = _shorter(f"{length}({cell.name})", _LONG, hashed, marked)
    elif cell.nullable and cell.kind in _FREE:
        text = marked
    if is_target and not long and cell.kind in _MAY_BE_LONG:
        # At a gigabyte the server would give up the whole piece.
        text = _shorter(f"octet_length({cell.name})", 4 * _LONG, f"'{token_hex()}'", text)
    return f"coalesce(({text})::text, '{_NULL}')" if cell.nullable else text


def _mysql(cell: Cell, long: bool) -> str:
    kind, name = cell.kind.removeprefix("mysql "), cell.name
    text = _MYSQL.get(kind, "CAST({0} AS CHAR)").format(name)
    if kind in ("integer", "numeric") and _has_zeros(cell.declared.lower()):
        text = f"{name} + 0"
    if cell.scales_differ and kind in ("numeric", *_TIMES):
        text = _without_zeros(cell, kind, text)
    if kind in _FREE and not cell.collation.startswith(("utf8", "ascii")):
        text = f"CONVERT({text} USING utf8mb4)"
    marked = f"CONCAT('{_AS_IT_IS}', {text})"
    if long:
        length = f"CHAR_LENGTH({name})" if kind != "bytea" else f"LENGTH({name})"
        hashed = f"CONCAT('{_HASHED}', SHA2({text if kind != 'bytea' else name}, 256))"
        text = _shorter(length, _LONG, hashed, marked)
    elif cell.nullable and kind in _FREE:
        text = marked
    return f"COALESCE({text}, '{_NULL}')" if cell.nullable else text


def _without_zeros(cell: Cell, kind: str, text: str) -> str:
    """A number or time with no zeros at the end of its fraction, and with no point if nothing is left of that."""
    if kind in _INSTANTS:
        # To look for a fraction is cheaper than to look for its zeros. Text that depends on a condition is
        # written inside of it: outside, all of it would be made three times.
        condition, value = cell.only_if or ("", text)
        text = _INSTANT.format(value)
        return f"(CASE WHEN {condition} THEN {text} END)" if condition else text
    shorter = f"TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM {text}))"
    # A time with a fraction has a point. Zeros only behind one: the 0 of 10 stays.
    return shorter if kind == "time" else f"IF(LOCATE('.', {text}), {shorter}, {text})"


def _has_zeros(declared: str) -> bool:
    """Returns whether numbers are printed with zeros that a column's display width adds, or the width of a year."""
    return "zerofill" in declared or declared.startswith("year")


def _shorter(length: str, most: int, instead: str, text: str) -> str:
    return f"CASE WHEN {length} > {most} THEN {instead} ELSE {text} END"
