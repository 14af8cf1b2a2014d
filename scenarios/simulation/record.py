"""Turns what happened in a simulation into a history, the judge's only input."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from migrator.columnar.types import INDEX, POSITION, SIGN
from migrator.model.progress import Checkpoint
from migrator.model.segment import FileKind, Manifest
from migrator.model.table import TableId
from scenarios.simulation.clients import Client, row_writes
from scenarios.simulation.process import Fault, Shared
from scenarios.simulation.source import ORDERS_APART
from scenarios.simulation.tables import CHECKING, SAVINGS, parse_stamp
from verify.history.history import (
    CHUNK,
    DELETE,
    LOG,
    OK,
    PUT,
    SCHEMAS,
    UNKNOWN,
    Description,
    History,
    table_of,
)

_ACCOUNT = TableId("new", "account")
_TOTALS = {"bank": (CHECKING.id.name, SAVINGS.id.name)}
Line = tuple[Any, ...]


@dataclass(slots=True)
class Recorder:
    """Watches event log and target from outside.

    Attributes:
        shared: what it watches.
    """

    shared: Shared
    _faults: list[Fault] = field(default_factory=list)
    _newest: Manifest | None = None
    _deliveries: list[Line] = field(default_factory=list)
    _observations: list[Line] = field(default_factory=list)
    _snapshots: int = 0
    _committed_us: list[int] = field(default_factory=list)

    def look(self) -> None:
        """Called after every step: takes what is new."""
        manifests = self.shared.event_log.manifests
        newest = next(reversed(manifests.values())) if manifests else None
        if newest is not self._newest and newest is not None:
            self._newest = newest
            self._deliver(newest)
        missing = len(self.shared.target.history) - len(self._committed_us)
        if missing:
            self._committed_us += [self.shared.source.clock_us] * missing

    def planned(self, fault: Fault) -> None:
        """A fault that may fire."""
        self._faults.append(fault)

    def observe(self) -> None:
        """An external reader: totals and some rows with the ledger's position, in one snapshot."""
        target = self.shared.target
        checkpoint = target.ledger.checkpoint
        if checkpoint is None:
            return
        self._snapshots += 1
        head = (self.shared.source.clock_us, "observer-1", self._snapshots, checkpoint.position.order)
        rows = list(_present(target.rows))
        for name, tables in _TOTALS.items():
            total = sum(row[5] for row in rows if row[0] in tables)
            self._observations.append((*head, f"total {name}", name, "", None, None, PUT, total))
        self._observations += [(*head, f"row {row[0]}", *row) for row in rows]

    # -- deliveries ---------------------------------------------------------------------------------------------

    def _deliver(self, manifest: Manifest) -> None:
        """Chunk rows first, then log rows in log order over all tables: the order in which a batch applies them."""
        images: list[tuple[int, int, int, str, int, str, int]] = []
        for file in manifest.files:
            rows = self.shared.event_log.tables[file.path].to_pydict()
            table = file.schema.id.name
            if file.kind is FileKind.CHUNK:
                self._deliveries += [
                    (manifest.number, CHUNK, None, None, table, str(key), *parse_stamp(stamp), PUT, value)
                    for key, stamp, value in zip(rows["id"], rows["stamp"], rows["value"], strict=True)
                ]
            else:
                names = [[table] * file.rows]
                images += zip(
                    rows[POSITION],
                    rows[INDEX],
                    rows[SIGN],
                    *names,
                    rows["id"],
                    rows["stamp"],
                    rows["value"],
                    strict=True,
                )
        images = [image for image in images if image[2]]  # a TRUNCATE is no delivery of any key
        images.sort(key=lambda image: image[:3])
        for at, (order, index, sign, table, key, stamp, value) in enumerate(images):
            if sign < 0 and at + 1 < len(images):
                after = images[at + 1]
                if after[:2] == (order, index) and after[2] > 0 and after[4] == key:
                    continue  # an update: its after image says it all
            kind = PUT if sign > 0 else DELETE
            self._deliveries.append(
                (manifest.number, LOG, order, index, table, str(key), *parse_stamp(stamp), kind, value)
            )

    # -- the history --------------------------------------------------------------------------------------------

    def history(self, description: Description, clients: Sequence[Client]) -> History:
        """Everything that was recorded."""
        commits, changes = self._commits()
        lines = {
            "operations": self._operations(clients),
            "log": self._log(),
            "deliveries": self._deliveries,
            "commits": commits,
            "changes": changes,
            "observations": self._observations,
            "faults": [
                (fault.name, fault.point, True, fault.fired_us, None, "")
                for fault in self._faults
                if fault.fired_us is not None
            ],
            "final_source": [
                (table.name, str(key), row.session, row.number, PUT, row.value)
                for table, rows in self.shared.source.visible.items()
                for key, row in rows.items()
            ],
            "final_target": list(_present(self.shared.target.rows)),
        }
        return History(description, **{name: _table(name, found) for name, found in lines.items()})

    def _operations(self, clients: Sequence[Client]) -> list[Line]:
        return [
            (
                tried.table,
                str(tried.key),
                tried.session,
                tried.number,
                tried.kind,
                tried.value,
                tried.transaction,
                tried.invoked_us,
                ended_us,
                outcome,
                "" if outcome == OK else "rolled back" if outcome != UNKNOWN else "connection lost",
            )
            for client in clients
            for tried in client.tried
            for outcome, ended_us in [client.answered[tried.transaction]]
        ]

    def _log(self) -> list[Line]:
        source = self.shared.source
        lines: list[Line] = [
            (0, None, at, table.name, str(key), row.session, row.number, PUT, row.value, 0)
            for table, rows in source.initial.items()
            for at, (key, row) in enumerate(rows.items())
        ]
        lines += [
            (
                entry.ordinal,
                entry.number * ORDERS_APART,
                index,
                write.table.name,
                str(key),
                row.session,
                row.number,
                kind,
                row.value,
                entry.at_us,
            )
            for entry in source.log
            for index, write in enumerate(entry.writes)
            for key, kind, row in row_writes(write)
        ]
        return lines

    def _commits(self) -> tuple[list[Line], list[Line]]:
        commits: list[Line] = []
        changes: list[Line] = []
        held: dict[tuple[TableId, Any], Line] = {}
        before: tuple[int, Checkpoint | None] = (0, None)
        for commit, at_us in zip(self.shared.target.history, self._committed_us, strict=True):
            number = 0
            if (commit.segment, commit.checkpoint) != before:
                before = (commit.segment, commit.checkpoint)
                number = len(commits) + 1
                order = commit.checkpoint.position.order
                commits.append(
                    (number, commit.epoch, commit.segment, order, _covered(commit.checkpoint), at_us)
                )
            for table, rows in commit.changed.items():
                for key, row in rows.items():
                    old = held.pop((table, key), None)
                    if row is not None:
                        held[table, key] = line = _line(table, row)
                        changes.append((number, *line))
                    elif old is not None:
                        changes.append((number, *old[:4], DELETE, old[5]))
        return commits, changes


def _covered(checkpoint: Checkpoint) -> str:
    return json.dumps(
        {
            dump.table.name: True if dump.done else None if dump.after is None else dump.after[0]
            for dump in checkpoint.dumps
        }
    )


def _present(rows: Mapping[TableId, Mapping[Any, Mapping[str, Any]]]) -> Iterable[Line]:
    return (_line(table, row) for table, found in rows.items() for row in found.values())


def _line(table: TableId, row: Mapping[str, Any]) -> Line:
    """A target row under its source table's name, as the history's tables have it."""
    name = row["kind"] if table == _ACCOUNT else table.name
    return (name, str(row["id"]), *parse_stamp(row["stamp"]), PUT, row["value"])


def _table(name: str, lines: Sequence[Line]) -> Any:
    columns = zip(*lines, strict=True) if lines else ((),) * len(SCHEMAS[name])
    return table_of(name, dict(zip(SCHEMAS[name].names, columns, strict=True)))
