"""The engines that compute digests of pieces, a row each of one table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from migrator.model.table import Column
from transforms.analysis.expressions import Expression
from verify.tables.hashed_by_servers.mysql import in_mysql
from verify.tables.hashed_by_servers.postgres import in_postgres
from verify.tables.hashed_by_servers.sql_value import SqlValue
from verify.tables.hashed_by_servers.text_hash import Cell, select_in_mysql, select_in_postgres

CAST = ("json", "jsonb", "bpchar")
"""Types of PostgreSQL whose cast to text gives what their rules compare. That of ``inet`` adds a mask."""
UUID = "uuid"
_OTHERS_OF_MYSQL = ("date", "datetime", "timestamp", "time", "float", "double", "json", "set")
_MYSQL_CLASSES = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint", "year"), "integer"),
    **dict.fromkeys(("varchar", "char", "tinytext", "text", "mediumtext", "longtext", "enum"), "text"),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), "bytea"),
    "decimal": "numeric",
}
_POSTGRES_CLASSES = {
    **dict.fromkeys(("smallint", "integer"), "int4"),
    "bigint": "integer",
    **dict.fromkeys(("text", "character varying"), "text"),
    "boolean": "bool",
    "numeric": "numeric",
    "real": "float4",
    "double precision": "float8",
    "character": "bpchar",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz",
    **{name: name for name in ("bytea", "date", "uuid")},
}
_TEXTS = ("text", "varchar")
_OUTPUT = "(CASE WHEN num_nulls({0}) = 0 THEN format('%s', {0}) END)"

Select = Callable[[Sequence[Cell], Sequence[bool], Sequence[str], bool, Sequence[str]], str]


@dataclass(frozen=True, slots=True)
class HashingEngine:
    """One kind of server.

    Attributes:
        words: a column of a mapping in the server's words; None where there are none. The last argument tells whether
            the target has ``strict_times``.
        declared: the class of values of a type as it is declared; None where it has none.
        select: writes the select list of a digest (see ``select_in_postgres``).
        row_hash: whether two servers of this kind hash rows by ``verify.tables.hashed_by_servers.row_hash``.
        whole: makes a computed value a whole number of 64 bits.
        output: makes a value the text that the server prints.
        by_bytes: has a text compared by its bytes.
        computes_again: whether it computes a value once more to ask whether it is NULL, but not to write NULL down.
        as_jsonb: types, as declared, whose texts are as ``jsonb`` prints them: the same order, the same blanks.
        as_read: classes of a target's columns that are what the judge's reader of the target makes of them.
        printed: makes a target's column of another type than text, by its own name of it, what a source prints; None
            where only texts are compared with those.
        strict_times: whether no value is outside of the calendar.
    """

    words: Callable[[Expression, Sequence[Column], bool], SqlValue | None]
    declared: Callable[[str], str | None]
    select: Select
    row_hash: bool = False
    whole: str = "{0}"
    output: str = "{0}"
    by_bytes: str = "{0}"
    computes_again: bool = False
    as_jsonb: tuple[str, ...] = ()
    as_read: tuple[str, ...] = ()
    printed: Callable[[str, str], str] | None = None
    strict_times: bool = False


def _in_postgres(expression: Expression, columns: Sequence[Column], _: bool) -> SqlValue | None:
    return in_postgres(expression, columns)


def _plain(native: str) -> str:
    return re.sub(r"\([^)]*\)", "", native.lower()).strip()


def _declared_in_postgres(native: str) -> str | None:
    # Others only by the text that the type's output function makes, and only of the very same declaration.
    return _POSTGRES_CLASSES.get(_plain(native), f"as {native}")


def _declared_in_mysql(native: str) -> str | None:
    word = _plain(native).split(" ")[0]
    return _MYSQL_CLASSES.get(word) or (f"mysql {word}" if word in _OTHERS_OF_MYSQL else None)


def _printed_in_postgres(name: str, base: str) -> str:
    if base in _TEXTS:
        return name
    if base == UUID:
        return f"encode(uuid_send({name}), 'hex')"
    return f"({name}::text)" if base in CAST else _OUTPUT.format(name)


def _mysql(as_jsonb: tuple[str, ...]) -> HashingEngine:
    return HashingEngine(
        words=in_mysql,
        declared=_declared_in_mysql,
        select=select_in_mysql,
        as_jsonb=as_jsonb,
        as_read=("bool", "date", "timestamp", "timestamptz"),
    )


HASHING: Mapping[str, HashingEngine] = {
    "postgresql": HashingEngine(
        words=_in_postgres,
        declared=_declared_in_postgres,
        select=select_in_postgres,
        row_hash=True,
        whole="({0})::int8",
        output=_OUTPUT,
        by_bytes='({0} COLLATE "C")',
        computes_again=True,
        printed=_printed_in_postgres,
        strict_times=True,
    ),
    "mariadb": _mysql(()),  # its JSON is as somebody wrote it
    "mysql": _mysql(("json",)),
}
"""The engines by ``kind`` of a server. Rows of any other are read and compared."""
