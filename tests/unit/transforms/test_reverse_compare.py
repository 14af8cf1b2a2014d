"""Old rows against those that came back: nothing that differs is told as equal, and no row is left out."""

from __future__ import annotations

import datetime as dt
import struct
from decimal import Decimal

import pyarrow as pa
import pytest

from migrator.model.table import TableId
from migrator.model.target import TargetColumn, TargetTable
from migrator.run.commands.carried_back import ROWS, Fate, table_back
from migrator.run.commands.round_trip import Trip
from transforms.reverse.compare import compared, shown_value


def rows(*pairs: tuple[object, object], kind: pa.DataType | None = None) -> pa.Table:
    keys, values = [key for key, _ in pairs], [value for _, value in pairs]
    return pa.table({"id": pa.array(keys), "c": pa.array(values, kind or pa.string())})


def lost(old: object, back: object, kind: pa.DataType) -> bool:
    found = compared(rows((1, old), kind=kind), rows((1, back), kind=kind), ["id"], ["c"])
    assert found.rows == 1
    return found.columns["c"].changed == 1


NAN, OTHER_NAN = (
    struct.unpack(">d", bytes.fromhex(text))[0] for text in ("7ff8000000000000", "7ff8000000000001")
)


@pytest.mark.parametrize(
    ("old", "back", "kind"),
    [
        ("", None, pa.string()),
        (None, "", pa.string()),
        ("NULL", None, pa.string()),
        ("a", "A", pa.string()),
        ("a", "a ", pa.string()),
        ("é", "e\u0301", pa.string()),
        (0.0, -0.0, pa.float64()),
        (NAN, OTHER_NAN, pa.float64()),
        (1.0, 1.0000000000000002, pa.float64()),
        (b"", None, pa.binary()),
        (b"a", b"a\x00", pa.binary()),
        (2**53, 2**53 + 1, pa.int64()),
        (Decimal("0.01"), Decimal("0.02"), pa.decimal128(38, 2)),
        (dt.datetime(2024, 1, 1, 0, 0, 0, 1), dt.datetime(2024, 1, 1), pa.timestamp("us")),
        (0, None, pa.int32()),
    ],
)
def test_what_differs_is_lost_and_what_is_the_same_is_not(
    old: object, back: object, kind: pa.DataType
) -> None:
    assert lost(old, back, kind)
    assert lost(back, old, kind)
    assert not lost(old, old, kind)
    assert not lost(back, back, kind)


def test_the_extremes_of_time_are_compared_as_the_numbers_they_are() -> None:
    kind = pa.timestamp("us", "UTC")
    endless = pa.array([2**63 - 1, -(2**63)], pa.int64()).cast(kind)
    table = pa.table({"id": [1, 2], "c": endless})
    other = pa.table({"id": [1, 2], "c": endless.take(pa.array([1, 0]))})
    assert compared(table, table, ["id"], []).rows == 2
    assert compared(table, other, ["c"], ["id"]).columns["id"].changed == 2


def test_rows_are_told_by_exact_keys() -> None:
    old = rows(("a", "1"), ("b", "2"), ("B", "3"))
    back = rows(("a", "1"), ("b", "2"), ("b", "2"), ("c", "4"))
    found = compared(old, back, ["id"], ["c"])
    assert found.rows == 2
    assert found.missing == ("id='B'",)
    assert found.extra == ("id='c'",)
    assert found.twice == ("id='b'",)


def test_of_a_sample_other_old_rows_are_no_extra_ones() -> None:
    found = compared(rows((1, "a")), rows((1, "a"), (2, "b"), (3, "c")), ["id"], ["c"], rows((2, "x")))
    assert found.extra == ("id=3",)
    assert found.columns["c"].changed == 0


def test_examples_are_of_different_values_and_few() -> None:
    old = rows(*((number, "x" if number < 5 else f"v{number}") for number in range(10)))
    back = rows(*((number, None) for number in range(10)))
    cells = compared(old, back, ["id"], ["c"]).columns["c"]
    assert cells.changed == 10
    assert [one.old for one in cells.examples] == ["'x'", "'v5'", "'v6'"]
    assert [one.key for one in cells.examples] == ["id=0", "id=5", "id=6"]
    assert len(shown_value("x" * 1000)) == 60


def column(name: str, nullable: bool = True, default: bool = False, generated: bool = False) -> TargetColumn:
    return TargetColumn(name, "string", "text", nullable, default, generated)


TABLE = TargetTable(
    TableId("s", "t"),
    (
        column("id", nullable=False),
        column("c"),
        column("note", default=True),
        column("empty"),
        column("must", nullable=False),
        column("made", generated=True),
    ),
    ("id",),
)


def test_every_column_has_a_verdict() -> None:
    found = compared(rows((1, "a"), (2, "b")), rows((1, "a"), (2, None)), ["id"], ["id", "c"])
    back = table_back(Trip("t", found, whole=True), TABLE, {"id", "c"}, {"note": "'x'"}, ())
    assert {one.name: (one.fate, one.refused()) for one in back.columns} == {
        "id": (Fate.EXACT, False),
        "c": (Fate.LOSSY, True),
        "note": (Fate.NOT_CARRIED, False),
        "empty": (Fate.NOT_CARRIED, False),
        "must": (Fate.NOT_CARRIED, True),
    }
    texts = {one.name: one.text for one in back.columns}
    assert texts["c"] == "1 of 2 values come back otherwise: 'b' came back as NULL (id=2)"
    assert texts["note"] == "old rows keep their value, new ones get 'x'"
    assert texts["empty"] == "old rows keep their value, new ones get NULL"
    accepted = table_back(Trip("t", found), TABLE, {"id", "c"}, {}, ("t.c", "u.id"))
    assert not next(one for one in accepted.columns if one.name == "c").refused()
    other = table_back(Trip("t", found), TABLE, {"id", "c"}, {}, ("t.id", "u.c"))
    assert next(one for one in other.columns if one.name == "c").refused()


def test_rows_that_dont_come_back_are_refused_unless_they_are_accepted() -> None:
    found = compared(rows((1, "a"), (2, "b")), rows((1, "a")), ["id"], ["c"])
    trip = Trip("t", found)
    assert not trip.is_exact()
    for accepted, refused in (((), True), (("t.c",), True), (("t.*",), False)):
        [one] = [one for one in table_back(trip, TABLE, {"c"}, {}, accepted).columns if one.name == ROWS]
        assert (one.fate, one.refused()) == (Fate.LOSSY, refused)
        assert one.text == "1 row(s) don't come back: id=2"


def test_nothing_compared_is_unknown_and_never_exact() -> None:
    for trip in (
        Trip("t", untried="it has no rows"),
        Trip("t", compared(rows((1, "a")), rows((2, "b")), ["id"], ["c"])),
    ):
        assert not trip.is_exact()
        fates = {one.name: one.fate for one in table_back(trip, TABLE, {"c"}, {}, ()).columns}
        assert fates["c"] is Fate.UNKNOWN
