"""Pieces of forward mappings as a way back: which old columns each gives, and what may be looked up. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import types as T

from migrator.model.table import Column, TableSchema
from migrator.model.target import TargetColumn, TargetTable
from transforms.analysis.expressions import Expression
from transforms.casts import cast_problem
from transforms.frames import spark_schema
from transforms.python_source import column_literal
from transforms.reverse.conditions import telling
from transforms.reverse.invert import Inversion, Lossy
from transforms.reverse.pieces import FAR, Piece, parts
from transforms.reverse.texts import decimal_of, literal, shown, simple, whole_digits
from transforms.reverse.values import OldColumn, Restored, Value

_DDL: Mapping[str, T.DataType] = {
    "boolean": T.BooleanType(), "tinyint": T.ByteType(), "smallint": T.ShortType(), "int": T.IntegerType(),
    "bigint": T.LongType(), "float": T.FloatType(), "double": T.DoubleType(), "string": T.StringType(),
    "binary": T.BinaryType(), "date": T.DateType(), "timestamp_ntz": T.TimestampNTZType(),
    "timestamp": T.TimestampType(),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Side:
    """One table as it is read (as a source) and as it is written (as a target)."""

    read: TableSchema
    written: TargetTable


@dataclass(frozen=True, slots=True)
class Part:
    """A new table that takes part in giving an old table back.

    Attributes:
        table: the new table.
        key: its key columns.
        where: Python source of the conditions that its rows are of this old table.
        restored: the old columns that it gives, by name.
        links: for a joined one: its columns, each with the base's that holds the same.
        rows: which of the old rows it has, in words; empty where it has all.
    """

    table: str
    key: tuple[str, ...]
    where: tuple[str, ...]
    restored: Mapping[str, Restored]
    links: tuple[tuple[str, str], ...] = ()
    rows: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A piece that can be used: what it gives back, with what its conditions say of all of its rows, and without."""

    piece: Piece
    part: Part
    lost: Mapping[str, str]
    own: Mapping[str, Restored]

    lookups: Sequence[Part] = ()

    def names(self) -> set[str]:
        """The old columns that it gives, by itself or by what is looked up."""
        return {*self.part.restored, *(name for one in self.lookups for name in one.restored)}


@dataclass(frozen=True, slots=True)
class Found:
    """A new table by whose key an old column is found that is no value of the row itself.

    Attributes:
        table, key: the table and its only key column.
        where: see ``Part``.
        code: Python source of the old column's value.
    """

    table: str
    key: str
    where: tuple[str, ...]
    code: str


Lookups = Mapping[object, Found]
"""Tables that have a key column, by the meaning of that column."""


class Candidates:
    """The old columns that the pieces of one old table give back.

    Args:
        side: the old table.
        new: the new tables.
        found: all pieces.
    """

    def __init__(self, side: Side, new: Mapping[str, Side], found: Sequence[Piece]):
        self._side, self._new, self._found = side, new, found
        self._names = side.read.names()
        self.columns = _old_columns(side)
        self._writable = {one.name for one in side.written.columns if not one.generated}

    def candidate(self, piece: Piece) -> Candidate | str:
        """A piece with all that it gives back; else why its rows can't be used."""
        side = self._new.get(piece.target)
        if side is None:
            return f"{piece.target} can't be read as a source"
        where = self._where(piece, side)
        if where is None:
            return f"rows of {piece.target} don't tell of which old table they are"
        restored: dict[str, Restored] = {}
        lost: dict[str, str] = {}
        for name, expression in piece.columns.items():
            try:
                found = self._restored(piece, side, name, expression)
            except Lossy as reason:
                for place in _places(expression):
                    if place < FAR:
                        lost.setdefault(self._names[place], f"{piece.target}.{name}: {reason}")
                continue
            for one in found:
                old = self._names[one.column]
                better = old not in restored or len(one.notes) < len(restored[old].notes)
                if better and old in self._writable:
                    restored[old] = one
        fixed = self._fixed(piece)
        rows = " and ".join(shown(one, self._names) for one in piece.conditions)
        if not piece.whole:
            rows = " and ".join([*([rows] if rows else []), "the joins of the mapping keep it"])
        return Candidate(
            piece, Part(piece.target, piece.key, where, {**fixed, **restored}, (), rows), lost, restored
        )

    def _restored(self, piece: Piece, side: Side, name: str, expression: Expression) -> list[Restored]:
        if (piece.surrogates or {}).get(name):
            map_name = (piece.surrogates or {})[name]
            raise Lossy(f"it holds numbers of the key map {map_name}, which mappings can't read")
        target, read = side.written.column(name), _column(side.read, name)
        if target is None or read is None:
            return []
        value = Value(*_seed(target, _type(side.read, name), read))
        return Inversion(self.columns, name).peel(expression, value)

    def _where(self, piece: Piece, side: Side) -> tuple[str, ...] | None:
        """Conditions that only this piece's rows fulfil, among those of the new table; None if there are none."""
        others = [one for one in self._found if one.target == piece.target and one is not piece]
        types = {name: _type(side.read, name) for name in side.read.names()}
        found: dict[str, None] = {}
        for other in others:
            condition = telling(piece, other, types)
            if condition is None:
                return None
            found[condition] = None
        return tuple(found)

    def _fixed(self, piece: Piece) -> dict[str, Restored]:
        """Columns that have one value in all rows of a piece, by its conditions."""
        found = {}
        for one in piece.conditions:
            if one.kind == "EqualTo" and one.children[0].kind == "AttributeReference":
                place, value = one.children[0].column or 0, literal(one.children[1])
                if place < FAR and value not in (None, "None"):
                    found[self._names[place]] = Restored(place, f"F.lit({value})")
            if one.kind == "IsNull" and one.children[0].kind == "AttributeReference":
                place = one.children[0].column or 0
                if place < FAR:
                    code = f'F.lit(None).cast("{self.columns[place].wanted}")'
                    found[self._names[place]] = Restored(place, code)
        return found

    def with_lookups(self, one: Candidate, lookups: Lookups) -> Candidate:
        """The candidate with the columns that can be looked up in other new tables."""
        found = []
        for name, expression in one.piece.columns.items():
            known = lookups.get(meaning(one.piece, name))
            place = next((place for place in _places(expression) if place < FAR), None)
            old = None if place is None else self._names[place]
            if (
                known is None
                or place is None
                or old is None
                or old in one.names()
                or old not in self._writable
            ):
                continue
            if known.table == one.part.table and known.key == name:
                continue
            restored = {old: Restored(place, known.code)}
            found.append(Part(known.table, (known.key,), known.where, restored, ((known.key, name),)))
            one = replace(one, lookups=(*one.lookups, found[-1]))
        return one

    def lookup(self, one: Candidate) -> tuple[object, Found] | None:
        """Returns the meaning of a candidate's key, and how its old column is found by it; None where it isn't."""
        if len(one.piece.key) != 1 or one.part.rows:
            return None
        [key] = one.piece.key
        meant = meaning(one.piece, key)
        place = next((place for place in _places(one.piece.columns[key]) if place < FAR), None)
        value = None if place is None else one.own.get(self._names[place])
        if meant is None or value is None or value.notes or value.maps:
            return None
        return meant, Found(one.part.table, key, one.part.where, value.code)


def meaning(piece: Piece, name: str) -> object:
    """Returns the meaning of a new column, whatever the old column's name; None unless it is made of one.

    A column that holds numbers of a key map means its old key in that map.
    """
    expression = piece.columns[name]
    places = set(_places(expression))
    if len(places) != 1 or any(place >= FAR for place in places) or expression.kind == "AttributeReference":
        known = (piece.surrogates or {}).get(name)
        if known is None or len(places) != 1:
            return None
    return (piece.surrogates or {}).get(name, ""), _anonymous(expression)


def _anonymous(one: Expression) -> Expression:
    kind = "number" if one.kind == "AttributeReference" and whole_digits(simple(one.type)) else one.type
    if one.kind in ("Typed", "AttributeReference"):
        return replace(one, type=kind, column=None, children=tuple(map(_anonymous, one.children)))
    return replace(one, children=tuple(map(_anonymous, one.children)))


def _old_columns(side: Side) -> tuple[OldColumn, ...]:
    found = []
    for one in side.read.columns:
        target = side.written.column(one.name)
        kind = _type(side.read, one.name)
        padded = one.source_type.lower().startswith(("char", "bpchar")) and "varying" not in one.source_type
        nullable = one.nullable and one.name not in side.read.key
        wanted = kind if target is None else simple(target.spark_type)
        found.append(OldColumn(one.name, nullable, kind, wanted, padded))
    return tuple(found)


def _type(schema: TableSchema, name: str) -> str:
    place = schema.names().index(name)
    return simple(spark_schema(schema).fields[place].dataType.simpleString())


def _column(schema: TableSchema, name: str) -> Column | None:
    return next((one for one in schema.columns if one.name == name), None)


def _seed(target: TargetColumn, read: str, column: Column) -> tuple[str, str]:
    """The code of a new column's value and its type: what the forward mapping wrote, of what a source reads."""
    name, wanted = column_literal(target.name), simple(target.spark_type)
    if read == wanted:
        return f"F.col({name})", wanted
    if wanted == "boolean":
        return f"flag({name})", wanted
    if read == "string" and wanted in ("date", "timestamp_ntz", "timestamp"):
        code = f"mysql_{'date' if wanted == 'date' else 'datetime'}({name})"
        return (f'instant({code}, "UTC")' if wanted == "timestamp" else code), wanted
    if cast_problem(_data_type(read), _data_type(wanted)) is None:
        return f"F.col({name})", wanted if wanted != "string" else read
    return f"F.col({name})", read


def _data_type(kind: str) -> T.DataType:
    found = decimal_of(kind)
    return T.DecimalType(*found) if found else _DDL.get(kind, T.StringType())


def _places(expression: Expression) -> Iterator[int]:
    return (one.column for one in parts(expression) if one.column is not None)
