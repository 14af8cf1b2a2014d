"""Keys that are decoded late are the keys that would have been remembered had they been decoded at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from migrator.columnar.text_codec import TextCodec, text_runs
from migrator.core.touched import TouchedKeys
from migrator.model.event import Key, Operation, RowChange, TransactionId
from migrator.model.table import Column, TableId, TableSchema
from scenarios.simulation.source import SeenSet

TABLES = (TableId("s", "a"), TableId("s", "b"))
CODECS = {
    table: TextCodec(TableSchema(table, (Column("k", "string", False, "text"),), ("k",))) for table in TABLES
}
MAX_KEYS = 4

KEYS = st.sampled_from("abcdef")


@st.composite
def changes(draw: st.DrawFn) -> RowChange:
    before, after = draw(st.one_of(st.none(), KEYS)), draw(KEYS)
    operation = Operation.INSERT if before is None else Operation.UPDATE
    return RowChange(
        draw(st.sampled_from(TABLES)), operation, None if before is None else (before,), (after,)
    )


NOTES = st.lists(st.tuples(st.integers(1, 3), st.lists(changes(), min_size=1, max_size=5)), max_size=8)


class Eager:
    """The rule: keys of each transaction and table; every key of its tables once there are too many."""

    def __init__(self) -> None:
        self.keys: dict[TransactionId, dict[TableId, set[Key]]] = {}

    def note(self, transaction: TransactionId, made: list[RowChange]) -> None:
        for change in made:
            found = self.keys.setdefault(transaction, {}).setdefault(change.table, set())
            found.update(image for image in (change.before, change.after) if image is not None)

    def too_many(self, transaction: TransactionId) -> bool:
        return sum(map(len, self.keys[transaction].values())) > MAX_KEYS

    def reread(self, table: TableId, seen: SeenSet) -> bool:
        return any(
            table in tables and self.too_many(transaction) and not seen.contains(transaction)
            for transaction, tables in self.keys.items()
        )

    def stale(self, table: TableId, seen: SeenSet) -> frozenset[Key]:
        missed = [tables for transaction, tables in self.keys.items() if not seen.contains(transaction)]
        return frozenset().union(*(tables.get(table, set()) for tables in missed))


@given(NOTES, st.lists(st.frozensets(st.integers(1, 3)), max_size=3), st.sampled_from([0, 3, 1 << 20]))
def test_late_decoding_changes_nothing(
    notes: list[tuple[int, list[RowChange]]], views: list[frozenset[int]], held_bytes: int
) -> None:
    touched, eager = TouchedKeys(MAX_KEYS, held_bytes=held_bytes), Eager()
    for number, made in notes:
        touched.note((number,), text_runs(CODECS, made))
        eager.note((number,), made)
        for view in views:
            seen = SeenSet(frozenset((each,) for each in view))
            for table in TABLES:
                assert touched.must_wait(table, seen) == eager.reread(table, seen)
                stale = touched.stale(table, seen)
                assert stale.reread == eager.reread(table, seen)
                assert stale.reread or stale.keys == eager.stale(table, seen)
    assert set(touched.unconfirmed()) == set(eager.keys)


def test_what_is_held_undecoded_is_bounded() -> None:
    made = [RowChange(TABLES[0], Operation.INSERT, None, (str(number),)) for number in range(100)]
    held, freed = TouchedKeys(held_bytes=10_000), TouchedKeys(held_bytes=50)
    for number, change in enumerate(made):
        for touched in (held, freed):
            touched.note((number,), text_runs(CODECS, [change]))
    assert held.pending_bytes() == sum(len(str(number)) for number in range(100))
    assert freed.pending_bytes() <= 50
    for touched in (held, freed):
        touched.confirm([SeenSet(frozenset((number,) for number in range(100)))])
        assert touched.pending_bytes() == 0
        assert touched.unconfirmed() == ()
