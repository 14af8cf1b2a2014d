"""Negative controls of the whole judge: one that is broken on purpose must not pass what the real one finds.

``test_verify_controls.py`` does this to the comparison alone; here the sides are real servers and the answer is the
one that users get. Each broken judge replaces one step of ``verify.tables.rounds.live``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from migrator.errors import VerifyError
from tests.integration.verify.verify_project import ROWS, Project
from tests.servers import PostgresServer, fresh_database
from verify.tables.compare.compare import Comparison, Shape, Sides, compare
from verify.tables.compare.mapped_side import canonical_sides
from verify.tables.rounds import live

pytestmark = [pytest.mark.integration, pytest.mark.spark]

PLANTED = {
    ("different", "48"): "UPDATE item SET big = big + 1 WHERE item_id = 48",  # no double tells them apart
    ("missing", "51"): "DELETE FROM item WHERE item_id = 51",
    ("different", "52"): "UPDATE item SET note = 'another' WHERE item_id = 52",
    ("extra", "9999"): "INSERT INTO item (item_id) VALUES (9999)",  # what a lost delete leaves behind
}


@pytest.fixture(scope="module")
def project(
    postgres: PostgresServer,
    postgres_target: PostgresServer,
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Project]:
    """Both sides with the planted differences, nothing moving."""
    with fresh_database(postgres, "old") as old, fresh_database(postgres_target, "new") as new:
        made = Project(old, new, spark, tmp_path_factory.mktemp("judge"))
        made.load()
        new.execute(*PLANTED.values())
        made.ledger()
        yield made


def found_by(project: Project) -> set[tuple[str, str]]:
    """What the judge found, by status and key; also that it accounts for every key."""
    table = project.verify().tables[0]
    found = {(sample.status, str(sample.key[0][1])) for sample in table.samples}
    if table.counts.compared != ROWS + 6:  # 205 old rows, and the extra one
        found.add(("compared", str(table.counts.compared)))
    return found


Spoil = Callable[[Sides], Sides]


def compares_nothing(sides: Sides) -> Sides:
    return replace(sides, mapped=sides.mapped.limit(0), target=sides.target.limit(0))


def ignores_a_column(sides: Sides) -> Sides:
    def without(rows: DataFrame) -> DataFrame:
        return rows.withColumn("note", F.lit(""))

    return replace(sides, mapped=without(sides.mapped), target=without(sides.target))


def casts_to_double(sides: Sides) -> Sides:
    def lossy(rows: DataFrame) -> DataFrame:
        return rows.withColumn("big", F.col("big").cast("double").cast("string"))

    return replace(sides, mapped=lossy(sides.mapped), target=lossy(sides.target))


def drops_deletes(sides: Sides) -> Sides:
    """Looks only at keys that the source still has, so that a row which should be gone is never seen."""
    keys = list(sides.shape.key)
    return replace(sides, target=sides.target.join(sides.mapped.select(*keys), keys, "left_semi"))


def reads_one_side_twice(sides: Sides) -> Sides:
    return replace(sides, target=sides.mapped)


@pytest.mark.slow
def test_the_real_judge_finds_what_was_planted(project: Project) -> None:
    assert found_by(project) == set(PLANTED)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spoil", "misses"),
    [
        (ignores_a_column, {("different", "52")}),
        (casts_to_double, {("different", "48")}),
        (reads_one_side_twice, set(PLANTED)),
    ],
)
def test_a_broken_judge_misses_what_was_planted(
    project: Project, monkeypatch: pytest.MonkeyPatch, spoil: Spoil, misses: set[tuple[str, str]]
) -> None:
    broken(monkeypatch, spoil)
    assert set(PLANTED) - found_by(project) == misses


@pytest.mark.parametrize("spoil", [compares_nothing, drops_deletes])
def test_a_judge_that_loses_rows_gives_no_verdict(
    project: Project, monkeypatch: pytest.MonkeyPatch, spoil: Spoil
) -> None:
    """These two don't even come to an answer: the target's rows are counted where they are read."""
    broken(monkeypatch, spoil)
    with pytest.raises(VerifyError, match="the comparison lost rows"):
        project.verify()


@pytest.mark.slow
def test_the_count_of_rows_is_what_stops_them(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it, a judge that never looks at deleted rows would pass a lost delete."""

    def counted(
        mapped: DataFrame, target: DataFrame, shape: Shape, directory: Path, **options: Any
    ) -> Comparison:
        return replace(compare(mapped, target, shape, directory, **options), target_rows=ROWS + 5)

    broken(monkeypatch, drops_deletes)
    monkeypatch.setattr(live, "compare", counted)
    assert ("extra", "9999") not in found_by(project)


def broken(monkeypatch: pytest.MonkeyPatch, spoil: Spoil) -> None:
    def sides(*given: Any) -> tuple[Sides, Any]:
        made, filled = canonical_sides(*given)
        return spoil(made), filled

    monkeypatch.setattr(live, "canonical_sides", sides)
