"""Debezium's records -> deliveries of our history.

A record's value is the envelope ``{"op": ..., "before": ..., "after": ..., "source": {...}, "transaction": ...}``:

===  =======================================================================
op   delivery
===  =======================================================================
r    read of the table (snapshot or incremental snapshot): origin ``chunk``
c u  change event: the ``after`` image is put
d    change event: the ``before`` image's row is deleted
===  =======================================================================

A tombstone (null value) follows each ``d`` for compacted topics only and is no delivery. An update of the key comes
as ``d`` of the old key and ``c`` of the new one, which is what the history wants. Records of topics that are not
tracked (signals, notifications, transaction marks) are left out; anything else is refused by name, never skipped.

Order: ``source.lsn``, the change's own place in the WAL (of PostgreSQL; absent elsewhere). Index: from
``transaction.total_order`` where transaction metadata is on.

Source: Debezium documentation, "Connector for PostgreSQL", section "Data change events".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from migrator.errors import MigratorError
from scenarios.recording.row_version import RowVersion
from scenarios.torture.deliveries import Deliveries
from scenarios.workloads.base import Columns, key_text

_CHANGES = ("c", "u", "d")
_READ = "r"


def deliveries_of(lines: Iterable[str], tracked: Mapping[str, Columns]) -> Deliveries:
    """Deliveries from the engine's JSON lines ``{"topic": ..., "key": ..., "value": ...}``.

    Args:
        lines: in the order in which the engine handed the records out.
        tracked: topic -> where its table's key and provenance stand.

    Raises:
        MigratorError: a record of a tracked topic that this adapter doesn't understand, with its line number.
    """
    found = Deliveries()
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line)
        except ValueError as error:
            raise _refused(number, line, f"it is no JSON: {error}") from error
        columns = tracked.get(record["topic"])
        if columns is None or record["value"] is None:
            continue
        try:
            _deliver(found, record["value"], columns)
        except (KeyError, TypeError, ValueError) as error:
            raise _refused(number, line, f"{type(error).__name__}: {error}") from error
    return found


def _deliver(found: Deliveries, envelope: Mapping[str, Any], columns: Columns) -> None:
    operation = envelope["op"]
    segment = len(found.rows) + 1  # every record is handed over for itself
    table = columns.table
    if operation == _READ:
        found.read(segment, table, _image(envelope["after"], columns))
        return
    if operation not in _CHANGES:
        raise ValueError(f"operation {operation!r} is none of r, c, u, d")
    transaction = envelope.get("transaction")
    order = envelope["source"].get("lsn")
    index = int(transaction["total_order"]) - 1 if transaction else None
    if operation == "d":
        found.delete(segment, order, index, table, _image(envelope["before"], columns))
    else:
        found.put(segment, order, index, table, _image(envelope["after"], columns))


def _image(row: Mapping[str, Any] | None, columns: Columns) -> RowVersion:
    if row is None:
        raise ValueError("the image is missing (the table needs REPLICA IDENTITY FULL)")
    return RowVersion(
        key_text([row[name] for name in columns.keys]),
        _whole(row[columns.session]),
        _whole(row[columns.number]),
        None if not columns.value or row[columns.value] is None else _whole(row[columns.value]),
    )


def _whole(value: object) -> int:
    """An integer, however the engine writes it: a number, or a decimal as text (``decimal.handling.mode``)."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str):
        try:
            exact = Decimal(value)
        except InvalidOperation:
            raise ValueError(f"{value!r} is no number; set decimal.handling.mode=string") from None
        if exact == exact.to_integral_value():
            return int(exact)
    raise ValueError(f"{value!r} is no whole number")


def _refused(number: int, line: str, cause: str) -> MigratorError:
    return MigratorError(
        "a record of Debezium can't be understood",
        where=f"record {number}: {line[:300].rstrip()}",
        cause=cause,
        remedy="adapt scenarios/torture/envelopes.py to this version of Debezium",
    )


def windows(lines: Sequence[str], topic: str) -> tuple[int, int]:
    """(chunk reads, rows read in them) that the engine reported through its notifications on ``topic``."""
    chunks = rows = 0
    for line in lines:
        record = json.loads(line)
        if record["topic"] == topic and record["value"]["aggregate_type"] == "Incremental Snapshot":
            chunks += record["value"]["type"] == "IN_PROGRESS"
            rows += int(record["value"]["additional_data"].get("total_rows_scanned", 0))
    return chunks, rows
