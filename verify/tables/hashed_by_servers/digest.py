"""Digests of pieces that servers compute: the number of rows and the sum of their 64-bit hashes.

A digest covers columns that are the source's own, or that its server can compute with the same meaning as the mapping
(``verify.tables.hashed_by_servers.words``). Its expressions are at least as strict as the listed equivalences
(``verify.tables.compare.normalise``): rows whose digests agree would compare as equal, and where digests disagree the
rows are read and compared as usual. So an expression may be too strict, never too lenient.

A digest must notice all of these:

- *NULL and empty, and values that move between columns*: a row's hash covers every column in its place, and
  NULL has a hash of its own. Between PostgreSQL servers ``verify.tables.hashed_by_servers.row_hash`` ensures that,
  elsewhere ``verify.tables.hashed_by_servers.text_hash``.
- *Values that move between rows*. Where a row's hash is a sum of its columns' hashes, a sum over rows stays
  the same when two rows swap a value. So a whole row goes through one hash before it is added up, or all rows do.
- *What a type's own hash folds*: see ``verify.tables.hashed_by_servers.row_hash``.
- *Hashes that are linear*: whatever number of CRC32 of one text is taken, swapped values change all of them by the
  same bits. SHA-256 isn't linear, and neither are PostgreSQL's hashes.
- *A server that gives up* (MySQL's functions return NULL for values larger than ``max_allowed_packet``, and cut
  off long aggregates): rows with a hash are counted beside all rows.

One sum is enough: two different pieces agree by chance once in 2^64.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from secrets import randbits

from migrator.model.table import Column
from verify.readers.chunk_keys import Dialect, KeyColumn
from verify.readers.snapshot import TargetColumnText
from verify.tables.compare.normalise import kind_of
from verify.tables.hashed_by_servers.engines import CAST, HASHING, UUID, HashingEngine
from verify.tables.hashed_by_servers.row_hash import Hashed, row_hash
from verify.tables.hashed_by_servers.spark_numbers import WHOLE
from verify.tables.hashed_by_servers.sql_value import SqlValue
from verify.tables.hashed_by_servers.text_hash import (
    CELLS_MAX,
    Cell,
    may_be_long,
)

_NUMBERS = {"int4", "integer", "numeric"}
_MADE_CLASSES = {
    "string": "text",
    "boolean": "bool",
    "date": "date",
    "timestamp_ntz": "timestamp",
    "timestamp": "timestamptz",
}
"""Classes of computed values, by Spark's type; all other types are numbers."""
_PRINTED = "printed"
"""The class of values that a source passes on as the text that it prints, where the target prints that text too."""
_DASHED = "________-____-____-____-____________"
_DIGITS = f"(CASE WHEN {{0}} LIKE '{_DASHED}' THEN REPLACE(LOWER({{0}}), '-', '') ELSE LOWER({{0}}) END)"
"""The digits of a UUID, which may be written in capitals and without dashes."""
_FLOATING = {"float8": "mysql double", "float4": "mysql float"}


@dataclass(frozen=True, slots=True)
class Pushed:
    """Select lists that make the same digest of the same rows.

    PostgreSQL's list gives the number of rows, the number of those that have a hash, and the sum of their hashes or
    one hash of them all. MySQL's list gives the number of rows and one hash.

    Attributes:
        source, target: the select lists.
        rows_max: rows of a piece at most; None where any number will do.
    """

    source: str
    target: str
    rows_max: int | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """A target column with the source column that it copies, or the SQL by which the source's server computes it."""

    source: Column | SqlValue
    target: TargetColumnText

    def words(self, engine: HashingEngine, dialect: Dialect) -> str:
        """The source's side in SQL, of its engine."""
        if not isinstance(self.source, SqlValue):
            return dialect.quoted(self.source.name)
        # A number that the type can't hold isn't known, so that row's hash is never computed.
        return engine.whole.format(self.source.sql) if self.source.type in WHOLE else self.source.sql

    def declared(self) -> tuple[str, str]:
        """The types of both sides, or one like it where the source's side is computed."""
        if not isinstance(self.source, SqlValue):
            return self.source.source_type, self.target.native
        return "datetime" if self.source.whole_seconds else "datetime(6)", self.target.native

    def scales_differ(self) -> bool:
        """Returns whether one number may be written with more decimals on one side than on the other."""
        if isinstance(self.source, SqlValue):
            return True
        old, new = _scale(self.source.source_type), _scale(self.target.native)
        return old is None or old != new


def pushed(
    kinds: tuple[str, str],
    dialects: tuple[Dialect, Dialect],
    pairs: Sequence[Pair],
    key: Sequence[KeyColumn],
) -> Pushed | None:
    """Plans how the servers compute the digest; None where they don't agree upon every column.

    Args:
        kinds: of both servers (``verify.readers.engines.JUDGED``).
        dialects: of both.
        pairs: all columns that are compared.
        key: the columns whose order both servers agree upon.
    """
    if not set(kinds) <= set(HASHING):
        return None
    old, new = (HASHING[kind] for kind in kinds)
    found = [_class_of(pair, old, new, kinds[0] == kinds[1]) for pair in pairs]
    classes = [name for name in found if name is not None]
    if not pairs or len(classes) < len(pairs):
        return None
    names = [
        [pair.words(old, dialects[0]) for pair in pairs],
        [dialects[1].quoted(pair.target.name) for pair in pairs],
    ]
    for place, pair in enumerate(pairs):
        if classes[place] == _PRINTED:
            names[0][place] = _printed_by_source(names[0][place], pair, old, new)
            names[1][place] = _printed_by_target(names[1][place], pair, new)
            classes[place] = "text"
    computed = [pair.source for pair in pairs if isinstance(pair.source, SqlValue)]
    unknown = list(dict.fromkeys(part for value in computed for part in value.unknown))
    if kinds[0] == kinds[1] and old.row_hash:
        return Pushed(_by_hash(names[0], pairs, classes, unknown), _by_hash(names[1], pairs, classes, []))
    long = [may_be_long(name, pair.declared()[0]) for name, pair in zip(classes, pairs, strict=True)]
    order = [
        [dialects[0].quoted(column.source) for column in key],
        [dialects[1].quoted(column.target) for column in key],
    ]
    cells = [_cells(names[side], pairs, classes, old, side == 0) for side in (0, 1)]
    lists = (
        old.select(cells[0], long, order[0], False, unknown),
        new.select(cells[1], long, order[1], True, ()),
    )
    return Pushed(*lists, rows_max=max(1, CELLS_MAX // len(pairs)))


def _class_of(pair: Pair, old: HashingEngine, new: HashingEngine, same: bool) -> str | None:
    """The class of values that both columns belong to. ``same``: whether both servers are of one kind."""
    target = new.declared(pair.target.native)
    if pair.target.base in new.as_read:
        if old.declared is not new.declared or isinstance(pair.source, SqlValue):
            target = pair.target.base
        elif pair.target.base == "bool":
            return None
    if isinstance(pair.source, SqlValue):
        found = _MADE_CLASSES.get(pair.source.type, "numeric")
        if pair.source.type in WHOLE and target in ("int4", "integer"):
            return "integer"
        alike = target == found or (found == "numeric" and target in _NUMBERS)
        return found if alike else _printed(pair, old, new, target)
    source = old.declared(pair.source.source_type)
    if {source, target} == {"int4", "integer"}:
        return "integer"
    if source != target and {source, target} <= _NUMBERS:
        return "numeric"
    for floating, of_mysql in _FLOATING.items():
        if {source, target} == {of_mysql, floating}:  # unless it is printed with so many decimals, no more
            return None if "(" in "".join(pair.declared()) else floating
    if source == "mysql time" and pair.target.base == "time":
        return "time"
    if source is None or source != target:
        return _printed(pair, old, new, target)
    if source.startswith("mysql ") and not same:
        return None
    return source


def _printed(pair: Pair, old: HashingEngine, new: HashingEngine, target: str | None) -> str | None:
    """Returns the class of a text that becomes another type; None where that type may print it otherwise."""
    if pair.source.type != "string":
        return None
    if new.printed is None:
        return _PRINTED if target == "text" else None
    base = pair.target.base
    if base == "jsonb":
        alike = pair.declared()[0].lower() in old.as_jsonb
    else:
        alike = base in (*CAST, UUID) or kind_of(pair.target) == "text"
    return _PRINTED if alike else None


def _printed_by_source(name: str, pair: Pair, old: HashingEngine, new: HashingEngine) -> str:
    if not isinstance(pair.source, SqlValue) and old.declared(pair.source.source_type) != "text":
        name = old.output.format(name)
    if new.printed is None or pair.target.base != UUID:
        return name
    # Under a collation that takes other texts for equal, no server before 18 looks for one.
    return _DIGITS.format(old.by_bytes.format(name))


def _printed_by_target(name: str, pair: Pair, new: HashingEngine) -> str:
    return name if new.printed is None else new.printed(name, pair.target.base)


def _scale(native: str) -> int | None:
    found = re.search(r"\(\d+,(\d+)\)", native)
    return None if found is None else int(found[1])


def _by_hash(
    names: Sequence[str], pairs: Sequence[Pair], classes: Sequence[str], unknown: Sequence[str]
) -> str:
    hash_ = row_hash([_hashed(*column) for column in zip(names, pairs, classes, strict=True)])
    if unknown:  # a random number, which agrees with no hash
        hash_ = f"CASE WHEN {' OR '.join(unknown)} THEN {randbits(62)} ELSE {hash_} END"
    # Every row has a hash, and counting the hashes would compute them once more.
    return f"count(*), count(*), coalesce(sum({hash_}), 0)::text"


def _hashed(name: str, pair: Pair, kind: str) -> Hashed:
    if kind == "numeric" and not pair.scales_differ():
        kind = "text"
    naive = pair.source.naive if isinstance(pair.source, SqlValue) and name == pair.source.sql else ""
    if naive:  # an instant has the hash of the time that a clock in UTC shows then
        name, kind = naive, "timestamp"
    return Hashed(name, kind, pair.source.nullable)


def _cells(
    names: Sequence[str],
    pairs: Sequence[Pair],
    classes: Sequence[str],
    source: HashingEngine,
    of_source: bool,
) -> list[Cell]:
    """The columns of one side; ``source`` is the source's engine."""
    cells = []
    for name, pair, kind in zip(names, pairs, classes, strict=True):
        declared = pair.declared()[0 if of_source else 1]
        computed = isinstance(pair.source, SqlValue) and source.computes_again
        nullable = computed or pair.source.nullable
        scales_differ = pair.scales_differ() if kind == "numeric" else "(" in declared
        only_if = pair.source.only_if if of_source and isinstance(pair.source, SqlValue) else None
        cells.append(
            Cell(name, kind, declared, _collation(pair, of_source), nullable, scales_differ, only_if)
        )
    return cells


def _collation(pair: Pair, of_source: bool) -> str:
    if not of_source:
        return pair.target.collation
    return "utf8mb4" if isinstance(pair.source, SqlValue) else pair.source.collation
