"""Rows as a server gives them back after they were written: mapped values as sources hand them.

What a mapping makes has the types in which a target is written. The way back reads the same rows from there, in the
types in which that server's rows travel: flags as numbers, dates as text, padded texts.
"""

from __future__ import annotations

import re

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from migrator.model.table import Column as OldColumn
from migrator.model.table import TableSchema
from transforms.frames import spark_schema

_LENGTH = re.compile(r"\((\d+)\)")
_FRACTION = re.compile(r"(?:datetime|timestamp|time)\((\d)\)")
_BLANK_PADDED = ("character(", "bpchar")
_BLANKS_CUT = "char("
_BITS = "bit("


def as_read(rows: DataFrame, schema: TableSchema) -> DataFrame:
    """Written rows in the types of a source; columns that nothing wrote are NULL.

    Args:
        rows: of the table, in the types in which the target takes them.
        schema: the table as a source.
    """
    fields = spark_schema(schema).fields
    types = {field.name: field.dataType for field in rows.schema.fields}
    return rows.select(
        *(
            _read(F.col(_quoted(column.name)), types[column.name], field.dataType, column).alias(column.name)
            if column.name in types
            else F.lit(None).cast(field.dataType).alias(column.name)
            for column, field in zip(schema.columns, fields, strict=True)
        )
    )


def _read(value: Column, found: T.DataType, wanted: T.DataType, column: OldColumn) -> Column:
    declared = column.source_type.lower()
    if isinstance(wanted, T.StringType):
        return _text(value, found, declared)
    if isinstance(wanted, T.BinaryType) and isinstance(found, T.BooleanType):
        return F.unhex(F.when(value, "01").when(~value, "00"))
    return value if found == wanted else value.cast(wanted)


def _text(value: Column, found: T.DataType, declared: str) -> Column:
    if isinstance(found, (T.TimestampNTZType, T.TimestampType)):
        digits = _FRACTION.search(declared)
        fraction = f".{'S' * int(digits[1])}" if digits and digits[1] != "0" else ""
        return F.date_format(value, f"yyyy-MM-dd HH:mm:ss{fraction}")
    if not isinstance(found, T.StringType):
        return value.cast("string")
    length = _LENGTH.search(declared)
    if declared.startswith(_BLANK_PADDED):
        return F.rpad(F.rtrim(value), int(length[1]) if length else 1, " ")
    if declared.startswith(_BLANKS_CUT):
        return F.rtrim(value)
    return F.lower(value) if declared == "uuid" else value


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
