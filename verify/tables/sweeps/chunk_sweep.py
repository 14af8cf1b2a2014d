"""One table piece by piece: a source view, the wait for the ledger, a target view, for a few pieces at a time.

Each piece is judged by two views of its own, held no longer than that piece is read. Its source view contains
nothing beyond ``high``; its target view comes from a transaction whose ledger has passed ``high``.
``verify.tables.rounds.live`` needs no more of a round, so the rows of all pieces together are compared as if they
came from one snapshot: a key is in one piece only, on both sides.

1. Where both servers can, they compute a digest of each piece. Pieces whose digests agree are equal and done.
2. Others are cut into smaller pieces and hashed again: rows that were merely written in between agree by then.
3. Pieces that still don't agree are read in full on both sides, for the exact comparison.

``verify.tables.sweeps.pairing`` pairs views of the target with views of the source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from verify.readers.chunk_keys import Key, KeyRange, Piece, condition, cut
from verify.readers.ports import Bracket, Digest, SourceChunks, TargetChunks
from verify.tables.sweeps.chunk_choice import ChunkPlan
from verify.tables.sweeps.cuts import Cuts
from verify.tables.sweeps.pairing import Pairing, TimeIsUp, Views, Wait

CHUNK_ROWS = 50_000
_FIRST_ROWS = 4_000
"""Source rows in the first piece. Each later piece has twice as many, up to a whole one: the target has nothing to do
until the source has read the first."""
FINER = 16
"""The number of pieces into which one is cut whose digests don't agree."""


@dataclass(frozen=True, slots=True)
class _Half:
    """A piece as the source has it: its digest, or its number of rows in a file."""

    piece: Piece
    bracket: Bracket
    digest: Digest | None
    rows: int
    number: int


@dataclass(slots=True)
class Swept(Views):
    """The findings of a sweep.

    Attributes:
        agreed: rows of pieces whose digests agree.
        pieces: pieces judged by digest or rows at first.
        full: the pieces that were read in full.
        source_rows: rows of them in the source.
        target_rows: rows of them in the target.
        cut: whether the time was up before all pieces were read that were to be; ``full`` has those that were, the
            first of them in their order.
    """

    agreed: int = 0
    pieces: int = 0
    full: list[Piece] = field(default_factory=list)
    source_rows: int = 0
    target_rows: int = 0
    cut: bool = False


class Sweep(Pairing):
    """Sweeps over one table.

    Args:
        plan: the plan by which the table is verified.
        source: the old table.
        target: the new one.
        wait: waits until the ledger, as the target gives it, has passed a place in the log.
        step: see ``verify.tables.rounds.live.Step``; called once for several pieces.
        rows: source rows in a piece.
        directories: for the source's rows and for the target's; one Parquet file a piece.
    """

    def __init__(
        self,
        plan: ChunkPlan,
        source: SourceChunks,
        target: TargetChunks,
        wait: Wait,
        step: Callable[[str], None],
        rows: int,
        directories: tuple[Path, Path],
    ):
        self._seen = Swept()
        super().__init__(target.ledger, wait, step, self._seen)
        self._plan, self._source, self._target = plan, source, target
        most = plan.pushed.rows_max if plan.pushed is not None else None
        self._rows = rows if most is None else min(rows, most)
        self._directories = directories
        self._kinds = [column.kind for column in plan.key]
        self._files = 0

    def everything(self) -> Swept:
        """Reads all keys: by digests first, where the servers can compute them."""
        if self._plan.pushed is None:
            return self.rows_of(cut(lambda after: self._end(KeyRange(after), self._size())))
        return self.rows_of(self.unequal(self.cuts()))

    def cuts(self) -> Cuts:
        """Returns the pieces of all keys, for this sweep or for several to share."""
        return Cuts(self._kinds)

    def unequal(self, cuts: Cuts) -> list[Piece]:
        """Takes pieces until none is left, and returns small ones whose digests don't agree."""
        left = [half.piece for half in self._pass(self._digests(cuts), self._agrees)]
        self._seen.pieces = self._files
        finer = self._finer(left, max(1, self._rows // FINER))
        return [half.piece for half in self._pass(map(self._digest, finer), self._agrees)]

    def unequal_of(self, pieces: Iterable[Piece]) -> list[Piece]:
        """Returns those of some small pieces whose digests don't agree."""
        left = [half.piece for half in self._pass(map(self._digest, pieces), self._agrees)]
        self._seen.pieces = self._files
        return left

    def take(self, other: Sweep) -> None:
        """Takes over what another sweep over other keys of the table has seen."""
        own, seen = self._seen, other._seen
        own.merge(seen)
        own.agreed += seen.agreed
        own.pieces += seen.pieces

    def rows_of(self, pieces: Iterable[Piece]) -> Swept:
        """The rows of pieces, read in full; fewer when the time is up. Raises ``TimeIsUp`` if none was read."""
        for directory in self._directories:
            directory.mkdir()
        try:
            self._pass(map(self._read, pieces), self._read_target)
        except TimeIsUp:
            if not self._seen.full:
                raise
            self._seen.cut = True
            for path in self._directories[0].iterdir():  # read ahead: the target's side is lacking
                if not (self._directories[1] / path.name).exists():
                    path.unlink()
        self._seen.pieces = self._seen.pieces or len(self._seen.full)
        return self._seen

    def _digests(self, cuts: Cuts) -> Iterator[_Half]:
        while (piece := cuts.next(self._size(), self._end)) is not None:
            half = self._digest(piece)
            cuts.found(piece, half.rows)
            yield half

    def _digest(self, piece: Piece) -> _Half:
        assert self._plan.pushed is not None
        self._files += 1
        bracket, digest = self._source.digest(self._plan.pushed.source, self._condition(piece, source=True))
        self._smaller_unless_whole(digest)
        return _Half(piece, bracket, digest, digest.rows, self._files)

    def _size(self) -> int:
        """Rows of the next piece."""
        return min(self._rows, _FIRST_ROWS << min(self._files, 16))

    def _smaller_unless_whole(self, digest: Digest) -> None:
        """Makes later pieces smaller, where a server couldn't hash as many rows."""
        if digest.hashed < digest.rows:
            self._rows = max(1, self._rows // FINER)

    def _agrees(self, half: _Half) -> bool:
        assert self._plan.pushed is not None
        assert half.digest is not None
        if half.digest.hashed < half.digest.rows:
            return False  # whatever the target says
        where = self._condition(half.piece, source=False)
        ledger, digest = self._target.digest(self._plan.pushed.target, where)
        self._smaller_unless_whole(digest)
        self._view(ledger)
        agrees = half.digest.agrees(digest)
        self._seen.agreed += digest.rows if agrees else 0
        return agrees

    def _read(self, piece: Piece) -> _Half:
        self._files += 1
        path = self._directories[0] / f"{self._files}.parquet"
        bracket, rows = self._source.read(self._condition(piece, source=True), path)
        return _Half(piece, bracket, None, rows, self._files)

    def _read_target(self, half: _Half) -> bool:
        where = self._condition(half.piece, source=False)
        path = self._directories[1] / f"{half.number}.parquet"
        ledger, rows = self._target.read(where, path)
        self._view(ledger)
        seen = self._seen
        seen.full.append(half.piece)
        seen.source_rows, seen.target_rows = seen.source_rows + half.rows, seen.target_rows + rows
        return True  # the comparison of the rows decides

    def _finer(self, pieces: Iterable[Piece], rows: int) -> Iterator[Piece]:
        for piece in pieces:
            if isinstance(piece, KeyRange):
                yield from cut(self._ends_in(piece, rows), piece)
            else:
                yield piece

    def _ends_in(self, piece: KeyRange, rows: int) -> Callable[[Key | None], Key | None]:
        return lambda after: self._end(KeyRange(after, piece.upto), rows)

    def _end(self, within: KeyRange, rows: int) -> Key | None:
        return self._source.end(self._plan.key, self._condition(within, source=True), rows)

    def _condition(self, piece: Piece, source: bool) -> str:
        names = [column.source if source else column.target for column in self._plan.key]
        return condition(piece, names, self._kinds, (self._source if source else self._target).dialect)
