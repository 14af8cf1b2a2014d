"""The search for the buckets that own a key (``verify.tables.sweeps.bucket_look``), with few calls of the mapping.

To plan a call takes Spark longer than a bucket's rows do. All rows that a key's row is made of are in one
bucket, its true owner, and other rows change nothing, so any buckets together that have it among them make
that row:

1. For each binary digit of the buckets' places, those that have it are mapped together: what they make tells the
   digit of the owner's place.
2. The buckets that are named so are mapped by themselves, and own what they make.
3. All others are mapped together. If they make a row, its true owner may be among them, and each is mapped by
itself.

A bucket that makes a row without being its true owner may mislead the first step, never the others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

K = TypeVar("K")
B = TypeVar("B")


def owners(
    buckets: Sequence[B], keys: Collection[K], makes: Callable[[Sequence[B]], Collection[K]]
) -> dict[K, list[B]]:
    """Finds, by key, the buckets that make its row by themselves: the true owner, if there is one, and maybe others.

    Args:
        buckets: of one reach.
        keys: those whose owners are looked for; they may have some elsewhere.
        makes: of which of these keys some buckets together make the row.
    """
    found: dict[K, list[B]] = {}
    digits = (len(buckets) - 1).bit_length()
    if digits + min(len(keys), len(buckets)) + 1 >= len(buckets):
        _alone(buckets, makes, found)
        return found
    named = _named(buckets, digits, keys, makes)
    _alone(named, makes, found)
    others = [bucket for bucket in buckets if bucket not in named]
    if makes(others):
        _alone(others, makes, found)
    return found


def _alone(
    buckets: Sequence[B], makes: Callable[[Sequence[B]], Collection[K]], found: dict[K, list[B]]
) -> None:
    for bucket in buckets:
        for key in makes([bucket]):
            found.setdefault(key, []).append(bucket)


def _named(
    buckets: Sequence[B], digits: int, keys: Collection[K], makes: Callable[[Sequence[B]], Collection[K]]
) -> list[B]:
    """The buckets at the places that the digits tell; of a key that none of them makes, the first one."""
    having = [
        makes([bucket for place, bucket in enumerate(buckets) if place >> digit & 1])
        for digit in range(digits)
    ]
    places = {
        sum(1 << digit for digit, mapped_keys in enumerate(having) if key in mapped_keys) for key in keys
    }
    return [buckets[place] for place in sorted(places) if place < len(buckets)]
