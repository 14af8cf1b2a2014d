"""Changes of columns that no joined target reads: the mirror's own row takes them, and nothing is traced."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from migrator.adapters.targets.shared.mirror import batch
from migrator.model.reach import Node, Reach
from migrator.ports.mirror import JoinedTarget, Mirror, MirrorRows
from tests.integration.targets.test_mirror import THING, Bench, joined_by, marking, schema_of, table, thing

pytestmark = pytest.mark.integration

WORD = schema_of("word", ("id",), id="int32", name="string", note="string")
USE = schema_of("use", ("id",), id="int32", word_name="string", times="int32", note="string")
READ = {"word": ("id", "name"), "use": ("id", "word_name", "times")}
JOINED = replace(
    joined_by(Reach(("id",), (Node("word", WORD), Node("use", USE, 0, ("word_name",), ("name",))))),
    columns=READ,
)
NOTED = joined_by(Reach(("note",), (Node("word", WORD),)))


@pytest.fixture(params=["pg", "maria", "mysql"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(request.getfixturevalue(f"new_{request.param}"), tmp_path)
    yield bench
    bench.target.close()


def filled(bench: Bench, *targets: JoinedTarget) -> None:
    bench.target.prepare_mirror([*targets])
    words = [(1, "a", "x"), (2, "b", None), (3, "c", "")]
    bench.apply(
        marking(*targets), bench.dumped(WORD, *words), bench.dumped(USE, (1, "a", 5, "n"), (2, "b", 6, "n"))
    )


def traced(bench: Bench, target: JoinedTarget, *rows: MirrorRows) -> tuple[bool, list[tuple[Any, Any]]]:
    """Whether the batch touches the target, and the sides of the grains that it touches, a pair for each slice."""

    def use(mirror: Mirror) -> tuple[bool, list[tuple[Any, Any]]]:
        touched = mirror.touches(target)
        sides = list(mirror.slices(target, 9)) if mirror.trace(target) else []
        return touched, [(_shown(side.before), _shown(side.after)) for side in sides]

    found: tuple[bool, list[tuple[Any, Any]]] = bench.apply(use, *rows)
    return found


def _shown(side: Any) -> dict[str, list[tuple[Any, ...]]]:
    return {name: sorted(tuple(row.values()) for row in rows.to_pylist()) for name, rows in side.items()}


def words(bench: Bench) -> list[tuple[Any, ...]]:
    def whole(mirror: Mirror) -> pa.Table:
        return pa.concat_tables(list(mirror.whole(WORD)))

    return sorted(tuple(row.values()) for row in bench.apply(whole).to_pylist())


def change(before: list[tuple[Any, ...]], after: list[tuple[Any, ...]]) -> MirrorRows:
    return MirrorRows(WORD, (), table(WORD, *before), table(WORD, *after))


@pytest.mark.parametrize("image", ["whole", "key alone"])
def test_only_the_mirrors_own_row_changes(bench: Bench, image: str) -> None:
    filled(bench, JOINED)
    was = (1, "a", "x") if image == "whole" else (1, None, None)
    assert traced(bench, JOINED, change([was], [(1, "a", "y")])) == (False, [])
    assert words(bench) == [(1, "a", "y"), (2, "b", None), (3, "c", "")]


@pytest.mark.parametrize("name", ["A", "a ", "", None])
def test_a_value_that_the_server_may_take_for_the_same_is_a_change(bench: Bench, name: str | None) -> None:
    filled(bench, JOINED)
    touched, sides = traced(bench, JOINED, change([(1, "a", "x")], [(1, name, "x")]))
    assert (touched, len(sides)) == (True, 1)
    assert (sides[0][0]["word"], sides[0][1]["word"]) == ([(1, "a", "x")], [(1, name, "x")])


def test_of_a_batch_only_the_rows_that_matter_are_traced(bench: Bench) -> None:
    """Row 1 changes what nothing reads, row 2 its name, row 3 goes, row 4 comes."""
    filled(bench, JOINED)
    rows = change(
        [(1, "a", "x"), (2, "b", None), (3, "c", "")], [(1, "a", "y"), (2, "a", None), (4, "d", "new")]
    )
    touched, [(before, after)] = traced(bench, JOINED, rows)
    assert touched
    assert before["word"] == [(2, "b", None), (3, "c", "")]
    assert after["word"] == [(2, "a", None), (4, "d", "new")]
    assert words(bench) == [(1, "a", "y"), (2, "a", None), (4, "d", "new")]


def test_a_row_that_goes_beside_one_that_changes_nothing_is_traced(bench: Bench) -> None:
    filled(bench, JOINED)
    rows = change([(1, "a", "x"), (3, "c", "")], [(1, "a", "y")])
    touched, [(before, after)] = traced(bench, JOINED, rows)
    assert touched
    assert (before["word"], after["word"]) == ([(3, "c", "")], [])
    assert words(bench) == [(1, "a", "y"), (2, "b", None)]


def test_each_target_is_touched_by_what_it_reads(bench: Bench) -> None:
    filled(bench, JOINED, NOTED)
    touched, sides = traced(bench, NOTED, change([(1, "a", "x")], [(1, "a", "y")]))
    assert (touched, len(sides)) == (True, 1)
    assert not traced(bench, JOINED, change([(1, "a", "y")], [(1, "a", "z")]))[0]
    assert traced(bench, JOINED, change([(1, "a", "z")], [(1, "b", "z")]))[0]


def test_a_row_that_is_linked_counts_and_its_unread_columns_do_not(bench: Bench) -> None:
    filled(bench, JOINED)
    for row, touched in (
        ((1, "a", 5, "other"), False),
        ((1, "a", 6, "other"), True),
        ((1, "b", 6, "other"), True),
    ):
        rows = MirrorRows(USE, (), table(USE, (1, None, None, None)), table(USE, row))
        assert traced(bench, JOINED, rows)[0] is touched


def test_where_a_computed_grain_may_read_them_all_columns_count(bench: Bench) -> None:
    computed = replace(
        joined_by(Reach((), (Node("word", WORD),), name="initial")), columns={"word": ("id", "name")}
    )
    filled(bench, computed, JOINED)
    rows = change([(1, "a", "x")], [(1, "a", "y")])
    assert bench.apply(lambda mirror: (mirror.touches(computed), mirror.touches(JOINED)), rows) == (
        True,
        False,
    )


def test_more_rows_than_are_compared_all_count(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(bench, JOINED)
    monkeypatch.setattr(batch, "_COMPARED_ROWS", 1)
    rows = change([(1, "a", "x"), (2, "b", None)], [(1, "a", "y"), (2, "b", "y")])
    touched, [(before, after)] = traced(bench, JOINED, rows)
    assert touched
    assert (len(before["word"]), len(after["word"])) == (2, 2)


def test_values_of_all_types_are_known_again(bench: Bench) -> None:
    """Else every change would count, and no test of results would show it."""
    least, most = Decimal("0.00000000000000000000000000000000001"), Decimal(2**64 - 1)
    row = thing("a", b"\x00", "A\x00", least, most, True, -128, -(2**15), -(2**31), -(2**63), -0.0, 5e-324,
        " \\ \U0001f600", bytes(range(256)), -719162, 1, -1)  # fmt: skip
    target = joined_by(Reach(("Code", "part"), (Node("thing", THING),)))
    bench.target.prepare_mirror([target])
    bench.apply(marking(target), bench.dumped(THING, row))
    again = MirrorRows(THING, (), table(THING, row), table(THING, row))
    assert not traced(bench, target, again)[0]
