"""A table of plain columns on two servers, verified piece by piece; the pipeline is played by hand."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

from pyspark.sql import SparkSession

from tests.integration.verify.verify_project import MIGRATION, Project
from tests.servers import Database
from verify.readers.postgres.source import PostgresSource
from verify.tables.findings.differing import read_differing
from verify.tables.result import VerifyResult
from verify.tables.sweeps.lanes import LANES

PLAIN = """
from pyspark.sql import DataFrame
from transforms import Mapping

mapping = Mapping()


@mapping.target("item", key="item_id")
def item(thing: DataFrame) -> DataFrame:
    return thing.drop("twice").withColumnRenamed("id", "item_id")
"""
TRANSFORMED = PLAIN.replace(
    'thing.drop("twice").withColumnRenamed("id", "item_id")',
    'thing.selectExpr("id AS item_id", "big + 1 AS big", "reverse(reverse(note)) AS note", "raw", "ratio", "at")',
)

COMPUTED = PLAIN.replace(
    'thing.drop("twice").withColumnRenamed("id", "item_id")',
    'thing.selectExpr("id AS item_id", "big + 1 AS big", "lower(note) AS note", "raw", "ratio",'
    '"CAST(seen AS timestamp) AS at")',
)


class ChunkProject(Project):
    """Both databases with ``thing`` and ``item``, 205 rows with keys 1 to 200 and 1001 to 1005."""

    def __init__(self, old: Database, new: Database, spark: SparkSession, directory: Path):
        super().__init__(old, new, spark, directory)
        self.mapping.write_text(PLAIN)
        self.lanes = LANES

    def chunks(
        self, rows: int = 10, rounds: int = 12, step: Callable[[str], None] = lambda _: None
    ) -> VerifyResult:
        """The judge's answer with so many source rows in a piece."""
        return self.verify(max_rounds=rounds, step=step, chunk_rows=rows, lanes=self.lanes)


def found_by(project: ChunkProject) -> set[tuple[str, str]]:
    """What the last report names as not equal, by status and key."""
    keys = read_differing(project.reports / "verify.json").keys
    return {(each.status, each.key[0]) for each in keys}


class HotWriter(threading.Thread):
    """Writes to the old database and brings each transaction over, with the ledger, as the pipeline claims to
    do."""

    def __init__(self, project: ChunkProject, keys: list[int]):
        super().__init__(daemon=True)
        self._project, self._keys = project, keys
        self._ended = threading.Event()
        self.commits = 0

    def __enter__(self) -> HotWriter:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join(60)
        assert not self.is_alive()

    def run(self) -> None:
        place = PostgresSource(self._project.settings(self._project.old), MIGRATION)
        with self._project.old.connect() as old, self._project.new.connect(autocommit=False) as new:
            for key in cycle(self._keys):
                if self._ended.is_set():
                    return
                text = f"hot {self.commits}"
                old.execute("UPDATE thing SET note = %s WHERE id = %s", (text, key))
                at = place.position()
                new.execute("UPDATE item SET note = %s WHERE item_id = %s", (text, key))
                new.execute("UPDATE migrator.ledger SET position_order = %s", (at.order,))
                new.commit()
                self.commits += 1
