"""Which keys a cut-over compares: those behind each table's last verdict, and none in silence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from migrator.errors import CutoverError, VerifyError
from migrator.model.cutover.record import Effort
from migrator.wiring import parts
from migrator.wiring.gates import judge
from migrator.wiring.gates.judge import ChangedRows
from verify.tables.compare.compare import Counts
from verify.tables.coverage import Coverage, TableCoverage, write_coverage
from verify.tables.rounds.named_keys import NamedKeys
from verify.tables.run import judged_by
from verify.verdict import Verdict

ALL, LIVE = Effort(5.0), Effort(5.0, at_rest=False, all_of_it=False)
TABLES = ("item", "label")


class Way:
    """A way: what its ledger, its list of keys and the judge say."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, reversed_: bool = False):
        self.folder, self.segment = folder, 50
        self.keys: dict[str, list[int] | None] = {}
        self.asked: list[tuple[int, str]] = []
        self.verdicts: dict[str, Verdict] = {}
        self.compared: list[list[str]] = []
        mapping = folder / "mapping.py"
        mapping.write_text("# mapping\n")
        self.judge = judged_by(mapping, frozenset())
        settings = SimpleNamespace(
            mapping=mapping,
            name="shop",
            reversed=reversed_,
            reports=lambda: folder,
            changed_keys=lambda: folder / "keys",
        )
        ledger = SimpleNamespace(epoch=3, checkpoint=SimpleNamespace(remaps=()))
        monkeypatch.setattr(judge, "peek", lambda _: SimpleNamespace(**vars(ledger), segment=self.segment))
        monkeypatch.setattr(parts, "mapping", lambda _: [SimpleNamespace(name=name) for name in TABLES])
        monkeypatch.setattr(judge, "sides", lambda _: ("old", "new"))
        monkeypatch.setattr(judge, "verify", self.verify)
        self.course: list[str] = []
        self.rows = ChangedRows(settings, lambda: self.course.append("spark"))  # type: ignore[arg-type, return-value]
        self.rows._keys = self

    def since(self, segment: int, table: str, epoch: int) -> pa.Table | None:
        assert epoch == 3
        self.asked.append((segment, table))
        found = self.keys.get(table, [])
        return None if found is None else pa.table({"id": pa.array(found, pa.int64())})

    def verify(self, *args: Any, named: NamedKeys, **_: Any) -> Any:
        self.compared.append(list(named.tables))
        self.course.append("the comparison's time begins")
        if "fails" in self.verdicts:
            raise VerifyError("no way", where="item", remedy="none")
        counts = Counts(compared=1, different=1)
        return SimpleNamespace(
            tables=tuple(
                SimpleNamespace(
                    target=name, verdict=self.verdicts.get(name, Verdict.EQUAL), counts=counts, reason=""
                )
                for name in named.tables
            )
        )

    def judged(self, verdicts: Sequence[tuple[str, str, int]], by: str | None = None) -> None:
        """Notes verdicts: table, verdict, segment."""
        tables = tuple(
            TableCoverage(name, verdict=verdict, at_us=1, segment=segment, judged_by=by or self.judge)
            for name, verdict, segment in verdicts
        )
        write_coverage(Coverage(tables), self.folder)


@pytest.fixture
def way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Way:
    return Way(tmp_path, monkeypatch)


EQUAL = [("item", "equal", 10), ("label", "equal", 20)]


def test_keys_behind_each_tables_own_verdict_are_compared(way: Way) -> None:
    way.judged(EQUAL)
    way.keys = {"item": [1, 2]}
    assert way.rows.compare(0, ALL) == 50
    assert way.asked == [(10, "item"), (20, "label")]
    assert way.compared == [["item"]], "a table without changes isn't read"


def test_what_was_found_equal_is_not_compared_again(way: Way) -> None:
    way.judged(EQUAL)
    way.keys = {"item": [1]}
    way.rows.compare(0, LIVE)
    way.segment = 60
    way.asked.clear()
    assert way.rows.compare(0, ALL) == 60
    assert way.asked == [(50, "item"), (50, "label")]


def test_rows_that_do_not_settle_stay_to_be_compared_and_count_where_all_must_be_equal(way: Way) -> None:
    way.judged(EQUAL)
    way.keys, way.verdicts = {"item": [1], "label": [1]}, {"item": Verdict.UNKNOWN}
    assert way.rows.compare(0, LIVE) == 0, "not everything is known to be equal"
    way.asked.clear()
    with pytest.raises(CutoverError, match="not all rows could be compared in time"):
        way.rows.compare(0, ALL)
    assert way.asked == [(10, "item"), (50, "label")]


@pytest.mark.parametrize("effort", [ALL, LIVE])
def test_rows_that_differ_are_named(way: Way, effort: Effort) -> None:
    way.judged(EQUAL)
    way.keys, way.verdicts = {"item": [1]}, {"item": Verdict.DIFFERENT}
    with pytest.raises(CutoverError, match="rows differ that changed since the last verdict") as error:
        way.rows.compare(0, effort)
    assert error.value.where == "item"


@pytest.mark.parametrize(
    "verdicts",
    [[], [("item", "equal", 10)], [("item", "equal", 10), ("label", "different", 20)]],
    ids=["none", "not of all tables", "different"],
)
def test_a_table_without_a_verdict_is_refused_by_name(way: Way, verdicts: list[tuple[str, str, int]]) -> None:
    way.judged(verdicts)
    with pytest.raises(CutoverError, match="not all of the new side's rows were found equal yet") as error:
        way.rows.compare(0, ALL)
    assert "label" in error.value.where


def test_a_verdict_by_another_mapping_does_not_count(way: Way) -> None:
    way.judged(EQUAL, by="another")
    with pytest.raises(CutoverError, match="were found equal yet"):
        way.rows.compare(0, ALL)


def test_a_gap_in_the_list_asks_for_a_verdict(way: Way) -> None:
    way.judged(EQUAL)
    way.keys = {"label": None}
    with pytest.raises(CutoverError, match="it isn't known which rows changed") as error:
        way.rows.compare(0, LIVE)
    assert (error.value.where, way.compared) == ("label", [])


def test_a_switch_before_is_a_verdict(way: Way) -> None:
    assert way.rows.compare(30, ALL) == 50
    assert way.asked == [(30, "item"), (30, "label")]


def test_the_way_back_needs_none_to_begin_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    way = Way(tmp_path, monkeypatch, reversed_=True)
    way.rows.compare(0, ALL)
    assert way.asked == [(0, "item"), (0, "label")]


def test_a_comparison_that_cannot_be_made_stops_the_switch(way: Way) -> None:
    way.judged(EQUAL)
    way.keys, way.verdicts = {"item": [1]}, {"fails": Verdict.UNKNOWN}
    with pytest.raises(CutoverError, match="can't be compared") as error:
        way.rows.compare(0, ALL)
    assert not error.value.retryable


def test_the_start_of_spark_is_none_of_a_comparisons_time(way: Way) -> None:
    """A leader that takes over in the middle of a switch is still starting it while rows are to be compared."""
    way.judged(EQUAL)
    way.keys = {"item": [1]}
    way.rows.compare(0, ALL)
    assert way.course == ["spark", "the comparison's time begins"]
    way.keys = {}
    way.rows.compare(0, ALL)
    assert way.course == ["spark", "the comparison's time begins"], "nothing is compared, so it isn't needed"
