"""The reverse of a mapping, old table by old table: which new tables give its rows and columns back. Pure.

One new table is the base, whose rows are the old table's; others are joined to it by what both are made of alike.
Where no new table has all rows, several that surely have different ones are put together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import types as T

from migrator.model.table import Column, TableSchema
from migrator.model.target import TargetColumn, TargetTable
from transforms.analysis.expressions import Expression
from transforms.casts import cast_problem
from transforms.frames import spark_schema
from transforms.python_source import column_literal, text_literal
from transforms.reverse.invert import Inversion, Lossy, OldColumn, Restored, Value
from transforms.reverse.joined_texts import prefix
from transforms.reverse.pieces import FAR, Piece, parts
from transforms.reverse.texts import decimal_of, literal, shown, simple

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
        given: the old columns that it gives, by name.
        links: for a joined one: its columns, each with the base's that holds the same.
        rows: which of the old rows it has, in words; empty where it has all.
    """

    table: str
    key: tuple[str, ...]
    where: tuple[str, ...]
    given: Mapping[str, Restored]
    links: tuple[tuple[str, str], ...] = ()
    rows: str = ""


@dataclass(frozen=True, slots=True)
class Reverse:
    """The reverse of one old table.

    Attributes:
        old: the table.
        bases: tables that give its rows; several are united; none where nothing follows.
        joined: tables that are joined to the only base.
        open: columns that nothing gives back, each with the reasons.
        notes: what is to be known of the rows.
    """

    old: TargetTable
    bases: tuple[Part, ...] = ()
    joined: tuple[Part, ...] = ()
    open: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def reverses(old: Mapping[str, Side], new: Mapping[str, Side], found: Sequence[Piece]) -> list[Reverse]:
    """The reverse of each old table.

    Args:
        old: the tables that the mapping reads.
        new: the tables that it fills, as far as they can be read.
        found: its pieces, of all targets.
    """
    return [_Table(side, new, found).reverse() for side in old.values()]


@dataclass(frozen=True, slots=True)
class _Candidate:
    piece: Piece
    part: Part
    lost: Mapping[str, str]

    def has(self, names: Sequence[str]) -> bool:
        return all(name in self.part.given for name in names)


class _Table:
    def __init__(self, side: Side, new: Mapping[str, Side], found: Sequence[Piece]):
        self._side, self._new, self._found = side, new, found
        self._names = side.read.names()
        self._columns = _old_columns(side)
        self._key = side.written.key
        self._writable = [one.name for one in side.written.columns if not one.generated]

    def reverse(self) -> Reverse:
        table = self._side.written
        mine = [piece for piece in self._found if piece.root == table.id.name]
        candidates, unusable = [], []
        for piece in mine:
            found = self._candidate(piece)
            if isinstance(found, str):
                unusable.append(found)
            else:
                candidates.append(found)
        bases, notes = self._bases(candidates)
        joined = self._joined(bases[0], candidates) if len(bases) == 1 else ()
        given = {name for one in (*bases, *joined) for name in one.given}
        if len(bases) > 1:
            given = set.intersection(*(set(one.given) for one in bases))
        left = {name: self._reasons(name, mine, candidates) for name in self._writable if name not in given}
        return Reverse(table, bases, joined, left, (*notes, *unusable))

    # -- pieces ---------------------------------------------------------------------------------------------------

    def _candidate(self, piece: Piece) -> _Candidate | str:
        """A piece with all that it gives back; else why its rows can't be used."""
        side = self._new.get(piece.target)
        if side is None:
            return f"{piece.target} can't be read as a source"
        where = self._where(piece, side)
        if where is None:
            return f"rows of {piece.target} don't tell of which old table they are"
        given: dict[str, Restored] = {}
        lost: dict[str, str] = {}
        for name, expression in piece.columns.items():
            try:
                found = self._given(piece, side, name, expression)
            except Lossy as reason:
                for place in _places(expression):
                    if place < FAR:
                        lost.setdefault(self._names[place], f"{piece.target}.{name}: {reason}")
                continue
            for one in found:
                old = self._names[one.column]
                better = old not in given or len(one.notes) < len(given[old].notes)
                if better and old in self._writable:
                    given[old] = one
        for old, one in self._fixed(piece).items():
            given.setdefault(old, one)
        rows = "; ".join(shown(one, self._names) for one in piece.conditions)
        if not piece.whole:
            rows = "; ".join([*([rows] if rows else []), "what the joins of the mapping keep"])
        return _Candidate(piece, Part(piece.target, piece.key, where, given, (), rows), lost)

    def _given(self, piece: Piece, side: Side, name: str, expression: Expression) -> list[Restored]:
        if (piece.surrogates or {}).get(name):
            map_name = (piece.surrogates or {})[name]
            raise Lossy(f"it holds numbers of the key map {map_name}, which mappings can't read")
        target, read = side.written.column(name), _column(side.read, name)
        if target is None or read is None:
            return []
        value = Value(*_seed(target, _type(side.read, name), read))
        return Inversion(self._columns, name).peel(expression, value)

    def _where(self, piece: Piece, side: Side) -> tuple[str, ...] | None:
        """Conditions that only this piece's rows fulfil, among those of the new table; None if there are none."""
        others = [one for one in self._found if one.target == piece.target and one is not piece]
        found: dict[str, None] = {}
        for other in others:
            if other.root == piece.root and _apart(piece.conditions, other.conditions):
                continue
            condition = _telling(piece, other, side)
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
                    code = f'F.lit(None).cast("{self._columns[place].wanted}")'
                    found[self._names[place]] = Restored(place, code)
        return found

    # -- the rows -------------------------------------------------------------------------------------------------

    def _bases(self, candidates: Sequence[_Candidate]) -> tuple[tuple[Part, ...], tuple[str, ...]]:
        keyed = [one for one in candidates if one.has(self._key)]
        total = [one for one in keyed if not one.part.rows]
        if total:
            return (max(total, key=_worth).part,), ()
        if not keyed:
            return (), ()
        best = max(keyed, key=_worth)
        several = [best]
        for one in keyed:
            if one is not best and all(_apart(one.piece.conditions, it.piece.conditions) for it in several):
                several.append(one)
        notes = [f"{one.part.table} has only rows of which holds: {one.part.rows}" for one in several]
        return tuple(one.part for one in several), tuple(notes)

    def _joined(self, base: Part, candidates: Sequence[_Candidate]) -> tuple[Part, ...]:
        """Other new tables, for columns that the base doesn't give, or gives with loss."""
        [start] = [one for one in candidates if one.part is base]
        have = {name: len(one.notes) for name, one in base.given.items()}
        found: list[Part] = []
        for one in sorted(candidates, key=lambda it: (bool(it.part.rows), -len(it.part.given))):
            links = _links(one.piece, start.piece) if one is not start else None
            if links is None or one.part.table == base.table:
                continue
            more = {
                name: value
                for name, value in one.part.given.items()
                if name not in self._key and (name not in have or len(value.notes) < have[name])
            }
            if more:
                found.append(Part(one.part.table, one.piece.key, one.part.where, more, links, one.part.rows))
                if not one.part.rows:
                    have |= {name: len(value.notes) for name, value in more.items()}
        return tuple(found)

    def _reasons(self, name: str, mine: Sequence[Piece], candidates: Sequence[_Candidate]) -> tuple[str, ...]:
        found = [one.lost[name] for one in candidates if name in one.lost]
        if not found and name in {old for one in candidates for old in one.part.given}:
            found = ["only a part of the rows have it, or their new table can't be joined"]
        if not found and not mine:
            found = ["no new table has a row for each of its rows"]
        return tuple(dict.fromkeys(found or ["no new column comes from it"]))


def _worth(one: _Candidate) -> tuple[int, int]:
    return len(one.part.given), -sum(len(value.notes) for value in one.part.given.values())


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


def _telling(piece: Piece, other: Piece, side: Side) -> str | None:
    """A condition that holds of one piece's rows and of none of the other's; None if there is none."""
    both = [(name, one, other.columns[name]) for name, one in piece.columns.items() if name in other.columns]
    for name, expression, theirs in both:
        mine, others = literal(expression), literal(theirs)
        if mine in (None, "None") or others is None or others == mine:
            continue
        kind = _type(side.read, name) if name in side.read.names() else ""
        code = f"F.col({column_literal(name)})"
        if mine not in ("True", "False"):
            return f"{code} == {mine}"
        if kind != "boolean":
            code = f"flag({column_literal(name)})"
        return code if mine == "True" else f"~{code}"
    for name, expression, theirs in both:
        first, second = prefix(expression), prefix(theirs)
        if first and second and not first.startswith(second) and not second.startswith(first):
            return f"F.col({column_literal(name)}).startswith({text_literal(first)})"
    return None


def _apart(one: Sequence[Expression], other: Sequence[Expression]) -> bool:
    """Tells whether no row fulfils both sides' conditions, as far as that is plain."""
    return any(_contradict(a, b) or _contradict(b, a) for a in one for b in other)


def _contradict(a: Expression, b: Expression) -> bool:
    if a.kind == "Not" and a.children[0] == b:
        return True
    if a.kind == "IsNull" and (b == Expression("IsNotNull", a.children) or b in _strict(a.children[0], b)):
        return True
    same = a.kind == b.kind == "EqualTo" and a.children[0] == b.children[0]
    values = (literal(a.children[1]), literal(b.children[1])) if same else (None, None)
    return None not in values and values[0] != values[1]


def _strict(inner: Expression, condition: Expression) -> tuple[Expression, ...]:
    """The condition itself, if it can't hold where ``inner`` is NULL."""
    compares = condition.kind in (
        "EqualTo",
        "GreaterThan",
        "LessThan",
        "GreaterThanOrEqual",
        "LessThanOrEqual",
    )
    return (condition,) if compares and inner in condition.children else ()


def _links(piece: Piece, base: Piece) -> tuple[tuple[str, str], ...] | None:
    """The piece's key columns, each with a column of the base that is made alike; None unless all have one."""
    found = []
    for name in piece.key:
        expression = piece.columns[name]
        same = [other for other, theirs in base.columns.items() if theirs == expression]
        if literal(expression) is not None or not same:
            return None
        found.append((name, name if name in same else same[0]))
    return tuple(found)
