"""`migrator verify` on real PostgreSQL clusters: every planted difference is found and named, nothing else is."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.verify.verify_project import ROWS, Project
from tests.servers import Database
from verify.tables.result import Sample, VerifyResult
from verify.verdict import Verdict

pytestmark = [pytest.mark.integration, pytest.mark.spark]

ALL = ROWS + 5


@pytest.fixture
def project(old_pg: Database, new_pg: Database, spark: SparkSession, tmp_path: Path) -> Project:
    made = Project(old_pg, new_pg, spark, tmp_path)
    made.load()
    made.ledger()
    return made


def cells(sample: Sample) -> dict[str, tuple[str | None, str | None]]:
    return {cell.column: (cell.mapped, cell.target) for cell in sample.cells if cell.differs}


def only_sample(result: VerifyResult) -> Sample:
    (sample,) = result.tables[0].samples
    return sample


def test_equal_tables_are_equal_down_to_the_awkward_values(project: Project) -> None:
    result = project.verify()
    table = result.tables[0]
    assert (result.verdict, table.samples, table.columns) == (Verdict.EQUAL, (), ())
    assert (table.counts.compared, table.counts.equal) == (ALL, ALL)
    assert table.uncompared_columns == ("filled_by_nobody",)
    assert len(result.rounds) == 1
    assert "EQUAL" in (project.reports / "verify.txt").read_text()


CORRUPTIONS = [  # column, new value, row, likely cause
    ("big", "big + 1", 1, "off by one"),
    ("exact", "exact - 0.000001", 1001, "one unit in the last place"),
    ("wide", "'1e-29'", 1004, "another value"),
    ("ratio", "0", 1003, "sign of zero"),
    ("ratio", "ratio + 1e-14", 10, "another value"),
    ("wide", "NULL", 11, "NULL in the target"),
    ("small", "3.4028233e38", 1005, "another value"),
    ("note", "''", 1002, "empty text against NULL in the mapped row"),
    ("note", "note || ' '", 12, "whitespace at an end"),
    ("note", "upper(note)", 13, "upper and lower case"),
    ("padded", "'q'", 14, "another value"),
    ("born", "born - 1", 15, "one day"),
    ("seen", "seen + interval '1 us'", 16, "one microsecond"),
    ("at", "at + interval '1 us'", 17, "one microsecond"),
    ("at", "at + interval '2 h'", 18, "2 h apart: a time zone"),
    ("flag", "NOT flag", 19, "another value"),
    ("raw", "raw || '\\x00'::bytea", 20, "zero bytes at the end"),
    ("ref", "gen_random_uuid()", 21, "another value"),
    ("doc", "jsonb_set(doc, '{b}', '22.000000000000000000000000000000001')", 22, "another value"),
    ("tags", "ARRAY['a', 'NULL', '23']", 23, "another value"),
    ("every", "every + interval '1 us'", 24, "another value"),
    ("ip", "set_masklen(ip, 24)", 25, "another value"),
    ("hour", "hour + interval '1 us'", 26, "another value"),
]


def test_every_corrupted_cell_is_found_and_named(project: Project) -> None:
    for column, change, row, _ in CORRUPTIONS:
        project.new.execute(f"UPDATE item SET {column} = {change} WHERE item_id = {row}")
    project.new.execute("UPDATE item SET ratio = NULL, wide = NULL, note = NULL WHERE item_id = 1001")
    result = project.verify()
    table = result.tables[0]
    wrong = len(CORRUPTIONS)  # the second change of row 1001 adds no row
    assert result.verdict is Verdict.DIFFERENT
    assert (table.counts.different, table.counts.equal, table.counts.compared) == (wrong, ALL - wrong, ALL)
    expected: dict[str, Counter[str]] = defaultdict(Counter)
    for column, _, _, cause in CORRUPTIONS:
        expected[column][cause] += 1
    expected["ratio"]["NaN against NULL in the target"] += 1
    expected["wide"]["NaN against NULL in the target"] += 1
    expected["note"]["empty text against NULL in the target"] += 1
    assert {c.column: Counter(dict(c.causes)) for c in table.columns} == expected
    assert {c.column: c.unequal_rows for c in table.columns} == {k: v.total() for k, v in expected.items()}


@pytest.mark.slow
def test_old_row_is_shown_beside_the_difference(project: Project) -> None:
    project.new.execute("UPDATE item SET big = big + 1 WHERE item_id = 1")
    sample = only_sample(project.verify())
    assert cells(sample) == {"big": ("9007199254740993", "9007199254740994")}
    (old,) = sample.old_rows
    assert (old.table, dict(old.values)["big"]) == ("thing", "9007199254740993")


@pytest.mark.slow
def test_a_column_that_the_mapping_doesnt_read_is_in_no_report(project: Project) -> None:
    project.old.execute("ALTER TABLE thing ADD COLUMN password text DEFAULT 'geheim'")
    project.mapping.write_text(
        project.mapping.read_text().replace('.drop("twice")', '.drop("twice", "password")')
    )
    project.new.execute("UPDATE item SET big = big + 1 WHERE item_id = 1")
    (old,) = only_sample(project.verify()).old_rows
    assert "big" in dict(old.values)
    assert "password" not in dict(old.values)


def test_missing_and_extra_rows_are_found(project: Project) -> None:
    project.new.execute("DELETE FROM item WHERE item_id = 3", "INSERT INTO item (item_id) VALUES (5000)")
    result = project.verify()
    table = result.tables[0]
    assert result.verdict is Verdict.DIFFERENT
    counts = table.counts
    assert (counts.missing, counts.extra, counts.different, counts.equal) == (1, 1, 0, ALL - 1)
    assert {(s.status, s.key[0][1]) for s in table.samples} == {("missing", "3"), ("extra", "5000")}


def test_duplicate_keys_are_an_error_of_their_own(project: Project) -> None:
    project.new.execute(
        "ALTER TABLE item DROP CONSTRAINT item_pkey", "INSERT INTO item SELECT * FROM item WHERE item_id = 9"
    )
    result = project.verify()
    assert (result.verdict, result.tables[0].counts.duplicate) == (Verdict.DIFFERENT, 1)
    sample = only_sample(result)
    assert (sample.status, sample.rows_mapped, sample.rows_target) == ("duplicate", 1, 2)


def test_empty_tables_are_equal_only_when_the_dump_is_complete(project: Project) -> None:
    project.old.execute("TRUNCATE thing")
    project.new.execute("TRUNCATE item")
    project.ledger()
    assert project.verify().verdict is Verdict.EQUAL
    project.ledger(done=False)
    result = project.verify()
    assert result.verdict is Verdict.UNKNOWN
    assert "dump of source table thing is not complete" in result.tables[0].reason
    assert result.tables[0].counts.compared == 0


def test_no_round_is_unknown(project: Project) -> None:
    result = project.verify(max_rounds=0)
    assert (result.verdict, result.tables[0].reason) == (Verdict.UNKNOWN, "no round compared it")


def test_no_ledger_is_unknown(project: Project) -> None:
    project.new.execute("DROP SCHEMA migrator CASCADE")
    result = project.verify()
    assert (result.verdict, result.verdict.exit_code) == (Verdict.UNKNOWN, 3)
    assert "migrator run" in result.remedy
