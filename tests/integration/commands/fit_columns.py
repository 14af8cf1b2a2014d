"""Pairs of a source column and a target column, with values at the edges of both, for tests of what fits."""

from __future__ import annotations

import random
from dataclasses import dataclass

from pyspark.sql import types as T

from migrator.model.table import TableSchema
from transforms.casts import cast_problem, spark_type
from transforms.frames import spark_schema

TEXTS = (
    "", "abc", "abcd", "abc   ", "äöü", "漢字", "😀", "red", "RED", "green", "Привет", "€uro", "12:00:00", "101",
    "3f2504e0-4f89-11d3-9a0c-0305e82c3301", "x" * 70, "é" * 150, '{"a": 1}', "[1",
)  # fmt: skip
NUMBERS = (
    "0", "-1", "127", "128", "255", "256", "-32768", "32768", "65536", "8388608", "999.99", "1000", "0.005", "1.10",
    "4294967296",
)  # fmt: skip
WHOLE = tuple(one for one in NUMBERS if "." not in one)
MOMENTS = (
    "2024-01-01 00:00:00", "2024-01-01 12:00:00.5", "2024-01-01 12:00:00.123456", "1969-12-31 23:59:59",
    "2040-01-01 00:00:00",
)  # fmt: skip
SPANS = ("00:00:00", "12:30:00.5", "23:59:59.999999")
OCTETS = ("", "00", "010203", "01020304", "00" * 16, "ff" * 300)
POSTGRES_SOURCE = {
    "text": TEXTS,
    "varchar(5)": tuple(one for one in TEXTS if len(one) < 6),
    "char(5)": ("abc", "abcde", "red"),
    "numeric": (*NUMBERS, "NaN", "123456789012345678901234567890123456789.5"),
    "numeric(12,4)": NUMBERS[:-1],
    "smallint": ("0", "-1", "127", "128", "255", "256", "32767"),
    "integer": WHOLE[:-1],
    "bigint": WHOLE,
    "double precision": (*NUMBERS, "NaN", "Infinity", "0.1", "0.30000000000000004"),
    "timestamp": (*MOMENTS, "0044-03-15 12:00:00 BC", "infinity"),
    "timestamp(1)": MOMENTS[:2],
    "timestamptz": (*(f"{one}+00" for one in MOMENTS), "-infinity"),
    "date": ("2024-02-29", "0044-03-15 BC", "infinity", "0001-01-01", "9999-12-31"),
    "time": SPANS,
    "bytea": tuple("\\x" + one for one in OCTETS),
    "source_color": ("red", "green", "black"),
    "uuid": ("3f2504e0-4f89-11d3-9a0c-0305e82c3301",),
}
BINLOG_SOURCE = {
    "text": (*TEXTS, "a\0b"),
    "varchar(5)": (*(one for one in TEXTS if len(one) < 6), "\0"),
    "varchar(20) CHARACTER SET latin1": ("abc", "äöü", "red", "€uro"),
    "decimal(12,4)": NUMBERS[:-1],
    "tinyint": ("0", "-1", "127"),
    "tinyint unsigned": ("0", "127", "128", "255"),
    "mediumint": ("0", "-1", "127", "256", "65536"),
    "int unsigned": tuple(one for one in WHOLE[:-1] if not one.startswith("-")),
    "bigint unsigned": tuple(one for one in WHOLE if not one.startswith("-")),
    "bigint": WHOLE,
    "double": NUMBERS,
    "time(6)": SPANS,
    "varbinary(400)": OCTETS,
    "binary(3)": ("010203",),
    "enum('red','green','black')": ("red", "green", "black"),
    "year": ("1901", "2155", "2024"),
}
POSTGRES_TARGET = (
    "varchar(3)", "varchar(5)", "char(3)", "text", "name", "smallint", "integer", "numeric(5,2)", "numeric(8,0)",
    "timestamp(0)", "timestamp(3)", "timestamptz(1)", "time(0)", "date", "uuid", "target_color", "bit(3)",
    "varbit(3)", "bytea", "word", "double precision", "bigint",
)  # fmt: skip
BINLOG_TARGET = (
    "varchar(3) CHARACTER SET latin1", "varchar(5) CHARACTER SET utf8mb3", "varchar(80) CHARACTER SET koi8r",
    "varchar(80) CHARACTER SET sjis", "char(3) CHARACTER SET ascii", "tinytext", "text", "smallint",
    "tinyint unsigned", "mediumint", "int unsigned", "decimal(5,2)", "decimal(8,0) unsigned", "float", "double",
    "date", "datetime", "datetime(3)", "timestamp(3) NULL", "time", "year", "enum('red','green')", "binary(16)",
    "varbinary(3)", "tinyblob", "bit(8)", "bigint",
)  # fmt: skip
SETUP = (
    "CREATE TYPE source_color AS ENUM ('red', 'green', 'black')",
    "CREATE TYPE target_color AS ENUM ('red', 'green')",
    "CREATE DOMAIN word AS varchar(3)",
)


@dataclass(frozen=True)
class Pair:
    """A source column, its values as the source's literals, and the target column."""

    name: str
    given: str
    wanted: str
    values: tuple[str, ...]


def compatible(schema: TableSchema, wanted: dict[str, str]) -> list[tuple[str, str]]:
    """Source column and target column, by name, that a mapping may pair; ``wanted``: the target's Spark types."""
    fields: list[T.StructField] = spark_schema(schema).fields
    return [
        (field.name, name)
        for field in fields
        for name, kind in wanted.items()
        if cast_problem(field.dataType, spark_type(kind)) is None
    ]


def chosen(pairs: list[tuple[str, str]], number: int, seed: int) -> list[tuple[str, str]]:
    """Some pairs, each kind of target column among them."""
    chance = random.Random(seed)
    mixed = chance.sample(pairs, len(pairs))
    each = list({target: (source, target) for source, target in mixed}.values())
    return each + [pair for pair in mixed if pair not in each][: max(0, number - len(each))]
