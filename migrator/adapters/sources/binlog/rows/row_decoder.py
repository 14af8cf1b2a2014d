"""Rows of the binary log to canonical text, by a function generated for each table layout.

Interpreting every value through a chain of tests is what makes log readers in Python slow, so for each layout one
function is generated: fixed-width neighbours are unpacked together, strings are sliced, and the row without
NULLs has a path of its own. Values come out as a SELECT prints them on our connection: two paths, one text.
Columns that the schema lacks (virtual ones) are passed over. Where the log doesn't tell types apart, the
catalog's declaration does.

Row format: MySQL ``Rows_log_event`` with a full image: null bitmap, then the values that aren't NULL.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from typing import Any

from migrator.adapters.sources.binlog.events import table_map as types
from migrator.adapters.sources.binlog.events.table_map import LoggedColumn
from migrator.adapters.sources.binlog.rows import mariadb_text, value_text
from migrator.adapters.sources.binlog.rows.charsets import BINARY, UNICODE_CODECS, Charsets
from migrator.adapters.sources.binlog.rows.dialect import Dialect
from migrator.adapters.sources.binlog.rows.json_text import json_text
from migrator.errors import SourceError
from migrator.model.event import Row

DecodeRows = Callable[[bytes, int, int], list[Row]]

_FIXED = {types.TINY: "b", types.SHORT: "h", types.LONG: "i", types.LONGLONG: "q"}
_OLD_TIMES = {
    types.TIMESTAMP: mariadb_text.old_timestamp,
    types.DATETIME: mariadb_text.old_datetime,
    types.TIME: mariadb_text.old_time,
}
ADDRESSES = {
    "uuid": (16, mariadb_text.uuid_text),
    "inet4": (4, mariadb_text.inet4_text),
    "inet6": (16, mariadb_text.inet6_text),
}
"""Declared type -> its length in the log, where it is a BINARY, and its text."""


class ColumnPlan:
    """The reading of one column: a ``struct`` format, or the width of its length prefix; and the text from it.

    ``width``: the bytes of a value of fixed width, else 0.
    """

    def __init__(self, format_: str, prefix: int, text: str):
        self.format = format_
        self.width = struct.calcsize(f"<{format_}")
        self.prefix = prefix
        self.text = text


class Generator:
    """Writes the source of one decoder. ``names`` are the objects it refers to."""

    def __init__(self, charsets: Charsets, dialect: Dialect):
        self._charsets = charsets
        self._dialect = dialect
        self.names: dict[str, object] = {"from_bytes": int.from_bytes}

    def name(self, thing: object) -> str:
        """A name by which the generated source can call ``thing``."""
        name = f"f{len(self.names)}"
        self.names[name] = thing
        return name

    def function(self, name: str, source: Sequence[str]) -> Any:
        """The function of that name that the lines define: only numbers and names made here may stand in them."""
        exec(compile("\n".join(source), f"<{name}>", "exec"), self.names)
        return self.names[name]

    def plans(self, columns: Sequence[LoggedColumn], declared: Sequence[str | None]) -> list[ColumnPlan]:
        """One plan a column; ``declared`` as in ``build_decoder``."""
        return [self.column(column, kind) for column, kind in zip(columns, declared, strict=True)]

    def column(self, column: LoggedColumn, declared: str | None) -> ColumnPlan:
        """The plan of a column; ``{}`` in its text stands for the raw value. ``declared`` as in
        ``build_decoder``."""
        kind, meta = column.type, column.meta
        if kind in _FIXED:
            code = _FIXED[kind]
            return ColumnPlan(code.upper() if column.unsigned else code, 0, "str({})")
        if kind == types.INT24:
            return ColumnPlan("3s", 0, f"str(from_bytes({{}}, 'little', signed={not column.unsigned}))")
        if kind in (types.FLOAT, types.DOUBLE):
            return ColumnPlan(
                "f" if kind == types.FLOAT else "d", 0, f"{self.name(self._dialect.double_text)}({{}})"
            )
        if kind == types.NEWDECIMAL:
            width = value_text.decimal_bytes(meta, column.scale)
            return ColumnPlan(
                f"{width}s", 0, f"{self.name(value_text.decimal_text(meta, column.scale))}({{}})"
            )
        if kind == types.BIT:
            return ColumnPlan(f"{(meta + 7) // 8}s", 0, "{}")
        if kind in (types.ENUM, types.SET):
            return self._labelled(column)
        if declared in ADDRESSES:
            return self._address(column, declared)
        if kind in (types.VARCHAR, types.STRING):
            return self._string(column)
        if kind in (types.VARCHAR_COMPRESSED, types.BLOB_COMPRESSED):
            prefix = meta if kind == types.BLOB_COMPRESSED else _length_bytes(meta)
            unpacked = f"{self.name(mariadb_text.uncompressed)}({{}})"
            return ColumnPlan("", prefix, self._decode(column).format(unpacked))
        if kind == types.JSON:
            return ColumnPlan("", meta, f"{self.name(json_text)}({{}})")
        if kind in (types.BLOB, types.GEOMETRY, types.VECTOR):
            text = self._decode(column) if kind == types.BLOB else "{}"
            return ColumnPlan("", meta, text)
        if kind in _OLD_TIMES:
            return self._old_time(column, declared)
        return self._temporal(column)

    def _address(self, column: LoggedColumn, declared: str) -> ColumnPlan:
        width, text = ADDRESSES[declared]
        if (column.type, column.meta) != (types.STRING, width):
            raise SourceError(
                f"column {column.name} isn't logged as the {declared} that the catalog declares",
                where=f"binlog type {column.type}, length {column.meta}",
                cause="the column's type was changed after these rows were written",
                remedy="start the migration anew (docs/how-to/start-anew.md)",
            )
        return ColumnPlan("", 1, f"{self.name(text)}({{}})")

    def _old_time(self, column: LoggedColumn, declared: str | None) -> ColumnPlan:
        """Plans a column of an old temporal type: its fraction digits stand in the catalog only."""
        if declared is None or "mariadb-5.3" not in declared:
            raise SourceError(
                f"column {column.name} has a type that can't be read from the log",
                where=f"{types.TYPE_NAMES[column.type]}, declared as {declared or 'a virtual column'}",
                remedy="ALTER TABLE ... FORCE brings the column into the present format",
            )
        digits = re.search(r"\((\d)\)", declared)
        width, text = _OLD_TIMES[column.type](int(digits[1]) if digits else 0)
        return ColumnPlan(f"{width}s", 0, f"{self.name(text)}({{}})")

    def _temporal(self, column: LoggedColumn) -> ColumnPlan:
        kind, digits = column.type, column.meta
        width = (digits + 1) // 2
        if kind == types.YEAR:
            return ColumnPlan("B", 0, f"{self.name(value_text.year_text)}({{}})")
        if kind in (types.DATE, types.NEWDATE):
            return ColumnPlan("3s", 0, f"{self.name(value_text.dates)}[from_bytes({{}}, 'little')]")
        if kind == types.DATETIME2:
            make = value_text.datetime_fraction_text(digits) if digits else value_text.datetime_text
            return ColumnPlan(f"{5 + width}s", 0, f"{self.name(make)}({{}})")
        if kind == types.TIMESTAMP2 and digits:
            make = value_text.timestamp_fraction_text(digits)
            return ColumnPlan(f"{4 + width}s", 0, f"{self.name(make)}({{}})")
        if kind == types.TIMESTAMP2:
            return ColumnPlan("4s", 0, f"{self.name(value_text.timestamp_text)}(from_bytes({{}}, 'big'))")
        if kind == types.TIME2:
            return ColumnPlan(f"{3 + width}s", 0, f"{self.name(value_text.time_text(digits))}({{}})")
        raise SourceError(f"column {column.name} can't be decoded", where=f"binlog type {kind}")

    def _labelled(self, column: LoggedColumn) -> ColumnPlan:
        charset = self._charsets.name(column.collation)
        decode = bytes.decode if charset == BINARY else self._charsets.decoder(charset)
        labels = tuple(decode(label) for label in column.labels)
        if column.type == types.SET:
            width = column.meta
            return ColumnPlan(
                f"{width}s", 0, f"{self.name(value_text.set_text(labels))}(from_bytes({{}}, 'little'))"
            )
        # index 0 is the empty string the server stores for an invalid value
        return ColumnPlan("B" if column.meta == 1 else "H", 0, f"{self.name(('', *labels))}[{{}}]")

    def _string(self, column: LoggedColumn) -> ColumnPlan:
        prefix = _length_bytes(column.meta)
        text = self._decode(column)
        if (
            text == "{}" and column.type == types.STRING
        ):  # the log leaves out the zeros that BINARY(n) is padded with
            text = f"{{}}.ljust({column.meta}, b'\\0')"
        return ColumnPlan("", prefix, text)

    def _decode(self, column: LoggedColumn) -> str:
        charset = self._charsets.name(column.collation)
        if charset == BINARY:
            return "{}"
        if UNICODE_CODECS.get(charset) == "utf-8":
            return "{}.decode()"
        return f"{self.name(self._charsets.decoder(charset))}({{}})"


def _length_bytes(longest: int) -> int:
    """Returns the bytes of the length before a value that has at most ``longest`` bytes."""
    return 1 if longest < 256 else 2


def build_decoder(
    columns: Sequence[LoggedColumn], declared: Sequence[str | None], charsets: Charsets, dialect: Dialect
) -> DecodeRows:
    """The function ``decode(data, start, end) -> rows``. Rows hold the wanted columns, in the log's order.

    Args:
        columns: of the log's rows.
        declared: the type of each as the catalog declares it, None for a column that isn't wanted.
        charsets: of the server.
        dialect: of the engine.

    Raises ``SourceError`` for a column that can't be decoded. The function raises ``IndexError``, ``ValueError`` or
    ``struct.error`` on damaged bytes; the caller knows the place in the log and names it.
    """
    generator = Generator(charsets, dialect)
    return decoder_of(generator, generator.plans(columns, declared), declared)


def decoder_of(
    generator: Generator, plans: Sequence[ColumnPlan], declared: Sequence[str | None]
) -> DecodeRows:
    """The same of plans that are made already."""
    wanted = [kind is not None for kind in declared]
    null_bytes = (len(plans) + 7) // 8
    row = "".join(f"{plan.text.format(f'c{i}')}, " for i, plan in enumerate(plans) if wanted[i])
    row_or_null = "".join(f"c{i}, " for i in range(len(plans)) if wanted[i])
    source = [
        "def decode(data, at, end):",
        " rows = []",
        " add = rows.append",
        " while at < end:",
        f"  nulls = from_bytes(data[at:at + {null_bytes}], 'little') & {(1 << len(plans)) - 1}",
        f"  at += {null_bytes}",
        "  if not nulls:",
        *(f"   {line}" for line in straight_path(generator, plans)),
        f"   add(({row}))",
        "  else:",
        *(f"   {line}" for line in path_with_nulls(generator, plans)),
        f"   add(({row_or_null}))",
        " if at != end:",
        "  raise ValueError('the rows end at byte %d, the event at byte %d' % (at, end))",
        " return rows",
    ]
    decode: DecodeRows = generator.function("decode", source)
    return decode


def straight_path(generator: Generator, plans: Sequence[ColumnPlan]) -> list[str]:
    """Reads a row without NULLs: runs of fixed-width columns with one call each."""
    lines: list[str] = []
    run: list[tuple[int, str]] = []

    def flush() -> None:
        if run:
            unpack = struct.Struct("<" + "".join(code for _, code in run))
            lines.append(
                f"{', '.join(f'c{i}' for i, _ in run)}, = {generator.name(unpack.unpack_from)}(data, at)"
            )
            lines.append(f"at += {unpack.size}")
            run.clear()

    for i, plan in enumerate(plans):
        if plan.format:
            run.append((i, plan.format))
        else:
            flush()
            lines += _variable(i, plan)
    flush()
    return lines


def path_with_nulls(generator: Generator, plans: Sequence[ColumnPlan]) -> list[str]:
    """Reads a row with NULLs: every column asks its bit, and is turned into text at once."""
    lines = []
    for i, plan in enumerate(plans):
        lines += [f"if nulls & {1 << i}:", f" c{i} = None", "else:"]
        if plan.format:
            unpack = struct.Struct("<" + plan.format)
            lines += [f" c{i}, = {generator.name(unpack.unpack_from)}(data, at)", f" at += {unpack.size}"]
        else:
            lines += [f" {line}" for line in _variable(i, plan)]
        lines.append(f" c{i} = {plan.text.format(f'c{i}')}")
    return lines


def _variable(i: int, plan: ColumnPlan) -> list[str]:
    length = "data[at]" if plan.prefix == 1 else f"from_bytes(data[at:at + {plan.prefix}], 'little')"
    return [f"stop = at + {plan.prefix} + {length}", f"c{i} = data[at + {plan.prefix}:stop]", "at = stop"]
