"""Rows from files (CSV, Parquet) for the tables of the old side."""

from __future__ import annotations

import csv
import json
from collections.abc import Collection, Iterable, Mapping
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


def files(
    rows: str | Path | Mapping[str, str | Path] | None, tables: Collection[str] = ()
) -> dict[str, Path]:
    """The files by table.

    Args:
        rows: a file (named like its table, or for the only one), a folder of such files, or files by table.
        tables: names of all tables, where they are known.

    Raises ``ConfigError`` for what is none of these.
    """
    if rows is None:
        return {}
    if isinstance(rows, Mapping):
        return {name: _file(Path(file)) for name, file in rows.items()}
    path = Path(rows)
    if path.is_dir():
        return {one.stem: one for one in sorted(path.iterdir()) if one.suffix in _ENDINGS}
    file = _file(path)
    only = next(iter(tables)) if len(tables) == 1 else file.stem
    return {file.stem if file.stem in tables else only: file}


def filled(old: Database, tables: Mapping[str, Table], rows: Mapping[str, Path]) -> None:
    """Inserts the rows of files, parents first. Raises ``ConfigError`` naming file, row and the server's words."""
    named = {name: file for name, file in rows.items() if name in tables}
    if len(named) < len(rows) and len(tables) == 1 and len(rows) == 1:
        named = {next(iter(tables)): next(iter(rows.values()))}
    if unknown := sorted({*rows} - {*tables}) if len(named) < len(rows) else []:
        raise ConfigError(
            "there are rows for a table that the old schema doesn't have",
            where=", ".join(f"{name}: {rows[name]}" for name in unknown),
            remedy=f"name the files after the tables: {', '.join(sorted(tables))}",
        )
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


def _known(table: Table, row: Mapping[str, object], file: Path) -> dict[str, object]:
    if unknown := sorted({*row} - {*table.written()}):
        raise ConfigError(
            "a file has a column that its table doesn't have",
            where=f"{file}: {', '.join(unknown)}",
            remedy=f"name the columns as the table {table.name} does: {', '.join(table.written())}",
        )
    return dict(row)


def _rows(file: Path) -> Iterable[dict[str, object]]:
    try:
        if file.suffix == ".csv":
            with file.open(newline="") as lines:
                # An empty field is NULL; a text that is empty can't be said in CSV.
                yield from (
                    {name: value or None for name, value in row.items()} for row in csv.DictReader(lines)
                )
        else:
            for row in pq.read_table(file).to_pylist():
                yield {name: _value(value) for name, value in row.items()}
    except (OSError, ValueError, csv.Error) as error:
        raise ConfigError(
            "the rows of a file can't be read", where=str(file), cause=str(error), remedy="correct the file"
        ) from error


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
