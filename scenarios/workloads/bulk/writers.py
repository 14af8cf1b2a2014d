"""The old table ``parcel``: single writes, and a few transactions that insert or update a whole range at once.

The rows of a range are made inside the server, provenance included: keys and write numbers rise together, so
a range is noted as one run (:class:`~scenarios.row_writes.RowWrite`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock

from scenarios.database import Database
from scenarios.scenario import WorkloadSpec
from scenarios.session import Session
from scenarios.workload import Action
from scenarios.workloads.base import Columns, Tracked
from scenarios.workloads.choice import some_key, some_keys
from scenarios.workloads.rows import Rows
from scenarios.workloads.tables import OldTable, create_tables, series
from verify.history.history import TrackedTable

PARCEL = Tracked(
    TrackedTable("parcel", fold=True),
    Columns("parcel", ("id",), "writer", "write_no", "weight"),
    Columns("shipment", ("shipment_id",), "client", "client_no", "grams"),
)
RANGE = 10_000_000
"""Range r has the keys from r * RANGE + 1 on; keys below belong to the single writes."""
_FIRST_WEIGHT = 100
_COLUMNS = (
    '"id" bigint PRIMARY KEY, "weight" int NOT NULL, "label" varchar(40) NOT NULL,'
    ' "writer" int NOT NULL, "write_no" int NOT NULL'
)


class Bulk:
    """Options: ``rows`` of a bulk transaction (1,000,000), ``transactions`` of that kind (1).

    The first, third, ... insert a range, the second, fourth, ... update all of the range before, if it is complete.
    They are the first transactions of whichever client comes first, and count neither for the rate nor for
    the limit of changes.
    """

    name = "bulk"
    tracked: Sequence[Tracked] = (PARCEL,)
    project = Path(__file__).parent

    def create(self, old: Database, spec: WorkloadSpec) -> None:
        """Parcels 1 to ``spec.keys``."""
        create_tables(
            old, [OldTable("parcel", _COLUMNS, "n, mod(n, 900), concat('No. ', n), 0, n", spec.keys)]
        )

    def actions(self, spec: WorkloadSpec) -> Sequence[Action]:
        """Single writes; the client that comes first makes the bulk transactions before its own."""
        writers = _Writers(
            spec.keys,
            spec.hot_percent,
            int(spec.options.get("rows", 1_000_000)),
            int(spec.options.get("transactions", 1)),
        )
        return [Action("write one", 7, writers.write_one), Action("write several", 3, writers.write_several)]


class _Writers:
    def __init__(self, keys: int, hot_percent: int, rows: int, transactions: int):
        self._keys = keys
        self._hot_percent = hot_percent
        self._bulk_rows = rows
        self._bulk_transactions = transactions
        self._bulk_made = 0
        self._bulk_client = 0
        self._lock = Lock()
        self._parcels = Rows(PARCEL.old)

    def write_one(self, session: Session) -> None:
        if not self._bulk(session):
            self._write(session, some_key(session.rng, self._keys, self._hot_percent))

    def write_several(self, session: Session) -> None:
        if not self._bulk(session):
            for key in some_keys(session.rng, self._keys, 5, self._hot_percent):
                self._write(session, key)

    def _write(self, session: Session, key: int) -> None:
        self._parcels.add(session, key, session.rng.randint(1, 900), label=f"late {session.client}")

    def _bulk(self, session: Session) -> bool:
        """Makes the next bulk transaction, if this is the client for it and one is left."""
        with self._lock:
            self._bulk_client = self._bulk_client or session.client
        if session.client != self._bulk_client or self._bulk_made >= self._bulk_transactions:
            return False
        self._bulk_made += 1
        first = (self._bulk_made + 1) // 2 * RANGE + 1
        (self._insert if self._bulk_made % 2 else self._update)(session, first, first + self._bulk_rows - 1)
        return True

    def _insert(self, session: Session, first: int, last: int) -> None:
        number = session.number(self._bulk_rows)
        session.note_put("parcel", str(first), number, _FIRST_WEIGHT, rows=self._bulk_rows)
        session.change(
            f"INSERT INTO \"parcel\" SELECT n, %s, 'bulk', %s, n - %s FROM "
            f"{series(first, last, session.database.kind)}",
            _FIRST_WEIGHT,
            session.client,
            first - number,
            bulk=True,
        )

    def _update(self, session: Session, first: int, last: int) -> None:
        """Only a complete range keeps numbers and keys in step."""
        if session.rows('SELECT count(*) FROM "parcel" WHERE "id" BETWEEN %s AND %s', first, last) != [
            (self._bulk_rows,)
        ]:
            return
        number = session.number(self._bulk_rows)
        session.note_put("parcel", str(first), number, _FIRST_WEIGHT + 1, rows=self._bulk_rows)
        session.change(
            'UPDATE "parcel" SET "weight" = "weight" + 1, "writer" = %s, "write_no" = "id" - %s'
            ' WHERE "id" BETWEEN %s AND %s',
            session.client,
            first - number,
            first,
            last,
            bulk=True,
        )
