"""The judge under live writes: lag is never a difference, a real difference is found, doubt is said to be doubt.

The pipeline is played by hand at the judge's named points, so every interleaving is placed, not hoped for.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from tests.integration.verify.verify_project import ROWS, Project
from tests.servers import Database
from verify.tables.rounds import progress as rounds
from verify.verdict import Verdict

pytestmark = [pytest.mark.integration, pytest.mark.spark]

ALL = ROWS + 5


@pytest.fixture
def project(old_pg: Database, new_pg: Database, spark: SparkSession, tmp_path: Path) -> Project:
    made = Project(old_pg, new_pg, spark, tmp_path)
    made.load()
    made.ledger()
    return made


class Pipeline:
    """Plays writers and pipeline at the judge's steps. ``acts[n]`` runs in round n + 1, the last one in all
    later."""

    def __init__(self, project: Project, *acts: Callable[[], None]):
        self.project, self.acts, self.rounds = project, acts, 0

    def __call__(self, name: str) -> None:
        if name == "source view":
            self.acts[min(self.rounds, len(self.acts) - 1)]()
            self.project.ledger()
            self.rounds += 1


def write(project: Project, row: int, value: str, applied: bool = True) -> None:
    project.old.execute(f"UPDATE thing SET note = '{value}' WHERE id = {row}")
    if applied:
        project.copy(f"id = {row}")


def test_a_row_written_between_the_two_reads_is_not_a_difference(project: Project) -> None:
    def act() -> None:
        write(project, 1, "newer than the source read")
        project.old.execute("DELETE FROM thing WHERE id = 2", "INSERT INTO thing (id) VALUES (7000)")
        project.new.execute("DELETE FROM item WHERE item_id = 2")
        project.copy("id = 7000")

    result = project.verify(step=Pipeline(project, act, lambda: None))
    counts = result.tables[0].counts
    assert (result.verdict, len(result.rounds)) == (Verdict.EQUAL, 2)
    assert (counts.set_aside, counts.equal) == (0, ALL + 1)  # 200 + 5, one of them gone since, one new


@pytest.mark.slow
def test_a_difference_is_settled_while_other_rows_keep_changing(project: Project) -> None:
    steady = rounds.STEADY_ROUNDS  # and no round more
    project.new.execute(
        "UPDATE item SET big = big + 1 WHERE item_id = 50", "DELETE FROM item WHERE item_id = 51"
    )
    ticks = iter(range(100))
    hot = Pipeline(project, lambda: write(project, 1, f"hot {next(ticks)}"))
    result = project.verify(max_rounds=steady, step=hot)
    counts = result.tables[0].counts
    assert (result.verdict, len(result.rounds)) == (Verdict.DIFFERENT, steady)
    assert (counts.different, counts.missing, counts.set_aside) == (1, 1, 1)  # the hot row never settles
    assert not any(done.still for done in result.rounds)


@pytest.mark.slow
def test_an_earlier_witness_does_not_excuse_a_lost_update(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The target shows what the source had in round 1, although it has passed the update: that is a lost update."""
    monkeypatch.setattr(rounds, "STEADY_ROUNDS", 3)  # nothing is flipped to and fro here
    first = project.old.query("SELECT note FROM thing WHERE id = 5")[0][0]
    ticks = iter(range(100))

    def lose_an_update() -> None:
        write(project, 5, "updated", applied=False)
        project.new.execute("UPDATE item SET note = 'on its way' WHERE item_id = 5")

    def stale() -> None:
        project.new.execute(f"UPDATE item SET note = '{first}' WHERE item_id = 5")
        write(project, 1, f"keeps the ledger moving {next(ticks)}")

    result = project.verify(step=Pipeline(project, lose_an_update, stale))
    assert result.verdict is Verdict.DIFFERENT
    (sample,) = [s for s in result.tables[0].samples if s.status == "different"]
    assert [(c.mapped, c.target) for c in sample.cells if c.differs] == [("updated", first)]


FLIPPED = 60


class Flips:
    """Rows that writers flip between two states at random, before each view of either side; none is ever wrong."""

    def __init__(self, project: Project):
        self.project, self.random = project, Random(1)

    def __call__(self, _: str) -> None:
        rows = ", ".join(str(row) for row in range(1, FLIPPED + 1) if self.random.random() < 0.5)
        self.project.old.execute(f"UPDATE thing SET flag = NOT flag WHERE id IN ({rows})")
        self.project.copy(f"id <= {FLIPPED}")
        self.project.ledger()


@pytest.mark.slow
def test_rows_that_flip_to_and_fro_are_no_alarm(project: Project) -> None:
    counts = project.verify(max_rounds=14, step=Flips(project)).tables[0].counts
    assert (counts.different, counts.equal + counts.set_aside) == (0, ALL)
    assert counts.equal > ALL - FLIPPED


@pytest.mark.slow
def test_a_judge_that_is_content_with_three_rounds_takes_flips_for_differences(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "STEADY_ROUNDS", 3)
    assert project.verify(max_rounds=4, step=Flips(project)).tables[0].counts.different > 0


@pytest.mark.slow
def test_only_hot_rows_left_is_unknown(project: Project) -> None:
    ticks = iter(range(100))
    result = project.verify(max_rounds=3, step=Pipeline(project, lambda: write(project, 1, f"{next(ticks)}")))
    table = result.tables[0]
    assert (result.verdict, table.counts.set_aside, len(result.rounds)) == (Verdict.UNKNOWN, 1, 3)
    assert "did not settle" in table.reason
    assert table.samples[0].status == "set aside"


@pytest.mark.slow
def test_a_stopped_pipeline_with_nothing_to_do_is_no_excuse(project: Project) -> None:
    project.new.execute("UPDATE item SET big = big + 1 WHERE item_id = 50")
    project.old.execute("INSERT INTO foreign_table VALUES (1)", "CREATE TABLE unrelated (id int)")
    result = project.verify()
    assert (result.verdict, result.tables[0].counts.different, len(result.rounds)) == (
        Verdict.DIFFERENT,
        1,
        1,
    )
    assert "no change of these tables" in result.rounds[0].detail


def test_a_stopped_pipeline_with_changes_to_apply_is_unknown(project: Project) -> None:
    project.old.execute("UPDATE thing SET note = 'not applied yet' WHERE id = 50")
    result = project.verify(wait_s=600)
    table = result.tables[0]
    assert (result.verdict, table.counts.set_aside, table.counts.equal) == (Verdict.UNKNOWN, 1, ALL - 1)
    assert "public.thing" in table.reason
    assert "migrator run" in result.remedy


def test_an_event_log_ahead_of_the_ledger_is_unknown(project: Project) -> None:
    """The slot was acknowledged for what the event log holds: the source alone can't say that nothing waits."""
    project.old.execute("UPDATE thing SET note = 'in the event log only' WHERE id = 50")
    project.old.query(
        "SELECT count(*) FROM pg_logical_slot_get_binary_changes('migrator_judge', NULL, NULL,"
        " 'proto_version', '1', 'publication_names', 'migrator_judge')"
    )
    result = project.verify(wait_s=600)
    assert result.verdict is Verdict.UNKNOWN
    assert "event log" in result.tables[0].reason
