"""Digests of pieces that servers compute: the number of rows and two sums of 64-bit hashes.

Only of columns that are the source's columns themselves, and only by expressions that are at least as strict as the
listed equivalences (``verify.normalise``): rows whose digests agree would compare as equal, and where digests
disagree the rows are read and compared as ever. So an expression may be too strict, never too lenient.

What a digest must not be blind to:

- *NULL and empty, and values that move between columns*: a row's hash covers every column in its place, with NULL as
  something of its own. PostgreSQL's hash of a record does; elsewhere each text goes behind its length.
- *Values that move between rows*. PostgreSQL's hash of a record is a sum over its columns, and a sum of sums stays
  the same when two rows swap a value. So each row's hash is hashed once more before it is added up.
- *What a type's own hash folds* (0.0 and -0.0, equal intervals, collations): only types whose equality is ours are
  hashed by type, the others by their bytes or texts.
- *Two hashes that are one*: two CRC32 of a text under different salts tell the same differences apart, of texts of
  one length. Halves of a SHA-256 don't.
- *A server that gives up on a row*: rows with a hash are counted beside all rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from migrator.model.table import Column
from verify.chunk_keys import Dialect
from verify.snapshot import TargetColumnText

_POSTGRES_SEEDS = ((1, 101), (2, 102))
_OTHERS_OF_MYSQL = ("date", "datetime", "timestamp", "time", "year", "float", "double", "json", "set")
_MYSQL_CLASSES = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint"), "integer"),
    **dict.fromkeys(("varchar", "char", "tinytext", "text", "mediumtext", "longtext", "enum"), "text"),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), "bytea"),
    "decimal": "numeric",
}
_POSTGRES_CLASSES = {
    **dict.fromkeys(("smallint", "integer", "bigint"), "integer"),
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
_BY_TYPE = {
    "integer": "{}::int8",
    "numeric": "{}::numeric",
    "text": '{}::text COLLATE "C"',
    "bpchar": '{}::text COLLATE "C"',
    "float8": "float8send({})",
    "float4": "float4send({})",
    **dict.fromkeys(("bool", "bytea", "date", "timestamp", "timestamptz", "uuid"), "{}"),
}
_POSTGRES_TEXTS = {
    "integer": "{}::text",
    "numeric": "trim_scale({}::numeric)::text",
    "text": "{}::text",
    "bytea": "encode({}, 'hex')",
}
_MYSQL_TEXTS = {
    "integer": "CAST({} + 0 AS CHAR)",
    "numeric": "CAST({} AS CHAR)",
    "text": "{}",
    "bytea": "LOWER(HEX({}))",
    "float": "CAST({} + 0e0 AS CHAR)",
}


@dataclass(frozen=True, slots=True)
class Pushed:
    """Select lists that make the same digest of the same rows: rows, hashed rows, two sums of hashes."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Pair:
    """A target column, and the source column that it is."""

    source: Column
    target: TargetColumnText


def pushed(kinds: tuple[str, str], dialects: tuple[Dialect, Dialect], pairs: Sequence[Pair]) -> Pushed | None:
    """How the servers compute the digest; None where they don't agree upon every column.

    Args:
        kinds: of both servers (``verify.settings.KINDS``).
        dialects: of both.
        pairs: all columns that are compared.
    """
    found = [_class_of(pair, kinds) for pair in pairs]
    classes = [name for name in found if name is not None]
    if not pairs or len(classes) < len(pairs):
        return None
    names = [
        [dialects[0].quoted(pair.source.name) for pair in pairs],
        [dialects[1].quoted(pair.target.name) for pair in pairs],
    ]
    if kinds == ("postgresql", "postgresql"):
        return Pushed(*(_by_record(side, classes) for side in names))
    if any(name not in _MYSQL_TEXTS and not name.startswith("mysql ") for name in classes):
        return None
    scaled = [[_scaled(p.source.source_type) for p in pairs], [_scaled(p.target.native) for p in pairs]]
    return Pushed(
        *(
            _by_text(kind, side, classes, scales)
            for kind, side, scales in zip(kinds, names, scaled, strict=True)
        )
    )


def _class_of(pair: Pair, kinds: tuple[str, str]) -> str | None:
    """The class of values that both columns belong to."""
    source, target = _declared(kinds[0], pair.source.source_type), _declared(kinds[1], pair.target.native)
    if {source, target} == {"integer", "numeric"}:
        return "numeric"
    if source is None or source != target:
        return None
    if source.startswith("mysql ") and kinds[0] != kinds[1]:
        return None
    return source


def _declared(kind: str, native: str) -> str | None:
    plain = re.sub(r"\([^)]*\)", "", native.lower()).strip()
    if kind == "postgresql":
        # Others only by the text that the type's output function makes, and only of the very same declaration.
        return _POSTGRES_CLASSES.get(plain, f"as {native}")
    word = plain.split(" ")[0]
    if word == "tinyint" and native.lower().startswith("tinyint(1)") and "unsigned" not in native.lower():
        return None  # a boolean on a target's side
    return _MYSQL_CLASSES.get(word) or (f"mysql {word}" if word in _OTHERS_OF_MYSQL else None)


def _scaled(native: str) -> bool:
    found = re.search(r"\(\d+,(\d+)\)", native)
    return found is not None and int(found[1]) > 0


def _by_record(names: Sequence[str], classes: Sequence[str]) -> str:
    output = "CASE WHEN num_nulls({0}) = 0 THEN format('%s', {0}) END COLLATE \"C\""
    values = [_BY_TYPE.get(kind, output).format(name) for name, kind in zip(names, classes, strict=True)]
    hashes = [
        f"hashint8extended(hash_record_extended(ROW({', '.join(values)}), {seed}), {again})"
        for seed, again in _POSTGRES_SEEDS
    ]
    # No record is without a hash, and a third one would cost as much as the other two.
    return "count(*), count(*), " + ", ".join(f"coalesce(sum({each}), 0)::text" for each in hashes)


def _by_text(kind: str, names: Sequence[str], classes: Sequence[str], scaled: Sequence[bool]) -> str:
    postgres = kind == "postgresql"
    cell: Callable[[str, str, bool], str] = _postgres_cell if postgres else _mysql_cell
    cells = [cell(*each) for each in zip(names, classes, scaled, strict=True)]
    if postgres:
        hash_ = f"encode(sha256(convert_to({' || '.join(cells)}, 'UTF8')), 'hex')"
        parts = [f"('x' || substr({hash_}, {n}, 16))::bit(64)::int8" for n in (1, 17)]
        sums = [f"coalesce(sum({part}), 0)::text" for part in parts]
    else:
        hash_ = f"SHA2(CONCAT({', '.join(cells)}), 256)"
        parts = [f"CAST(CONV(SUBSTRING({hash_}, {n}, 16), 16, 10) AS UNSIGNED)" for n in (1, 17)]
        sums = [f"COALESCE(SUM({part}), 0)" for part in parts]
    return f"COUNT(*), COUNT({hash_}), " + ", ".join(sums)


def _postgres_cell(name: str, kind: str, _: bool) -> str:
    text = _POSTGRES_TEXTS[kind].format(name)
    return f"CASE WHEN {name} IS NULL THEN '-' ELSE char_length({text}) || ':' || {text} END"


def _mysql_cell(name: str, kind: str, scaled: bool) -> str:
    text = _MYSQL_TEXTS.get(kind.removeprefix("mysql "), "CAST({} AS CHAR)").format(name)
    if kind == "numeric" and scaled:
        text = f"TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM {text}))"
    text = f"CONVERT({text} USING utf8mb4)"
    return f"CASE WHEN {name} IS NULL THEN '-' ELSE CONCAT(CHAR_LENGTH({text}), ':', {text}) END"
