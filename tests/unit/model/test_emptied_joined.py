"""What the writer of a target sees of rows that are mapped inside of its transaction, and when it looks for rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from migrator.adapters.targets.shared.identities import Identities
from migrator.errors import TargetError
from migrator.model.progress import Filling, Mapped
from migrator.ports.target import TargetBatch, TargetRows
from tests.unit.model.carried import DUMPED, T, U, brought

SOME: Any = SimpleNamespace(num_rows=1)
LEDGER = replace(DUMPED, mapped=tuple(Mapped(name, "new", "", holds=name != "c") for name in "abcj"))


def batch(
    *rows: TargetRows, joined: Sequence[TargetRows] = (), moved: object = None, **more: Any
) -> TargetBatch:
    mirror: Any = () if moved is None else (SimpleNamespace(schema=SimpleNamespace(id=moved)),)
    return TargetBatch(1, LEDGER, rows, mirror, lambda _: iter(joined), **more)


def of_joined() -> Identities:
    """One joined target, which reads one table."""
    identities = Identities()
    table: Any = SimpleNamespace(table=brought("j").table, sources={"t": SimpleNamespace(id=T)})
    identities.joined([table])
    return identities


class Looks:
    """Which tables were asked about, a statement each; ``rows``: those that have some."""

    def __init__(self, rows: str) -> None:
        self.rows, self.asked = set(rows), list[list[str]]()

    def __call__(self, names: Sequence[str]) -> set[str]:
        self.asked.append(list(names))
        return self.rows & {*names}


def left(identities: Identities, whole: TargetBatch, rows: str, aside: tuple[str, ...] = ()) -> set[str]:
    """The targets that have rows by the ledger, once a batch is written."""
    identities.begun(whole, LEDGER, Looks("abcj"), "target")
    seen = identities.seen_passing(whole).joined
    assert seen is not None
    mirror: Any = None
    assert len(list(seen(mirror))) == len(list(whole.joined(mirror) if whole.joined else ()))
    return {one.target for one in identities.holding(whole, aside, Looks(rows)) or () if one.holds}


def taken(name: str) -> TargetRows:
    return replace(brought(name), before=SOME, after=None)


def test_rows_of_joined_targets_are_seen_as_they_pass() -> None:
    assert left(of_joined(), batch(joined=[taken("j")], moved=T), "ab") == {"a", "b"}
    assert left(of_joined(), batch(joined=[taken("j")], moved=T), "abj") == {"a", "b", "j"}
    assert left(of_joined(), batch(joined=[brought("j")], moved=T), "") == {"a", "b", "j"}


def test_a_later_part_may_take_the_rows_of_an_earlier_one() -> None:
    assert left(of_joined(), batch(joined=[brought("j"), taken("j")], moved=T), "") == {"a", "b"}
    assert left(of_joined(), batch(joined=[taken("j"), brought("j")], moved=T), "") == {"a", "b", "j"}


def test_what_passed_in_a_transaction_that_failed_counts_no_more() -> None:
    identities = of_joined()
    left(identities, batch(joined=[taken("j")], moved=T), "")
    assert left(identities, batch(moved=U), "") == {"a", "b", "j"}


def test_joined_rows_set_aside_as_a_whole_are_looked_for() -> None:
    assert left(of_joined(), batch(joined=[brought("j")], moved=T), "", ("j",)) == {"a", "b"}


@pytest.mark.parametrize(
    ("chunk", "before", "after", "leaves"),
    [
        (SOME, None, None, True),
        (SOME, SOME, None, False),
        (SOME, SOME, SOME, True),
        (None, SOME, None, False),
        (None, None, None, False),
    ],
)
def test_a_dump_row_that_the_same_batch_may_delete_leaves_nothing_for_sure(
    chunk: Any, before: Any, after: Any, leaves: bool
) -> None:
    rows = replace(brought("b"), chunk=chunk, before=before, after=after)
    assert rows.leaves_rows() is leaves
    assert ("b" in left(of_joined(), batch(rows), "a")) is leaves


def written(identities: Identities, *batches: TargetBatch) -> list[list[str]]:
    """What is asked before each of these, all of whose tables have rows."""
    looks = Looks("abcj")
    for one in batches:
        identities.begun(one, LEDGER, looks, "target")
        identities.wrote()
    return looks.asked


def batches() -> Iterator[TargetBatch]:
    yield batch(brought("a"), brought("c"), moved=U)
    yield batch(brought("b"), brought("a"), moved=T)
    yield batch(moved=T, echo=True)
    yield batch(brought("a"), moved=T)
    yield batch(moved=U)
    yield replace(batch(), checkpoint=replace(LEDGER, filling=(Filling("j"),)))


def test_each_batch_looks_at_what_it_may_write_in_one_statement() -> None:
    """Joined targets only where their tables are moved, and never before users' own changes that come back."""
    assert written(of_joined(), *batches()) == [["a"], ["a", "b", "j"], ["a", "j"], ["j"]]


def test_a_piece_before_a_leaders_first_batch_is_not_held_against_what_the_start_has_found() -> None:
    piece = replace(batch(), checkpoint=replace(LEDGER, filling=(Filling("j"),)))
    of_joined().begun(piece, LEDGER, Looks(""), "target")


def test_a_joined_target_that_is_emptied_is_named_before_a_row_is_written() -> None:
    identities = of_joined()
    with pytest.raises(TargetError, match="replaced while we run: j"):
        identities.begun(batch(moved=T), LEDGER, Looks("abc"), "target")
    identities.begun(batch(moved=T), LEDGER, Looks("j"), "target")
    identities.wrote()
    with pytest.raises(TargetError, match="replaced while we run: j"):
        identities.begun(batch(moved=T), LEDGER, Looks(""), "target")
