"""Rows from files: which file is for which table, and what isn't one."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from migrator.errors import ConfigError
from scenarios.chaos.given_rows import files, of_tables
from scenarios.rehearsal.tables import Column, Table


def test_files_are_named_after_their_tables(tmp_path: Path) -> None:
    for name in ("orders.csv", "customer.parquet", "notes.txt"):
        (tmp_path / name).touch()
    assert files(tmp_path) == {"orders": tmp_path / "orders.csv", "customer": tmp_path / "customer.parquet"}
    assert files(tmp_path / "orders.csv") == {"orders": tmp_path / "orders.csv"}
    assert files({"t": str(tmp_path / "orders.csv")}) == {"t": tmp_path / "orders.csv"}
    assert files(None) == {}


@pytest.mark.parametrize(
    ("name", "said"), [("notes.txt", "neither CSV nor Parquet"), ("gone.csv", "no such file")]
)
def test_what_is_no_file_of_rows_is_refused(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(ConfigError, match=said):
        files(tmp_path / name)


TABLES = {
    name: Table(name, tuple(Column(one, "int", nullable=True) for one in columns), (columns[0],))
    for name, columns in {"person": ("id", "email", "born"), "town": ("id", "mayor"), "tag": ("id",)}.items()
}


@pytest.mark.parametrize(
    ("file", "header", "table"),
    [("sample.csv", "id,email", "person"), ("town.csv", "id", "town"), ("sample.csv", "mayor,id", "town")],
)
def test_a_file_named_like_no_table_is_for_the_one_that_has_its_columns(
    tmp_path: Path, file: str, header: str, table: str
) -> None:
    path = tmp_path / file
    path.write_text(f"{header}\n")
    assert of_tables(TABLES, {path.stem: path}) == {table: path}


def test_parquet_files_have_columns_too_and_a_table_takes_one_file(tmp_path: Path) -> None:
    sample, town = tmp_path / "sample.parquet", tmp_path / "town.csv"
    pq.write_table(pa.table({"id": [1], "mayor": ["a"]}), sample)
    town.write_text("id\n")
    assert of_tables(TABLES, {"sample": sample}) == {"town": sample}
    with pytest.raises(ConfigError, match="no table without a file"):
        of_tables(TABLES, {"sample": sample, "town": town})


@pytest.mark.parametrize(
    ("name", "header", "said"),
    [
        ("sample", "id", "these tables have all of these columns: person, tag, town"),
        ("sample", "id,price", "no table without a file has all of these columns"),
        ("persn", "id,email", "the old schema doesn't have"),
    ],
)
def test_rows_of_no_clear_table_are_refused(tmp_path: Path, name: str, header: str, said: str) -> None:
    path = tmp_path / "sample.csv"
    path.write_text(f"{header}\n")
    with pytest.raises(ConfigError, match=said):
        of_tables(TABLES, {name: path})
