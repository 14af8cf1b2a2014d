"""Rows from files: which file is for which table, and what isn't one."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.errors import ConfigError
from scenarios.chaos.given_rows import files


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
