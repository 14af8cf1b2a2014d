"""The search for the buckets that own a key (``verify.tables.sweeps.bucket_look``), with few calls of the mapping.

For Spark, to plan a call takes longer than to map the rows of a bucket. All rows that a key's row is made of are in
one bucket, its true owner, and other rows change nothing. So any set of buckets that includes it makes that row:

1. For each binary digit of the buckets' places, those that have it are mapped together. The keys whose rows
   they make have that digit in their owner's place.
2. The buckets found by these digits are mapped one by one, and own the keys whose rows they make.
3. All other buckets are mapped together. If they make a row, its true owner may be among them, and each is mapped
   by itself.

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
        keys: those whose owners are looked for; they may have further owners in other reaches.
        makes: returns those of these keys whose row some buckets make together.
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
    """The buckets at the places that the digits give: the first bucket for a key whose row no call made."""
    having = [
        makes([bucket for place, bucket in enumerate(buckets) if place >> digit & 1])
        for digit in range(digits)
    ]
    places = {
        sum(1 << digit for digit, mapped_keys in enumerate(having) if key in mapped_keys) for key in keys
    }
    return [buckets[place] for place in sorted(places) if place < len(buckets)]
