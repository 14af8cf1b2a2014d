"""Keys that a caller names are compared, as exactly as all would be, and no others."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from migrator.errors import VerifyError
from tests.integration.verify.chunks.chunk_project import PLAIN, TRANSFORMED, ChunkProject, found_by
from tests.integration.verify.grains.grain_project import GrainProject
from tests.servers import Database
from verify.readers.chunk_keys import Piece
from verify.tables.findings.differing import read_differing
from verify.tables.rounds import named_keys
from verify.tables.sweeps import chunk_sweep
from verify.verdict import Verdict

pytestmark = [pytest.mark.integration, pytest.mark.spark]

PLANTED = (
    "UPDATE item SET big = big + 1 WHERE item_id = 48",
    "DELETE FROM item WHERE item_id = 50",
    "INSERT INTO item (item_id) VALUES (500)",
    "UPDATE item SET big = big + 1 WHERE item_id = 60",
)
FOUND = {("different", "48"), ("missing", "50"), ("extra", "500")}
"""60 isn't among those that are named; 51, 70 and 999 are, and equal: 999 is on neither side."""
NAMED = (48, 50, 51, 70, 500, 999)


def item(*ids: int) -> dict[str, pa.Table]:
    return {"item": pa.table({"item_id": pa.array(ids, pa.int64())})}


@pytest.fixture
def project(old_pg: Database, new_pg: Database, spark: SparkSession, tmp_path: Path) -> ChunkProject:
    found = ChunkProject(old_pg, new_pg, spark, tmp_path)
    found.load()
    found.ledger()
    return found


@pytest.mark.parametrize(
    ("mapping", "rows"), [(PLAIN, 10), (TRANSFORMED, 10), (PLAIN, 0)], ids=["hashed", "rows", "whole"]
)
def test_named_keys_are_found_as_they_are(
    project: ChunkProject, mapping: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []
    read = chunk_sweep.Sweep._read

    def noted(self: chunk_sweep.Sweep, piece: Piece) -> object:
        reads.append("rows")
        return read(self, piece)

    monkeypatch.setattr(chunk_sweep.Sweep, "_read", noted)
    project.mapping.write_text(mapping)
    if mapping is TRANSFORMED:
        project.new.execute("UPDATE item SET big = big + 1")
    project.ledger()
    before = project.verify(chunk_rows=rows, only=item(51, 70))
    assert (before.verdict, before.tables[0].counts.compared) == (Verdict.EQUAL, 2), before.tables[0]
    if mapping is PLAIN and rows:
        assert reads == [], "both servers hash equal rows alike: none has to be read"
    project.new.execute(*PLANTED)
    after = project.verify(chunk_rows=rows, only=item(*NAMED))
    assert after.verdict is Verdict.DIFFERENT
    assert found_by(project) == FOUND
    counts = after.tables[0].counts
    assert (counts.compared, counts.equal, counts.set_aside) == (len(NAMED), 3, 0)
    # Nothing is waited for, and what differs is certain in one round: the ledger stands behind the log.
    project.old.execute("UPDATE thing SET big = big + 1 WHERE id = 70")
    still = project.verify(chunk_rows=rows, only=item(51, 70), at_rest=True, max_rounds=1)
    assert (still.verdict, found_by(project)) == (Verdict.DIFFERENT, {("different", "70")})


@pytest.mark.parametrize("rows", [20, pytest.param(1000, marks=pytest.mark.slow)])
def test_named_keys_of_rows_made_of_several_are_looked_at_by_what_they_are_made_of(
    old_pg: Database, new_pg: Database, spark: SparkSession, tmp_path: Path, rows: int
) -> None:
    project = GrainProject(old_pg, new_pg, spark, tmp_path)
    named = {
        "account": pa.table({"ref": ["c-30", "c-31", "c-60", "c-none"]}),
        "city_sales": pa.table({"city_id": pa.array([2, 3], pa.int32())}),
        "letter": pa.table({"letter": ["a", "z"]}),
    }
    assert project.verify(rows, list(named), only=named).verdict is Verdict.EQUAL
    project.new.execute(
        "UPDATE account SET paid = paid + 0.01 WHERE ref IN ('c-31', 'c-32')",
        "DELETE FROM account WHERE ref = 'c-60'",
        "UPDATE city_sales SET paid = paid + 0.01 WHERE city_id IN (3, 4)",
        "INSERT INTO letter VALUES ('z', 1)",
    )
    assert project.verify(rows, list(named), only=named).verdict is Verdict.DIFFERENT
    keys = read_differing(project.reports / "verify.json").keys
    assert {(one.table, one.status, one.key[0]) for one in keys} == {
        ("account", "different", "c-31"),
        ("account", "missing", "c-60"),
        ("city_sales", "different", "3"),
        ("letter", "extra", "z"),
    }


def test_more_keys_than_can_be_named_are_refused(
    project: ChunkProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(named_keys, "KEYS_MAX", 2)
    with pytest.raises(VerifyError, match="3 keys of item can't be compared by name"):
        project.verify(chunk_rows=10, only=item(1, 2, 3))
