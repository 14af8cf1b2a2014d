"""Digests of a large table in lanes: each has sessions of its own on both servers, and takes piece after piece.

A server computes a digest by one process, and a verification of an equal table waits for nothing else. What
the lanes find is put together as if one sweep had seen it: a key is in one lane only, on both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import ParamSpec, TypeVar, cast

from migrator.model.table import TableSchema
from verify.readers.chunk_keys import INTEGER, KeyColumn, KeyRange, Piece, condition
from verify.readers.key_kinds import source_kind
from verify.readers.ports import ChunkedSource, ChunkedTarget, SourceChunks, TargetChunks
from verify.readers.snapshot import LedgerState, LogPlace
from verify.tables.sweeps.chunk_sweep import Sweep
from verify.tables.sweeps.cuts import Cuts
from verify.tables.sweeps.pairing import Stopped, Wait, Waited

LANES = 2
"""The default number of lanes. With one, a source without a processor to spare serves one session only."""
LANES_MAX = 16
ROWS_MIN = 200_000
"""The rows that a table must have for each of its lanes: with fewer, to open a lane's sessions costs more than it
saves."""
_PROBED_ROWS = 1_000
Pair = tuple[SourceChunks, TargetChunks]
_P = ParamSpec("_P")
_T = TypeVar("_T")


@contextmanager
def meanwhile(chunks: AbstractContextManager[TargetChunks]) -> Iterator[Callable[[], TargetChunks]]:
    """Sessions that are opened while the caller does something else, until it asks for them."""
    with ExitStack() as stack, ThreadPoolExecutor(1, thread_name_prefix="target") as pool:
        yield pool.submit(stack.enter_context, chunks).result


@dataclass(frozen=True, slots=True)
class Others:
    """Further lanes, which are being prepared.

    Attributes:
        wanted: waits for the number of lanes that pay. Until then the preparation uses the source's sessions.
        opened: functions that wait for the sessions of one lane each. They raise as the readers do.
    """

    wanted: Callable[[], int]
    opened: Sequence[Callable[[], Pair]]


@contextmanager
def prepared(
    sides: tuple[ChunkedSource, ChunkedTarget], kind: str, source: SourceChunks, target: str, most: int
) -> Iterator[Others]:
    """More lanes, prepared while the caller reads the mapping's plan: until then the servers have nothing to do.

    Args:
        sides: readers of both.
        kind: the source's engine.
        source: the source table in the first lane.
        target: the target table.
        most: other lanes than the first.
    """
    with ExitStack() as stack, ThreadPoolExecutor(1 + most, thread_name_prefix="prepare") as pool:
        wanted = pool.submit(others_that_pay, source, _own_key(kind, source.schema), most)

        def opened(place: int) -> Pair | None:
            if place >= wanted.result():
                return None
            return stack.enter_context(another_pair(*sides, (source.schema.id.name, target)))

        pairs = [pool.submit(opened, place) for place in range(most)]
        yield Others(wanted.result, [cast(Callable[[], Pair], pair.result) for pair in pairs])


def _own_key(kind: str, schema: TableSchema) -> list[KeyColumn]:
    """A table's key as its own server orders it."""
    columns = {column.name: column for column in schema.columns}
    return [KeyColumn(name, name, source_kind(kind, columns[name]) or "") for name in schema.key]


@contextmanager
def another_pair(source: ChunkedSource, target: ChunkedTarget, tables: tuple[str, str]) -> Iterator[Pair]:
    """Sessions of another lane for a source table and a target table. Raises as their readers do."""
    with meanwhile(target.chunks(tables[1])) as new, source.chunks(tables[0]) as old:
        yield old, new()


def others_that_pay(source: SourceChunks, key: Sequence[KeyColumn], most: int) -> int:
    """Returns the number of lanes that pay beside the first, ``most`` at most.

    The number of rows in either half of the keys is estimated from the distance between its first ones: to count
    them would take a tenth of the time of their digests. A wrong estimate costs time and nothing else.
    """
    if len(key) != 1 or key[0].kind != INTEGER:
        return 0
    ends = source.ends(key[0])
    if ends is None or not all(map(_is_whole, ends)):
        return 0
    first, last = map(int, ends)
    cut = (first + last) // 2
    halves = [_about(source, key[0], *half) for half in ((first - 1, cut), (cut, last))]
    return min(most, int(sum(halves) // ROWS_MIN) - 1) if min(halves) >= ROWS_MIN else 0


def _about(source: SourceChunks, key: KeyColumn, after: int, upto: int) -> float:
    """Estimates the number of rows with keys in (after, upto]."""
    rows = max(1, min(_PROBED_ROWS, ROWS_MIN))
    if upto - after < rows:
        return upto - after
    where = condition(KeyRange((str(after),), (str(upto),)), [key.source], [key.kind], source.dialect)
    end = source.end([key], where, rows)
    if end is None or not _is_whole(end[0]):
        return 0
    return rows * (upto - after) / (int(end[0]) - after)


def _is_whole(value: str) -> bool:
    return value.lstrip("-").isdigit()


def unequal(own: Sweep, others: Sequence[Callable[[], Sweep]]) -> list[Piece]:
    """Returns the pieces that the digests of several sweeps leave to be read. Afterwards ``own`` holds what all
    sweeps saw.

    One lane's failure ends the others, which would go on for as long as the table takes.

    Args:
        own: the sweep of the first lane.
        others: functions that make the sweeps of other lanes, whose sessions are being opened.
    """
    cuts = own.cuts()
    with ThreadPoolExecutor(len(others), thread_name_prefix="lane") as pool:
        running = [pool.submit(_beside, own, opened, cuts) for opened in others]
        for lane in running:
            lane.add_done_callback(lambda done: own.stop() if done.exception() else None)
        try:
            left = own.unequal(cuts)
        except Stopped:
            left = []  # whose failure it was, is raised below
        except BaseException:
            own.stop()
            raise
        failures = [failure for lane in running if (failure := lane.exception()) is not None]
        if failures:
            raise min(failures, key=lambda failure: isinstance(failure, Stopped))
    for sweep, pieces in (lane.result() for lane in running):
        own.take(sweep)
        left += pieces
    return left


def _beside(own: Sweep, opened: Callable[[], Sweep], cuts: Cuts) -> tuple[Sweep, list[Piece]]:
    other = opened()
    other.stop_with(own)
    return other, other.unequal(cuts)


def one_at_a_time(lock: Lock, function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Makes a function that lanes may share: they call it one at a time."""

    def locked(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        with lock:
            return function(*args, **kwargs)

    return locked


def waits_of_all(wait: Wait) -> Wait:
    """Makes a wait that lanes may share: one of them waits at a time, and for no place that the ledger has reached.

    Every later view of the target is beyond such a place.
    """
    reached: list[tuple[LogPlace, Waited]] = []

    def waited(upto: LogPlace, ledger: Callable[[], LedgerState | None]) -> Waited:
        for place, found in reached:
            if upto.order <= place.order:
                return found
        found = wait(upto, ledger)
        if found.reached:
            reached[:] = [(upto, found)]
        return found

    return one_at_a_time(Lock(), waited)
