"""Rows from files (CSV, Parquet) for the tables of the old side."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from migrator.errors import ConfigError
from scenarios.chaos.writes.changes import Change
from scenarios.database import Database
from scenarios.faults.session import SERVER_ERRORS
from scenarios.rehearsal.tables import Table, in_order

_ENDINGS = (".csv", ".parquet")


def files(rows: str | Path | Mapping[str, str | Path] | None) -> dict[str, Path]:
    """The files by table, or by whatever else they are named after.

    ``rows``: a file, a folder of files, or files by table. Raises ``ConfigError`` for what is none of these.
    """
    if rows is None:
        return {}
    if isinstance(rows, Mapping):
        return {name: _file(Path(file)) for name, file in rows.items()}
    path = Path(rows)
    if path.is_dir():
        return {one.stem: one for one in sorted(path.iterdir()) if one.suffix in _ENDINGS}
    return {path.stem: _file(path)}


def filled(old: Database, tables: Mapping[str, Table], rows: Mapping[str, Path]) -> None:
    """Inserts the rows of files, parents first. Raises ``ConfigError`` naming file, row and the server's words."""
    named = of_tables(tables, rows)
    connection = old.connect()
    try:
        for name in in_order(tables, named):
            for number, row in enumerate(_rows(named[name]), 1):
                change = Change("insert", name, {}, _known(tables[name], row, named[name]))
                try:
                    connection.cursor().execute(*change.statement(old.kind))
                except SERVER_ERRORS as error:
                    raise ConfigError(
                        "the server refuses a row of a file",
                        where=f"{named[name]}, row {number}, table {name}",
                        cause=str(error).strip(),
                        remedy="correct the row, or leave it out",
                    ) from error
        connection.commit()
    finally:
        connection.close()


def of_tables(tables: Mapping[str, Table], rows: Mapping[str, Path]) -> dict[str, Path]:
    """The files by table. One that is named like none goes to the one table that has all of its columns.

    Raises ``ConfigError`` where none has, or several have.
    """
    found = {name: file for name, file in rows.items() if name in tables}
    for name, file in rows.items():
        if name in tables:
            continue
        if name != file.stem:  # somebody said this name
            raise ConfigError(
                "there are rows for a table that the old schema doesn't have",
                where=f"{name}: {file}",
                remedy=f"name one of: {', '.join(sorted(tables))}",
            )
        columns = _columns(file)
        able = [one for one in tables if one not in found and columns <= {*tables[one].written()}]
        if len(tables) == 1 and not found:
            able = list(tables)
        if len(able) != 1:
            raise ConfigError(
                "it isn't clear for which table the rows of a file are",
                where=f"{file}: {', '.join(sorted(columns))}",
                cause=f"these tables have all of these columns: {', '.join(sorted(able))}"
                if able
                else "no table without a file has all of these columns",
                remedy=f"name the file after its table: {', '.join(sorted(tables))}",
            )
        found[able[0]] = file
    return found


def _columns(file: Path) -> set[str]:
    if file.suffix == ".csv":
        with _reading(file), file.open(newline="") as lines:
            return {*(csv.DictReader(lines).fieldnames or ())}
    with _reading(file):
        return {*pq.read_schema(file).names}


@contextmanager
def _reading(file: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, csv.Error) as error:
        raise ConfigError(
            "the rows of a file can't be read", where=str(file), cause=str(error), remedy="correct the file"
        ) from error


def _known(table: Table, row: Mapping[str, object], file: Path) -> dict[str, object]:
    if unknown := sorted({*row} - {*table.written()}):
        raise ConfigError(
            "a file has a column that its table doesn't have",
            where=f"{file}: {', '.join(unknown)}",
            remedy=f"name the columns as the table {table.name} does: {', '.join(table.written())}",
        )
    return dict(row)


def _rows(file: Path) -> Iterable[dict[str, object]]:
    with _reading(file):
        if file.suffix == ".csv":
            with file.open(newline="") as lines:
                # An empty field is NULL; a text that is empty can't be said in CSV.
                yield from (
                    {name: value or None for name, value in row.items()} for row in csv.DictReader(lines)
                )
        else:
            for row in pq.read_table(file).to_pylist():
                yield {name: _value(value) for name, value in row.items()}


def _value(value: Any) -> object:
    """A value as every server reads it."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(" ") if value.tzinfo is None else value.isoformat(" ")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, dict | list):
        return json.dumps(value, default=str)
    return value if value is None or isinstance(value, bytes) else str(value)


def _file(path: Path) -> Path:
    if path.suffix not in _ENDINGS or not path.is_file():
        raise ConfigError(
            "the rows can't be read",
            where=str(path),
            cause="there is no such file" if path.suffix in _ENDINGS else "it is neither CSV nor Parquet",
            remedy="name a .csv or .parquet file, or a folder with one for each table",
        )
    return path
