"""The record of a run: seven tables and a description, as one value and as files.

Every table is an Arrow table with the layout given here; a bundle holds each as one Parquet file.

**Versions.** Each row that a workload writes carries its provenance: ``session`` (the client) and ``number``
(rising per session). The log tells at which position that write was committed, so a row seen anywhere else,
in a chunk, in the target, by an observer, is identified with a log position by its provenance and never by a
clock. The rows that exist before the run have session 0 and stand in the log at position 0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from migrator.errors import VerifyError

FORMAT = 1
PUT, DELETE = 1, -1
"""Values of the ``kind`` columns."""
OK, FAILED, UNKNOWN = "ok", "failed", "unknown"
"""The outcomes of an operation as its client saw them; *unknown*: the connection broke around COMMIT."""
CHUNK, LOG = "chunk", "log"
"""Origins of a delivery."""

_ROW: list[tuple[str, pa.DataType]] = [
    ("table", pa.string()),  # the source table's name, also for target rows
    ("key", pa.string()),  # its primary key as text, the same text on both sides
    ("session", pa.int32()),
    ("number", pa.int32()),
    ("kind", pa.int8()),  # PUT or DELETE
    ("value", pa.int64()),  # the term of folds and totals; NULL in tables that have neither
]

OPERATIONS = pa.schema(
    [
        *_ROW,  # of a DELETE: the provenance of the row that it removes
        ("transaction", pa.int32()),  # per session: rows written together
        ("invoked_us", pa.int64()),
        ("ended_us", pa.int64()),
        ("outcome", pa.string()),
        ("cause", pa.string()),
    ]
)
"""One row per row that a client tried to write, in any order. Clock: microseconds since the run's start."""

SOURCE_LOG = pa.schema(
    [
        ("position", pa.int64()),  # ordinal of the transaction in commit order, from 1; initial rows have 0
        ("order", pa.int64()),  # what the pipeline calls this position (``Position.order``)
        ("index", pa.int32()),  # of the row change within the transaction
        *_ROW,  # of a DELETE: the before image's provenance
        ("committed_at_us", pa.int64()),
    ]
)
"""The source log as read by the recorder, in log order. A key that moves is a DELETE and a PUT."""

DELIVERIES = pa.schema(
    [
        ("segment", pa.int64()),
        ("origin", pa.string()),
        ("order", pa.int64()),  # of a log delivery: ``Position.order`` of its transaction; of a chunk: NULL
        ("index", pa.int32()),
        *_ROW,
    ]
)
"""The rows that capture delivered into the event log, in delivery order. Among the log's rows of its own segment a
chunk's row may stand anywhere: the target applies a segment as one, and the judge takes the kindest place."""

COMMITS = pa.schema(
    [
        ("commit", pa.int32()),  # from 1, in the target's commit order
        ("epoch", pa.int64()),
        ("segment", pa.int64()),
        ("order", pa.int64()),  # the ledger's position (``Position.order``) as of this commit
        ("covered", pa.string()),  # JSON: {source table: null | true | "last key covered"}; see ``History``
        ("committed_at_us", pa.int64()),
    ]
)
"""Every target commit that moved the ledger."""

CHANGES = pa.schema([("commit", pa.int32()), *_ROW])
"""Row changes of the target per commit, in order. Rogue writes, which no batch made, have ``commit`` 0 and stand
between the commits that were before and after them."""

OBSERVATIONS = pa.schema(
    [
        ("at_us", pa.int64()),
        ("observer", pa.string()),
        ("snapshot", pa.int64()),  # reads with one number came from one target snapshot
        ("order", pa.int64()),  # the ledger's position in that snapshot
        ("name", pa.string()),  # what was read: "total account", "row register", ...
        *_ROW,
    ]
)
"""The reads of external readers of the new schema, all the time: totals (``value``) and single rows."""

FAULTS = pa.schema(
    [
        ("name", pa.string()),
        ("point", pa.string()),  # named point and count, or "" for a fault at a time
        ("fired", pa.bool_()),
        ("fired_us", pa.int64()),
        ("healed_us", pa.int64()),
        ("detail", pa.string()),
    ]
)
"""The planned faults, with the time at which each fired, if it did."""

STATE = pa.schema(_ROW)
"""A whole state: the present rows of one side after the drain (``kind`` is PUT)."""

SCHEMAS: Mapping[str, pa.Schema] = {
    "operations": OPERATIONS,
    "log": SOURCE_LOG,
    "deliveries": DELIVERIES,
    "commits": COMMITS,
    "changes": CHANGES,
    "observations": OBSERVATIONS,
    "faults": FAULTS,
    "final_source": STATE,
    "final_target": STATE,
}


@dataclass(frozen=True, slots=True)
class TrackedTable:
    """A source table whose rows carry provenance, and what is known about it.

    Attributes:
        name: the source table.
        fold: ``value`` is a running sum of the clients' increments, so replays and losses show in it (D5).
        total: name of a group of tables whose ``value`` sums to a constant in every consistent state, or "".
        numeric_key: keys are integers, so that a dump's progress tells which keys are covered.
    """

    name: str
    fold: bool = False
    total: str = ""
    numeric_key: bool = True


@dataclass(frozen=True, slots=True)
class Description:
    """The run that a history records.

    Attributes:
        scenario: its name.
        engine: ``postgresql``, ``mariadb`` or ``simulation``.
        seed: of the workload and the faults.
        tables: tracked tables.
        drained: the writers stopped and the pipeline had the time to catch up, so D7 can be judged.
        halted: the named error with which the pipeline ended, or "".
        versions: of the tool, Python, Spark and the servers.
        command: replays this run.
    """

    scenario: str
    engine: str
    seed: int
    tables: tuple[TrackedTable, ...]
    drained: bool
    halted: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    command: str = ""


@dataclass(frozen=True, slots=True)
class History:
    """One run. Tables are laid out as the schemas above say.

    ``covered`` of a commit says per source table what the target claims to hold: ``true`` after its dump, the last
    dumped key during it, null before its first chunk. A key is under judgement from the first commit on that covers
    it, or that applied a change event of it.
    """

    description: Description
    operations: pa.Table
    log: pa.Table
    deliveries: pa.Table
    commits: pa.Table
    changes: pa.Table
    observations: pa.Table
    faults: pa.Table
    final_source: pa.Table
    final_target: pa.Table

    def __post_init__(self) -> None:
        for name, schema in SCHEMAS.items():
            found = getattr(self, name).schema
            if not found.equals(schema):
                raise VerifyError(
                    f"the history's table {name} has another layout than this version writes",
                    cause=f"{found.to_string()} instead of {schema.to_string()}",
                    remedy="replay it with the version that recorded it (see the bundle's description)",
                )

    def save(self, folder: Path) -> None:
        """Writes one Parquet file per table and ``description.json`` into an existing folder."""
        for name in SCHEMAS:
            pq.write_table(getattr(self, name), folder / f"{name}.parquet", compression="zstd")
        document = {"format": FORMAT, **asdict(self.description)}
        (folder / "description.json").write_text(json.dumps(document, indent=2) + "\n")


def table_of(name: str, columns: Mapping[str, Any]) -> pa.Table:
    """A history table from columns (lists or arrays), missing ones NULL."""
    schema = SCHEMAS[name]
    rows = len(next(iter(columns.values()), ()))
    arrays = [
        pa.array(columns[field.name], field.type) if field.name in columns else pa.nulls(rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _other_format(folder: Path, found: object) -> VerifyError:
    return VerifyError(
        "the history was recorded in another format",
        where=str(folder / "description.json"),
        cause=f"its format is {found}, this version knows formats up to {FORMAT}",
        remedy="replay it with the version that recorded it (see `versions` there), or a newer one",
    )


def load_history(folder: Path) -> History:
    """Reads what ``History.save`` wrote. Raises ``VerifyError`` for a folder that holds no history of this
    format."""
    try:
        document = json.loads((folder / "description.json").read_text())
        found = document.pop("format", None)
        if found != FORMAT:
            raise _other_format(folder, found)
        tables = {name: pq.read_table(folder / f"{name}.parquet", schema=SCHEMAS[name]) for name in SCHEMAS}
    except (OSError, ValueError, pa.ArrowInvalid) as error:
        raise VerifyError(
            "no history can be read there",
            where=str(folder),
            cause=str(error),
            remedy="name the folder of a bundle that a scenario run has written",
        ) from error
    tracked = tuple(TrackedTable(**table) for table in document.pop("tables"))
    known = {field.name for field in fields(Description)}
    description = Description(
        tables=tracked, **{name: value for name, value in document.items() if name in known}
    )
    return History(description, **tables)
