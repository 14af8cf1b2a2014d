"""A row's 64-bit hash by PostgreSQL's own functions, in few calls: each takes a value, and what came before
as seed.

A hash function of PostgreSQL takes a value and a 64-bit seed, and stirs both. So columns form a chain of *steps*:
each is seeded with the step before. Whatever two rows differ in goes on to the end, and is stirred by it: a
sum over rows then sees values that move between columns and between rows.

- A *word* is a number that fits a seed and needs no hash of its own: it is XORed to the seed of a step. One word a
  step: two of them would be a sum that doesn't say which is which.
- Functions answer NULL with NULL, and one NULL would hide the whole row. A column that may be NULL is hashed
  *apart*, under a seed that stands for NULL too, and the chain begins with the XOR of those hashes. Hashes may be
  XORed; words and linear functions may not: PostgreSQL's hash of a numeric has its weight XORed to
  it, and that of a 0.0 is its seed.
- The source's catalogue says which columns are never NULL. A row that breaks this is hashed column by column.

Seeds of columns are far from one another (``_SEED_BITS``): no word makes one column's seed another's.

Values that a type's own hash doesn't tell apart, and the remedy:

- *bigint*: its halves are XORed (-1 is 4294967295). A word is taken whole; apart, the upper half is in the seed.
- *timestamp*: likewise, so its seconds, rounded, are in the seed. Of two times in one second, the upper halves are
  the same or neighbours, and if they are neighbours the lower ones are too far from one another to make up for it.
  They come as the length of a range, which is a subtraction without an interval. Infinity is a number there.
- *real, double precision*: 0.0 is -0.0. Zeros are hashed by their texts.
- *numeric*: no sign, no NaN. By its text, which is as cheap as to ask for the sign.
- *date*: its days are a number. As of a range again: a difference of dates refuses infinity.
- *timestamptz*: as the timestamp in UTC, from which it is an interval of nothing: no zone's name has to be read.
- *bytea, all others*: by the bytes they are sent as, or the text that their output function makes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_SEED_BITS = 48
"""The bits by which a column's place is shifted to make its seed. Values XORed to a seed (an upper half, seconds) are
shorter, and tables have at most 1,600 columns."""
_CALLS_MAX = 50
"""Columns of each sort in the chain; others are hashed one by one. Servers limit how deep calls may be nested."""
_TEXT = 'hashtextextended({0}::text COLLATE "C", {1})'
_FLOAT = "CASE WHEN {0} = 0 THEN " + _TEXT + " ELSE hash{2}extended({0}, {1}) END"
_DAYS = "daterange_subdiff({0}, '2000-01-01')"
_INT4S = {"int4": "{0}::int4", "date": _DAYS + "::int4"}
_WORDS = {"integer": "{0}::int8", "int4": "{0}::int8", "date": _DAYS + "::int8"}
_STEPS = {
    "numeric": _TEXT.replace("{0}", "trim_scale({0}::numeric)"),
    "text": _TEXT,
    "bpchar": _TEXT,
    "timestamp": "timestamp_hash_extended({0}, {1} # tsrange_subdiff({0}, '2000-01-01')::int8)",
    "timestamptz": "timestamp_hash_extended({0} AT TIME ZONE interval '0',"
    " {1} # tstzrange_subdiff({0}, '2000-01-01 00:00+00')::int8)",
    "uuid": "uuid_hash_extended({0}, {1})",
}
_AS_OUTPUT = "hashtextextended(CASE WHEN num_nulls({0}) = 0 THEN format('%s', {0}) END COLLATE \"C\", {1})"
_APART = {
    **{name: f"hashint4extended({number}, {{1}})" for name, number in _INT4S.items()},
    # Of constants: the planner computes both, a row only chooses.
    "bool": "CASE ({0}) WHEN true THEN hashint4extended(1, {1}) WHEN false THEN hashint4extended(0, {1}) END",
    "integer": "hashint8extended({0}::int8, {1} # ({0}::int8 >> 32))",
    "float8": _FLOAT.replace("{2}", "float8"),
    "float4": _FLOAT.replace("{2}", "float4"),
    "bytea": "hash_record_extended(ROW({0}), {1})",
}


# Floats have their seed twice: a chain of them would double with each. A record of NULL has one hash for any seed.
_ONLY_APART = ("bool", "float8", "float4", "bytea")
_FULL = ("timestamp", "timestamptz")  # a word is in its seed already
_STIR = "hashint4extended({0}, {1})"
_NOTHING = "0::int8"


@dataclass(frozen=True, slots=True)
class Hashed:
    """One column: its quoted name, the class of its values (``verify.tables.hashed_by_servers.digest``), and
    whether NULL may be in it."""

    name: str
    kind: str
    nullable: bool


def row_hash(columns: Sequence[Hashed]) -> str:
    """The expression: the same function of values for the same classes and nullability, so for both sides."""
    words = [c for c in columns if not c.nullable and c.kind in _WORDS][:_CALLS_MAX]
    steps = [c for c in columns if not c.nullable and c.kind not in _WORDS and c.kind not in _ONLY_APART]
    steps = steps[:_CALLS_MAX]
    chained = {c.name for c in (*words, *steps)}
    apart = [(c, place) for place, c in enumerate(columns, 1) if c.name not in chained]
    seed = " # ".join(_apart(c, place, c.nullable) for c, place in apart) or _NOTHING
    chain = _chain(seed, words, steps)
    if all(column.nullable for column in columns):
        return chain
    # Only computed for a row with NULL where the source's catalogue says that there is none.
    one_by_one = " # ".join(_apart(c, place, True) for place, c in enumerate(columns, 1))
    return f"coalesce({chain}, {_STIR.format(0, one_by_one)})"


def _chain(seed: str, words: Sequence[Hashed], steps: Sequence[Hashed]) -> str:
    """Steps around a seed, innermost first; each takes a word along, if it can and there is one left."""
    chain, left = (
        [(c.name, _STEPS.get(c.kind, _AS_OUTPUT), c.kind not in _FULL) for c in steps],
        list(words),
    )
    while len(left) > sum(takes for _, _, takes in chain):
        whole = next((c for c in left if c.kind in _INT4S), None)
        if whole is not None:
            left.remove(whole)
        chain.append((_INT4S[whole.kind].format(whole.name) if whole else "0", _STIR, True))
    for name, step, takes in chain or [("0", _STIR, True)]:
        if takes and left:
            word = left.pop(0)
            seed = f"{seed} # {_WORDS[word.kind].format(word.name)}"
        seed = step.format(name, seed)
    return seed


def _apart(column: Hashed, place: int, nullable: bool) -> str:
    """The column's hash under a seed of its own, which is NULL's too."""
    seed = f"{place << _SEED_BITS}"
    hash_ = _APART.get(column.kind, _STEPS.get(column.kind, _AS_OUTPUT)).format(column.name, seed)
    return f"coalesce({hash_}, {seed})" if nullable else hash_
