"""Expressions turned round: from the value of a new column back to the old columns that it is made of. Pure.

An expression is peeled from outside. Each step either has an exact inverse on what the expression can give, or loses
something: a few values (several of them become NULL, say), which is noted, or the value, which ends the peeling.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from transforms.analysis.expressions import Expression
from transforms.reverse import numbers as arithmetic
from transforms.reverse.cases import cases, compared, raises, test
from transforms.reverse.joined_texts import parted
from transforms.reverse.pieces import FAR, parts
from transforms.reverse.texts import is_number, literal, shown, simple, type_of
from transforms.reverse.values import OldColumn, Restored, Value

_ZONES = ("UTC", "Z", "GMT", "+00:00")
_TIMES = frozenset({"date", "timestamp_ntz", "timestamp"})
_EXACT: Mapping[str, frozenset[str]] = {
    "boolean": frozenset({"string"}),
    "date": frozenset({"string", "timestamp_ntz"}),
    "timestamp_ntz": frozenset({"string", "timestamp"}),
    "timestamp": frozenset({"timestamp_ntz"}),
    "float": frozenset({"double"}),
    "string": frozenset({"binary"}),
    **{kind: frozenset({"string", "double"}) for kind in ("tinyint", "smallint", "int")},
    "bigint": frozenset({"string"}),
}
"""Casts, beside those between exact numbers, that keep every value, so that the cast back is exact."""


class Lossy(Exception):
    """The reason why nothing can be turned round."""


class Inversion:
    """Turns expressions over one old table round.

    Args:
        columns: the old table's columns by place.
        label: what constants are called after, such as the new column.
    """

    def __init__(self, columns: Sequence[OldColumn], label: str):
        self._columns = columns
        self._names = tuple(one.name for one in columns)
        self._label = label
        self._rules: Mapping[str, Callable[[Expression, Value], list[Restored]]] = {
            "AttributeReference": self._attribute,
            "Typed": lambda one, value: self.peel(one.children[0], value.become(value.code, simple(one.type))),
            "Cast": self._cast,
            "ExactCast": self._cast,
            "CaseWhen": self._case,
            "If": self._case,
            "Coalesce": self._coalesce,
            "NullIf": self._null_if,
            "EqualTo": self._equal,
            "Not": self._not,
            "StringTrimRight": self._padding,
            "Concat": self._concat,
            "ConcatWs": self._concat,
            "MakeDate": self._make_date,
            "ToUTCTimestamp": self._instant,
            "Hex": lambda one, value: self.peel(one.children[0], value.become(f"F.unhex({value.code})", "binary")),
            "Lower": self._lower,
        }  # fmt: skip

    def peel(self, one: Expression, value: Value) -> list[Restored]:
        """The old columns that a value gives back; none of a constant. Raises ``Lossy``."""
        if one.kind == "Literal":
            return []
        if arithmetic.is_step(one):
            found = arithmetic.undone(one, value.code, value.blur, self._step)
            if isinstance(found, str):
                raise Lossy(found)
            inner, code, blur = found
            return self.peel(inner, replace(value, code=code, type="", blur=blur))
        rule = self._rules.get(one.kind)
        if rule is None:
            raise Lossy(f"{shown(one, self._names)} can't be turned round")
        return rule(one, value)

    def _step(self, one: Expression) -> object:
        """The step between two values of a column that holds exact numbers."""
        place = one.column if one.column is not None else FAR
        return arithmetic.step_of(self._columns[place].read) if place < FAR else None

    # -- ends -----------------------------------------------------------------------------------------------------

    def _attribute(self, one: Expression, value: Value) -> list[Restored]:
        place = one.column if one.column is not None else FAR
        if place >= FAR:
            raise Lossy("it comes from another old table")
        column = self._columns[place]
        code = value.code
        if value.blur.amount:
            code_or_none = arithmetic.sharpened(code, value.blur, column.read)
            if code_or_none is None:
                raise Lossy("rounding makes neighbouring values one")
            code = code_or_none
        kind = value.type or column.read
        code = _wanted(code, kind, column)
        return [Restored(place, code, value.notes, value.maps)]

    # -- casts ----------------------------------------------------------------------------------------------------

    def _cast(self, one: Expression, value: Value) -> list[Restored]:
        inner, kind = one.children[0], simple(one.type)
        found = type_of(inner)
        if self._is_time_in_text(inner, kind):
            return self.peel(inner, value.become(value.code, kind))
        if one.kind == "ExactCast" and is_number(found) and is_number(kind):
            return self.peel(inner, value.become(value.code, kind))
        if found == kind:
            return self.peel(inner, value)
        exact = kind in _EXACT.get(found, ()) or (found == "boolean" and is_number(kind))
        if is_number(found) and kind == "string" and found.startswith("decimal"):
            exact = True
        if one.kind == "ExactCast" and found and found != "string":
            exact = True
        if not exact:
            raise Lossy(f"{shown(one, self._names)} makes one value of several")
        if found == "boolean":
            code = f'({value.code} == "true")' if kind == "string" else f"({value.code} != 0)"
            return self.peel(inner, value.become(code, found))
        return self.peel(inner, value.become(f'{value.code}.cast("{found}")', found))

    def _is_time_in_text(self, inner: Expression, kind: str) -> bool:
        """Tells whether a text column of the old table is a date or time there, and travels as text."""
        if inner.kind != "AttributeReference" or kind not in _TIMES or (inner.column or 0) >= FAR:
            return False
        column = self._columns[inner.column or 0]
        return column.read == "string" and column.wanted in _TIMES

    def _instant(self, one: Expression, value: Value) -> list[Restored]:
        inner, zone = one.children
        if zone.kind != "Literal" or zone.value is None:
            raise Lossy("the time zone is another one in each row")
        if zone.value in _ZONES:
            return self.peel(inner, value)
        if not zone.value.startswith(("+", "-")):
            value = value.noted(
                f"times of the hour that {zone.value} skips or has twice may come back an hour off"
            )
        code = f'F.from_utc_timestamp({value.code}, "{zone.value}")'
        return self.peel(inner, value.become(code, "timestamp"))

    # -- cases ----------------------------------------------------------------------------------------------------

    def _case(self, one: Expression, value: Value) -> list[Restored]:
        pairs, rest = cases(one)
        if (
            rest is not None
            and rest.kind == "ToUTCTimestamp"
            and len(pairs) == 1
            and pairs[0][0].kind == "In"
        ):
            return self.peel(rest, value)  # columns.instant: infinities stay what they are
        kept = [(condition, result) for condition, result in pairs if not raises(result)]
        if rest is not None and raises(rest):
            rest, value = None, replace(value, checked=True)
        if len(kept) == 1 and rest is None and literal(kept[0][1]) is None:
            condition, result = kept[0]
            if not value.checked and not self._always(condition):
                value = value.noted(f"where {shown(condition, self._names)} doesn't hold, NULL comes back")
            return self.peel(result, value)
        return self._value_map(kept, rest, value, one)

    def _always(self, condition: Expression) -> bool:
        """Tells whether a condition is false of NULL alone."""
        inner = condition.children[0] if condition.children else condition
        return condition.kind == "IsNotNull" and inner.kind == "AttributeReference"

    def _value_map(
        self,
        pairs: Sequence[tuple[Expression, Expression]],
        rest: Expression | None,
        value: Value,
        one: Expression,
    ) -> list[Restored]:
        """Literals for literals: read from right to left."""
        tested: Expression | None = None
        entries: list[tuple[str, str]] = []
        for condition, result in pairs:
            subject, old = test(condition)
            new = literal(result)
            if subject is None or old is None or new is None or (tested is not None and subject != tested):
                raise Lossy(f"{shown(one, self._names)} can't be turned round")
            tested = subject
            entries.append((new, old))
        news = [new for new, _ in entries]
        if tested is None or len(set(news)) != len(news) or "None" in news:
            raise Lossy(f"{shown(one, self._names)} makes one value of several")
        value = self._rest(rest, tested, entries, value, one)
        return self.peel(tested, self._mapped(entries, value, type_of(tested)))

    def _rest(
        self,
        rest: Expression | None,
        tested: Expression,
        entries: list[tuple[str, str]],
        value: Value,
        one: Expression,
    ) -> Value:
        """The value with a note of, or a case for, all that no case names."""
        if rest is None or literal(rest) == "None":
            whole = type_of(tested) == "boolean" and {old for _, old in entries} == {"True", "False"}
            covered = value.checked or whole
            return value if covered else value.noted("values that the mapping doesn't name come back as NULL")
        other = literal(rest)
        if (
            other is None
            or other in [new for new, _ in entries]
            or type_of(tested) != "boolean"
            or len(entries) > 1
        ):
            raise Lossy(f"{shown(one, self._names)} makes one value of several")
        entries.append((other, "False" if entries[0][1] == "True" else "True"))
        nullable = any(self._nullable(part) for part in parts(tested))
        return value.noted(f"NULL comes back as {entries[-1][1]}") if nullable else value

    def _mapped(self, entries: Sequence[tuple[str, str]], value: Value, kind: str) -> Value:
        if len(entries) <= 2:
            (new, old), *more = entries
            code = f"F.when({compared(value.code, new)}, {old})"
            code += "".join(f".when({compared(value.code, new)}, {old})" for new, old in more)
            return value.become(code, kind)
        name = self._label.upper()
        maps = {**value.maps, name: tuple(entries)}
        return replace(value, code=f"mapped({value.code}, {name})", type=kind, maps=maps)

    def _coalesce(self, one: Expression, value: Value) -> list[Restored]:
        first, *others = one.children
        if len(others) != 1 or literal(others[0]) is None:
            raise Lossy(f"{shown(one, self._names)} takes the value from several places")
        if any(self._nullable(part) for part in parts(first)):
            value = value.noted(f"NULL comes back as {literal(others[0])}")
        return self.peel(first, value)

    def _null_if(self, one: Expression, value: Value) -> list[Restored]:
        first, other = one.children
        if literal(other) is None:
            raise Lossy(f"{shown(one, self._names)} can't be turned round")
        return self.peel(first, value.noted(f"{literal(other)} comes back as NULL"))

    def _equal(self, one: Expression, value: Value) -> list[Restored]:
        first, other = one.children
        number = literal(other)
        if number not in ("0", "1") or not is_number(type_of(first)):
            raise Lossy(f"{shown(one, self._names)} says of all other values only that they are others")
        if not value.checked:
            value = value.noted("numbers other than 0 and 1 come back as one of them")
        code = value.code if number == "1" else f"(~{value.code})"
        return self.peel(first, value.become(f'{code}.cast("int")', "int"))

    def _not(self, one: Expression, value: Value) -> list[Restored]:
        inner = one.children[0]
        if inner.kind == "EqualTo" and literal(inner.children[1]) == "0":
            code = value.code  # != 0 is what == 1 is, of flags
            flag = Expression("EqualTo", (inner.children[0], Expression("Literal", type="int", value="1")))
            return self.peel(flag, value.become(code, "boolean"))
        return self.peel(inner, value.become(f"(~{value.code})", "boolean"))

    # -- texts and dates ------------------------------------------------------------------------------------------

    def _padding(self, one: Expression, value: Value) -> list[Restored]:
        inner = one.children[0]
        if inner.kind == "AttributeReference" and (inner.column or 0) < FAR:
            column = self._columns[inner.column or 0]
            if column.padded and len(one.children) == 1:
                return self.peel(inner, value)
        raise Lossy(f"{shown(one, self._names)} makes one value of several")

    def _lower(self, one: Expression, value: Value) -> list[Restored]:
        inner = one.children[0]
        if inner.kind != "Hex":
            raise Lossy(f"{shown(one, self._names)} makes one value of several")
        return self.peel(inner, value)  # digits mean the same in either case

    def _concat(self, one: Expression, value: Value) -> list[Restored]:
        if any(self._nullable(part) for part in parts(one)):
            value = value.noted("where one of the parts is NULL, all come back as NULL")
            if one.kind == "ConcatWs":
                raise Lossy(f"{shown(one, self._names)} leaves out what is NULL")
        found = parted(one, value.code, type_of)
        if isinstance(found, str):
            raise Lossy(f"{shown(one, self._names)}: {found}")
        return [
            restored
            for part, code in found
            for restored in self.peel(part, value.become(code, type_of(part)))
        ]

    def _make_date(self, one: Expression, value: Value) -> list[Restored]:
        found = []
        for part, function in zip(one.children, ("year", "month", "dayofmonth"), strict=False):
            if any(self._nullable(inner) for inner in parts(one)):
                note = "where one of the parts is NULL, all come back as NULL"
                value = value if note in value.notes else value.noted(note)
            found += self.peel(part, value.become(f"F.{function}({value.code})", "int"))
        return found

    def _nullable(self, one: Expression) -> bool:
        if one.kind != "AttributeReference":
            return False
        place = one.column or 0
        return place >= len(self._columns) or self._columns[place].nullable


def _wanted(code: str, kind: str, column: OldColumn) -> str:
    """The code in the type that the old database takes, where the tool itself wouldn't convert it."""
    if kind == column.wanted or not kind:
        return code
    if is_number(kind) and (is_number(column.wanted) or column.wanted in ("float", "double")):
        return code
    if column.wanted == "boolean" and is_number(kind):
        return f"({code} != 0)"
    if kind == "boolean" and is_number(column.wanted):
        return f'{code}.cast("int")'
    if column.wanted == "string":
        return code
    if kind == "timestamp_ntz" and column.wanted == "timestamp":
        there_and_back = '.cast("timestamp_ntz")'
        return (
            code.removesuffix(there_and_back) if code.endswith(there_and_back) else f'instant({code}, "UTC")'
        )
    return f'{code}.cast("{column.wanted}")'
