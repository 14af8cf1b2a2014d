"""Digests of a large table in two lanes: each has sessions of its own on both servers, and a half of the keys.

A server computes a digest by one process, and a verification of an equal table waits for nothing else. What the lanes
find is put together as if one sweep had seen it: a key is in one lane only, on both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from threading import Lock
from typing import ParamSpec, TypeVar

from verify.chunk_keys import INTEGER, Key, KeyColumn, KeyRange, Piece
from verify.chunk_reader import ChunkedSource, ChunkedTarget, SourceChunks, TargetChunks
from verify.chunk_sweep import Sweep
from verify.pairing import Stopped

LANES = 2
"""At most, and unless less is asked for: a source that has no processor to spare is asked by one session."""
ROWS_MIN = 400_000
"""Of a table in two lanes; a smaller one is through before another pair of sessions has paid for itself."""
_P = ParamSpec("_P")
_T = TypeVar("_T")


@contextmanager
def another_pair(
    source: ChunkedSource, target: ChunkedTarget, tables: tuple[str, str]
) -> Iterator[tuple[SourceChunks, TargetChunks]]:
    """Sessions of another lane for a source table and a target table. Raises as their readers do."""
    with ExitStack() as stack:
        yield stack.enter_context(source.chunks(tables[0])), stack.enter_context(target.chunks(tables[1]))


def middle(source: SourceChunks, key: Sequence[KeyColumn], target: TargetChunks) -> Key | None:
    """Where the keys are cut in two; None for a table that stays in one lane."""
    if len(key) != 1 or key[0].kind != INTEGER or target.count(ROWS_MIN) < ROWS_MIN:
        return None
    ends = source.ends(key[0])
    if ends is None or not all(end.lstrip("-").isdigit() for end in ends):
        return None
    first, last = map(int, ends)
    return (str((first + last) // 2),) if first < last else None


def unequal(own: Sweep, other: Sweep, cut: Key) -> list[Piece]:
    """What the digests of two sweeps leave to be read; ``own`` has seen it all then.

    One lane's failure ends the other, which would go on for as long as the table takes.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="lane") as pool:
        above = pool.submit(other.unequal, KeyRange(after=cut))
        above.add_done_callback(lambda done: own.stop() if done.exception() else None)
        try:
            below = own.unequal(KeyRange(upto=cut))
        except Stopped:
            return above.result()  # which raises
        except BaseException:
            other.stop()
            raise
        left = [*below, *above.result()]
    own.take(other)
    return left


def one_at_a_time(lock: Lock, function: Callable[_P, _T]) -> Callable[_P, _T]:
    """A function that two lanes share."""

    def locked(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        with lock:
            return function(*args, **kwargs)

    return locked
