"""A small migration for the judge's tests: awkward types on both sides, and a pipeline played by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from migrator.model.codecs.codec import checkpoint_to_json
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.table import TableId
from tests.integration.judged import settings_of
from tests.servers import Database
from verify.readers.postgres.source import PostgresSource
from verify.tables.result import VerifyResult
from verify.tables.rounds.live import Step
from verify.tables.rounds.named_keys import NamedKeys
from verify.tables.run import verify
from verify.tables.sweeps.lanes import LANES

MIGRATION = "judge"
ROWS = 200

OLD = """
CREATE TABLE thing (
  id bigint PRIMARY KEY, big bigint, exact numeric(38,6), wide numeric, ratio float8, small float4, note text,
  padded char(8), born date, seen timestamp, at timestamptz, flag bool, raw bytea, ref uuid, doc jsonb, tags text[],
  ip inet, every interval, hour time, twice int GENERATED ALWAYS AS (1) STORED)
"""
NEW = """
CREATE TABLE item (
  item_id bigint PRIMARY KEY, big bigint, exact numeric(38,6), wide numeric, ratio float8, small float4, note text,
  padded char(8), born date, seen timestamp, at timestamptz, flag bool, raw bytea, ref uuid, doc jsonb, tags text[],
  ip inet, every interval, hour time, filled_by_nobody int)
"""
COLUMNS = (
    "big, exact, wide, ratio, small, note, padded, born, seen, at, flag, raw, ref, doc, tags, ip, every, hour"
)
FILL = f"""
INSERT INTO thing (id, {COLUMNS})
SELECT g, 9007199254740992 + g, g + 0.123456, g * 1e20::numeric / 7, g / 3.0, g / 3.0, 'note ' || g, 'p' || g,
  date '2000-02-28' + g::int, timestamp '1999-12-31 23:59:59.999999' + g * interval '1 h',
  timestamptz '2021-03-28 00:30:00+00' + g * interval '1 h', g % 2 = 0, decode(lpad(to_hex(g), 8, '0'), 'hex'),
  gen_random_uuid(), jsonb_build_object('b', g, 'a', jsonb_build_array(g / 7.0, null, 'x"')),
  ARRAY['a', NULL, g::text],
  ('10.0.0.' || g % 250)::inet, g * interval '1 day 1 min', time '00:00' + g * interval '1 s'
FROM generate_series(1, {ROWS}) g
"""
AWKWARD = """
INSERT INTO thing (id, exact, wide, ratio, small, note, padded, born, seen, at, doc) VALUES
  (1001, 99999999999999999999999999999999.999999, 'NaN', 'NaN', 'NaN', '', '', 'infinity', 'infinity', 'infinity',
   '{}'),
  (1002, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (1003, 0, 0, '-0', '-0', ' Æther ', 'x', '-infinity', '-infinity', '-infinity', '[1.0, 1e2]'),
  (1004, -1, 1e-30, 5e-324, 1e-45, E'tab\\tline\\n', 'y', '4713-01-01 BC',
   '4713-01-01 00:00:00 BC', '0044-03-15 00:00:00+00 BC', '"s"'),
  (1005, 1, 1e40, 1.7976931348623157e308, 3.4028235e38, 'NULL', 'z', '9999-12-31',
   '294246-12-31 23:59:59.999999', '20000-01-01 00:00:00+00', 'null')
"""
MAPPING = """
from pyspark.sql import DataFrame, functions as F
from transforms import Mapping

mapping = Mapping()


@mapping.target("item", key="item_id")
def item(thing: DataFrame) -> DataFrame:
    return thing.drop("twice").withColumnRenamed("id", "item_id")
"""


class Project:
    """Both databases and the calls a test needs."""

    def __init__(self, old: Database, new: Database, spark: SparkSession, directory: Path):
        self.old, self.new, self._spark = old, new, spark
        self.mapping = directory / "mapping.py"
        self.mapping.write_text(MAPPING)
        self.reports = directory / "reports"
        self.migration = MIGRATION

    settings = staticmethod(settings_of)

    def load(self) -> None:
        """The old rows, and the new ones as a faultless pipeline would have made them."""
        self.old.execute(OLD, FILL, AWKWARD)
        self.new.execute(NEW)
        self.copy("true")
        self.prepare()

    def prepare(self) -> None:
        """The pipeline's slot and publication. Without them the server's own log records would be taken for
        work."""
        self.old.execute(
            "CREATE TABLE foreign_table (id int PRIMARY KEY)",
            "CREATE PUBLICATION migrator_judge FOR TABLE thing, foreign_table",
            "SELECT pg_create_logical_replication_slot('migrator_judge', 'pgoutput')",
        )

    def copy(self, condition: str) -> None:
        """Brings old rows over, by PostgreSQL's own text, replacing what is there."""
        names = f"item_id, {COLUMNS}"
        with self.old.connect() as old, self.new.connect(autocommit=False) as new:
            new.execute("CREATE TEMPORARY TABLE brought (LIKE item) ON COMMIT DROP")
            out_of = f"COPY (SELECT id::text, {_texts()} FROM thing WHERE {condition}) TO STDOUT"
            with (
                old.cursor().copy(out_of) as out,
                new.cursor().copy(f"COPY brought ({names}) FROM STDIN") as into,
            ):
                for data in out:
                    into.write(data)
            new.execute("DELETE FROM item WHERE item_id IN (SELECT item_id FROM brought)")
            new.execute(f"INSERT INTO item ({names}) SELECT {names} FROM brought")

    def ledger(self, order: int | None = None, done: bool = True, token: str = "") -> None:
        """The ledger as the pipeline would leave it: at the source's present end, the dump done."""
        if order is None:
            place = PostgresSource(self.settings(self.old), MIGRATION).position()
            order, token = place.order, f"{place.state}@1"
        checkpoint = Checkpoint(
            Position(order, token), dumps=(TableDump(TableId("public", "thing"), done=done),)
        )
        self.new.execute(
            "CREATE SCHEMA IF NOT EXISTS migrator",
            "CREATE TABLE IF NOT EXISTS migrator.ledger (migration text PRIMARY KEY, epoch bigint NOT NULL,"
            " segment bigint NOT NULL, position_order numeric(39,0), position_token text, checkpoint jsonb,"
            " updated_at timestamptz NOT NULL DEFAULT now())",
        )
        with self.new.connect() as connection:
            connection.execute(
                "INSERT INTO migrator.ledger VALUES (%s, 1, 1, %s, %s, %s) ON CONFLICT (migration) DO UPDATE SET"
                " position_order = excluded.position_order, position_token = excluded.position_token,"
                " checkpoint = excluded.checkpoint",
                (MIGRATION, order, token, json.dumps(checkpoint_to_json(checkpoint))),
            )

    def verify(
        self,
        *,
        wait_s: float = 20,
        max_rounds: int = 12,
        step: Step = lambda _: None,
        chunk_rows: int = 0,
        lanes: int = LANES,
        only: Mapping[str, pa.Table] | None = None,
        at_rest: bool = False,
    ) -> VerifyResult:
        """The judge's answer: by one snapshot of each side, or by pieces of so many rows; of some keys alone."""
        return verify(
            self.settings(self.old),
            self.settings(self.new),
            MIGRATION,
            self.mapping,
            None if only is None else list(only),
            lambda: self._spark,
            self.reports,
            wait_s=wait_s,
            max_rounds=max_rounds,
            chunk_rows=chunk_rows,
            lanes=lanes,
            step=step,
            named=None if only is None else NamedKeys(only, at_rest),
        )


def _texts() -> str:
    return ", ".join(f"{column}::text" for column in COLUMNS.split(", "))
