"""Grains on which a joined mapping fails, set aside while all others go on."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from migrator.errors import MappingError, TargetError
from migrator.run.apply.grains_aside import GrainsAside
from tests.integration.joined.failing_grains import WAYS, aside, changes, holds, make, wanted
from tests.integration.joined.joined_bench import JoinedBench
from tests.integration.run_project import Project

pytestmark = [pytest.mark.integration, pytest.mark.spark]
TABLES = ("basket", "line", "thing")


@pytest.fixture
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    old, new = (request.getfixturevalue(name) for name in request.param)
    return make(tmp_path, old, new)


@pytest.fixture
def started(project: Project, tmp_path: Path, spark: SparkSession) -> Iterator[Callable[..., JoinedBench]]:
    """Makes benches, and ends them."""
    benches: list[JoinedBench] = []

    def begin(**how: Any) -> JoinedBench:
        benches.append(JoinedBench(project, tmp_path, **how).begin())
        return benches[-1]

    yield begin
    for bench in benches:
        bench.close()


Start = Callable[..., JoinedBench]
BAD = (
    "UPDATE basket SET note = 'nokey' WHERE id = 2",
    "UPDATE basket SET note = 'twice' WHERE id = 3",
    "UPDATE basket SET note = 'raise' WHERE id = 4",
    "UPDATE line SET amount = 'none' WHERE basket_id = 5",
    "UPDATE line SET amount = '9999999999' WHERE basket_id = 8 AND no = 1",
    "UPDATE thing SET rate = '0' WHERE id = 1",
    "UPDATE thing SET name = 'mute' WHERE id = 2",
)


@pytest.mark.each_value
@pytest.mark.parametrize("project", WAYS, indirect=True, ids=str)
@pytest.mark.parametrize("slice_grains", [20_000, 3])
def test_grains_that_fail_go_aside_and_all_others_go_on(
    project: Project, started: Start, slice_grains: int
) -> None:
    project.old.execute(*BAD)
    bench = started(slice_grains=slice_grains)
    bench.dump(*TABLES)
    bench.fill()
    assert holds(project) == 7
    reasons = {(one.target, one.key[0]): one.reason for one in aside(project)}
    assert "NULL for id" in reasons["total", "2"]
    assert "two rows for key id=3" in reasons["total", "3"]
    assert "never this one" in reasons["worth", "4"]
    assert "'none'" in reasons["worth", "5"]
    row = next(one.row for one in aside(project) if (one.target, one.key) == ("worth", ("4",)))
    assert "basket: id=4, note='raise'" in row
    drawn = random.Random(slice_grains)
    for _ in range(3):
        project.old.execute(*changes(drawn))
        bench.follow()
        holds(project)
    project.old.execute("UPDATE thing SET rate = '5', name = 'ink'", "UPDATE basket SET note = 'good'")
    project.old.execute("UPDATE line SET amount = '7'")
    bench.follow()
    assert holds(project) == 0


@pytest.mark.parametrize("project", WAYS[:1], indirect=True, ids=str)
def test_a_target_that_has_rows_is_derived_anew_without_them(project: Project, started: Start) -> None:
    bench = started(only=("worth", "plain"))
    bench.dump(*TABLES)
    project.old.execute(*BAD[2:5])
    bench.follow()
    there = {one.key for one in aside(project)}
    assert there == {("4",), ("5",), ("8",)}
    bench.close()
    project.new.execute("UPDATE worth SET worth = 1 WHERE id = 6", "INSERT INTO worth VALUES (99, 1)")
    assert project.command("remap", "worth") == 0
    bench.begin(2)
    project.old.execute("UPDATE line SET amount = '2' WHERE basket_id = 5", BAD[5])
    bench.follow()
    rows = wanted(project)["worth"]
    good = [row for _, row in sorted(rows.items()) if row is not None]
    assert project.new.query("SELECT * FROM worth ORDER BY id") == good
    assert {one.key[0] for one in aside(project)} == {str(key) for key, row in rows.items() if row is None}


@pytest.mark.parametrize("project", WAYS[:1], indirect=True, ids=str)
def test_a_mapping_that_is_wrong_for_all_ends_the_run_by_the_bound(
    project: Project, started: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []
    failure = GrainsAside._failure

    def counted(self: GrainsAside, plan: Any, tables: Any, mirror: Any) -> str | None:
        tried.append(tables["basket"].num_rows)
        return failure(self, plan, tables, mirror)

    monkeypatch.setattr(GrainsAside, "_failure", counted)
    project.config.write_text(project.config.read_text() + "bad_rows_per_table = 2\n")
    project.old.execute("UPDATE basket SET note = 'raise'")
    bench = started(only=("worth", "plain"))
    bench.dump(*TABLES)
    with pytest.raises(MappingError, match="more grains than may be set aside: 2") as stopped:
        bench.fill()
    assert "bad_rows_per_table" in stopped.value.remedy
    assert "basket.id=" in stopped.value.where
    assert len(tried) <= 12
    assert aside(project) == []
    assert project.new.query("SELECT count(*) FROM worth") == [(0,)]


@pytest.mark.parametrize("project", WAYS[:1], indirect=True, ids=str)
def test_the_comparison_notices_a_grain_that_stays_behind(
    project: Project, started: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: what was set aside is taken for rows that are there before a batch."""
    bench = started(only=("worth", "plain"))
    bench.dump(*TABLES)
    project.old.execute(BAD[2])
    bench.follow()
    assert [one.key for one in aside(project)] == [("4",)]
    monkeypatch.setattr(GrainsAside, "tried", lambda self, target, mirror, sides: sides)
    project.old.execute("UPDATE basket SET note = 'good' WHERE id = 4")

    def followed() -> None:
        bench.follow()
        holds(project)

    with pytest.raises((AssertionError, MappingError, TargetError)):
        followed()
