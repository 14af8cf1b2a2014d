"""Rows of the source for a look at them: the first ones, those of some keys, those linked to others.

Read by the chunk reader, so in the types and texts of the stream, on every engine. Each read has a view of its own:
two tables may be some moments apart.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from migrator.errors import SourceError
from migrator.model.chunk import ChunkRequest
from migrator.model.event import Key, Value
from migrator.model.reach import VALUE
from migrator.model.requests.request import WHOLE, Scope
from migrator.model.table import TableSchema
from migrator.ports.source import ChunkReader
from transforms.analysis.grain_values import value_columns, with_hashes
from transforms.analysis.plan import MappingPlan
from transforms.frames import arrow_schema

MOST_ROWS = 100_000
"""Rows that one look reads of a table at most."""
_PAGE_ROWS = 10_000


class TrialRows:
    """Rows of the tables of one mapping.

    Args:
        spark: the session, for computed values.
        reader: of the source.
        plan: the checked mapping.
    """

    def __init__(self, spark: SparkSession, reader: ChunkReader, plan: MappingPlan):
        self._spark = spark
        self._reader = reader
        self._plan = plan
        self._numbers = itertools.count(1)
        self._whole: dict[str, pa.Table] = {}

    def first(self, table: str, limit: int) -> pa.Table:
        """The first rows in key order."""
        schema = self._plan.schemas[table]
        return self.with_values(table, self._read(schema, WHOLE, limit))

    def spread(self, table: str, limit: int, places: int) -> pa.Table:
        """Rows from some places over the whole range of keys, where the key is one whole number; else the first ones.

        At most ``limit`` rows, each once.
        """
        schema = self._plan.schemas[table]
        types = [column.type for column in schema.columns if column.name in schema.key]
        first = self.first(table, max(1, limit // places) if len(types) == 1 else limit)
        if len(types) != 1 or not types[0].startswith("int") or not first.num_rows:
            return self.first(table, limit)
        asked = ChunkRequest(next(self._numbers), schema.id, None, _PAGE_ROWS, ahead=True)
        end = self._reader.bounded(asked, schema).end
        [name] = schema.key
        begin, last = int(first[name][0].as_py()), int(str(end[0])) if end else 0
        pages = [first]
        for place in range(1, places):
            after = (str(begin + (last - begin) * place // places),)
            request = ChunkRequest(next(self._numbers), schema.id, after, max(1, limit // places))
            rows = pa.concat_tables([self._reader.read(request, schema).rows]).cast(arrow_schema(schema))
            pages.append(self.with_values(table, rows))
        pages.append(self.first(table, limit))  # where keys lie close together, and one far off
        found = pa.concat_tables(pages)
        place_of: dict[object, int] = {}
        for place, key in enumerate(found[name].to_pylist()):
            if len(place_of) < limit:
                place_of.setdefault(key, place)
        return found.take(pa.array(place_of.values(), pa.int64()))

    def of_keys(self, table: str, keys: Sequence[Key]) -> pa.Table:
        """The rows with these keys."""
        schema = self._plan.schemas[table]
        return self.with_values(table, self._read(schema, Scope(keys=tuple(keys)), MOST_ROWS))

    def linked(self, table: str, columns: Sequence[str], values: pa.Table) -> pa.Table:
        """The rows whose ``columns`` equal a row of ``values``; NULL equals nothing.

        Raises ``SourceError`` where more than ``MOST_ROWS`` would have to be read.
        """
        wanted = {one for one in tuples(values, values.column_names) if None not in one}
        if any(name.startswith(VALUE) for name in columns):
            rows = self.whole(table)  # no index of the source knows a computed value
        else:
            schema = self._plan.schemas[table]
            types = [next(c.type for c in schema.columns if c.name == name) for name in columns]
            keys = [key for one in wanted if (key := _key(one, types)) is not None]
            scope = Scope(keys=tuple(dict.fromkeys(keys)), columns=tuple(columns))
            read = self._read(schema, scope, MOST_ROWS) if keys else arrow_schema(schema).empty_table()
            rows = self.with_values(table, read)
        # what the source holds for equal may be more than what is equal: its collations
        return rows.filter(pa.array([one in wanted for one in tuples(rows, columns)], pa.bool_()))

    def where(self, table: str, condition: Callable[[], str]) -> Iterator[tuple[pa.Table, bool]]:
        """The rows for which an SQL condition holds, chunk by chunk, and whether it is the last chunk.

        Each is asked of a bounded range of keys: no read takes longer than one of a dump. ``condition`` is called
        for each chunk.
        """
        schema = self._plan.schemas[table]
        after: Key | None = None
        end: Key | None = None
        final = False
        while not final:
            scope = Scope(predicate=condition())
            asked = ChunkRequest(
                next(self._numbers), schema.id, after, _PAGE_ROWS, scope=scope, end=end, ahead=True
            )
            request = self._reader.bounded(asked, schema)
            chunk = self._reader.read(request, schema)
            final, after, end = chunk.final, chunk.last_key, request.end
            yield self.with_values(table, pa.concat_tables([chunk.rows]).cast(arrow_schema(schema))), final

    def whole(self, table: str) -> pa.Table:
        """Every row of a table. Raises ``SourceError`` where there are more than ``MOST_ROWS``."""
        if table not in self._whole:
            rows = self._read(self._plan.schemas[table], WHOLE, MOST_ROWS + 1)
            if rows.num_rows > MOST_ROWS:
                raise _too_many(
                    table, "it is linked, or grouped, by a computed value, so all of it has to be read"
                )
            self._whole[table] = self.with_values(table, rows)
        return self._whole[table]

    def without_values(self, table: str, rows: pa.Table) -> pa.Table:
        """The rows as the mapping gets them."""
        return rows.select(list(self._plan.schemas[table].names()))

    def with_values(self, table: str, rows: pa.Table) -> pa.Table:
        """The rows with what the mapping computes of them."""
        values = value_columns(self._plan.target, table)
        return with_hashes(self._spark, self._plan.schemas[table], values, rows) if values else rows

    def _read(self, schema: TableSchema, scope: Scope, limit: int) -> pa.Table:
        pages = list(self._pages(schema, scope, limit))
        return pa.concat_tables(pages).cast(arrow_schema(schema))

    def _pages(self, schema: TableSchema, scope: Scope, limit: int) -> Iterator[pa.Table]:
        after: Key | None = None
        left = limit
        while True:
            size = limit if scope.keys else min(left, _PAGE_ROWS)
            request = ChunkRequest(next(self._numbers), schema.id, after, size, scope=scope)
            chunk = self._reader.read(request, schema)
            yield chunk.rows
            if scope.keys and chunk.row_count >= size:
                raise _too_many(
                    schema.id.name, f"more than {size} of its rows are linked to the rows at hand"
                )
            left -= chunk.row_count
            after = chunk.last_key
            if chunk.final or (left <= 0 and not scope.keys):
                return


def texts(column: pa.ChunkedArray) -> list[str | bytes]:
    """A column's values as keys are written: canonical text, binary values as they are."""
    if pa.types.is_binary(column.type):
        return list(column.to_pylist())
    if (
        pa.types.is_boolean(column.type)
        or pa.types.is_floating(column.type)
        or pa.types.is_decimal(column.type)
    ):
        return [str(value) for value in column.to_pylist()]
    return list(pc.cast(column, pa.string()).to_pylist())


def tuples(rows: pa.Table, columns: Sequence[str]) -> list[tuple[object, ...]]:
    """The values of some columns, row by row, such that equal ones are equal whatever number type they have."""
    values = [
        pc.cast(rows[name], pa.string()) if pa.types.is_temporal(rows[name].type) else rows[name]
        for name in columns
    ]
    return list(zip(*(column.to_pylist() for column in values), strict=True))


def _key(values: tuple[object, ...], types: Sequence[str]) -> Key | None:
    """Values as the source takes them for columns of these types; None if no such column can hold one of them."""
    key: list[Value] = []
    for value, kind in zip(values, types, strict=True):
        if isinstance(value, Decimal) and kind.startswith("int"):
            if value != value.to_integral_value():
                return None
            value = int(value)
        key.append(value if isinstance(value, bytes) else str(value))
    return tuple(key)


def _too_many(table: str, cause: str) -> SourceError:
    return SourceError(
        f"too many rows of {table} to look at",
        where=f"at most {MOST_ROWS} rows of a table",
        cause=cause,
        remedy="choose a smaller grain with --key, or try the mapping in a unit test with a few rows",
    )
