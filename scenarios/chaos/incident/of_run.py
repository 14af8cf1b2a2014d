"""The incident of a failed run under hazards: the rows of its start, and the transactions of its log."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from migrator.errors import MigratorError
from scenarios.chaos.incident import project_files, structure
from scenarios.chaos.incident.failure import Failure
from scenarios.chaos.incident.history import Change, History, Row, Transaction
from scenarios.chaos.incident.incident_file import Incident, packed, versions
from scenarios.chaos.writes.plain_rows import plain, plain_rows
from scenarios.database import Database
from scenarios.faults.session import SERVER_ERRORS
from scenarios.recording.whole_rows import Committed, Image
from scenarios.rehearsal.copied import Wanted
from scenarios.rehearsal.tables import Table
from verify.readers.engines import source_reader
from verify.settings import ServerSettings

NAME = "incident.zip"
"""File of a bundle."""
Rows = Mapping[str, Sequence[Row]]


def rows_of(start: Database, tables: Mapping[str, Table], names: Sequence[str]) -> Rows:
    """The rows of the start of these tables, by table. Raises ``MigratorError``."""
    return {
        name: [
            {column: plain(value) for column, value in row.items()} for row in plain_rows(start, tables[name])
        ]
        for name in names
        if name in tables
    }


def of_run(
    project: Wanted,
    source: ServerSettings,
    tables: Mapping[str, Table],
    history: History,
    failure: Failure,
) -> Incident:
    """The incident.

    Args:
        project: as its user has it.
        source: the old side, which is still there.
        tables: of the old side.
        history: of those that the mapping reads.
        failure: that was seen.

    Raises ``MigratorError`` for tables that an incident can't hold.
    """
    with source_reader(source, "incident").tables(list(history.start)) as found:
        schemas, references = dict(found.schemas), found.references()
    known = structure.of_schemas(
        project.kind("old"),
        project.text("source", "schema", "public") if project.kind("old") == "postgresql" else "",
        schemas.values(),
        [one for one in references if one.child.name in schemas and one.parent.name in schemas],
    )
    computed = [
        f"{name}.{column}"
        for name, table in known.tables.items()
        for column in table.names()
        if column not in tables[name].written()
    ]
    if computed:
        raise MigratorError(
            "the run can't become an incident",
            where=", ".join(computed),
            cause="the server computes what is there, and the log needn't have it",
        )
    code, left = project_files.code(project)
    facts = {
        "anonymised": False,
        "engines": {"source": project.kind("old"), "target": project.kind("new")},
        "versions": versions(),
        "asked_for": {"keys": 0, "position": None, "most_rows": history.rows()},
        "missing": [],
        "left_out": left,
    }
    files = {"migration.toml": project_files.for_replay(project, "incident"), **code}
    return Incident(known, history, failure, files, {}, facts)


def history_of(start: Rows, tables: Mapping[str, Table], log: Sequence[Committed]) -> History:
    """The history of the tables that have rows of a start; whole transactions of others aren't in it."""
    transactions = (
        Transaction(
            one.order,
            tuple(
                Change(
                    change.table,
                    _row(tables[change.table], change.before),
                    _row(tables[change.table], change.after),
                )
                for change in one.changes
                if change.table in start
            ),
        )
        for one in log
    )
    return History(start, tuple(one for one in transactions if one.changes))


def kept(folder: Path, make: Callable[[], Incident]) -> str:
    """Writes an incident into a bundle, if it can be had; else the reason, in words: no verdict depends on it."""
    try:
        write(folder, make())
    except (MigratorError, *SERVER_ERRORS) as error:
        return str(error).strip()
    return ""


def write(folder: Path, incident: Incident, name: str = NAME) -> None:
    """Writes the file into a bundle, for this user only."""
    handle = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(packed(incident))


def _row(table: Table, image: Image | None) -> Row | None:
    return None if image is None else {name: plain(image[name]) for name in table.written() if name in image}
