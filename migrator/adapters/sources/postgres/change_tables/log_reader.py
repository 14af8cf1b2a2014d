"""The source log as polls of change tables; each poll is one transaction.

A poll reads what became visible since the last one, as one consistent cut. The cut is what makes it right: a
snapshot never shows a transaction by half, and if it shows one it shows whatever that one could see; so after
each poll the reader has a state that the source had (I3), and what a client wrote first comes no later (I2).
Within a poll, changes come in the order of their sequence numbers. Each was taken while the row was locked,
so for each row that is the order of the changes. The order of transaction ids is not: an older transaction
may change a row after a younger one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from migrator.adapters.sources.postgres.change_tables.capture_facts import missing_for, undisturbed
from migrator.adapters.sources.postgres.change_tables.layout import SCHEMA
from migrator.adapters.sources.postgres.change_tables.place import Place, ended, text
from migrator.adapters.sources.postgres.change_tables.polls import (
    Fresh,
    Part,
    between,
    fresh,
    read_part,
)
from migrator.adapters.sources.postgres.change_tables.same_changes import (
    LastChange,
    check_same,
    last_change,
    shown,
)
from migrator.adapters.sources.postgres.change_tables.view import (
    FLUSH_S,
    VIEW,
    View,
    not_on_disk,
    on_disk,
)
from migrator.adapters.sources.postgres.chunks.witness import SnapshotWitness
from migrator.adapters.sources.postgres.log.unlogged_changes import UnloggedChanges
from migrator.adapters.sources.postgres.reflection import ReflectedTable, psycopg_query, reflect
from migrator.adapters.sources.postgres.settings import PostgresSource
from migrator.adapters.sources.postgres.watched import PatientConnection
from migrator.columnar.text_codec import TextCodec, text_runs
from migrator.connections.same_server import SameServer
from migrator.errors import GapError, SourceError
from migrator.model.event import LogProgress, LogRecord, TransactionPart
from migrator.model.position import Position
from migrator.model.table import TableId, TableSchema
from migrator.ports.log_notes import LogNotes

_OPENING = "the change tables can't be read"
_MOMENT_S = 0.02
_FORGET_EVERY_S = 1.0
_FORGET_ROWS = 20_000
_BY_INDEX = "SET LOCAL enable_seqscan = off"
_FORGOTTEN = f"SELECT below::text FROM {SCHEMA}.forgotten"


class ChangeTableLogReader:
    """Implements ``LogReader``.

    Args:
        source: where to read.
        schemas: row schemas of the captured tables.
        step: hook at named points.
        same: is told which tables chunks have to come from.
        notes: what looks at the catalog saw; kept up to date (see ``UnloggedChanges``).
    """

    def __init__(
        self,
        source: PostgresSource,
        schemas: Sequence[TableSchema],
        step: Callable[[str], None] = lambda name: None,
        same: SameServer | None = None,
        notes: LogNotes | None = None,
    ):
        self._source = source
        self._same = same or SameServer()
        self._notes = notes or LogNotes()
        self._unlogged = UnloggedChanges(source, self._notes, resumed=False)
        self._schemas = list(schemas)
        self._codecs = {schema.id: TextCodec(schema) for schema in schemas}
        self._step = step
        self._connection = PatientConnection(source, "changes")
        self._forgetting = PatientConnection(source, "forgetting")
        self._place: Place | None = None
        self._tables: list[ReflectedTable] = []
        self._former: dict[TableId, SnapshotWitness] = {}
        self._records: list[LogRecord] = []
        self._proved_on: object = None
        self._pending: View | None = None
        self._found: list[Fresh] | None = None
        self._clock_us = 0
        self._high = 0
        self._index = 0
        self._polled_at = 0.0
        self._forgot_at = 0.0
        self._to_forget = True

    def start(self, after: Position | None) -> Position:
        """See ``LogReader.start``; None starts with what is visible now."""
        self.close()
        self._pending = self._found = None
        needed = partial(missing_for, self._source.choices)
        keys = {schema.id: schema.key for schema in self._schemas}
        self._unlogged = UnloggedChanges(self._source, self._notes, after is not None, needed, keys=keys)
        view = self._connection.call(_OPENING, self._durable_view)
        place = view.place() if after is None else Place.parse(after)
        self._check_server(place, view)
        known = None if after is None else dict(place.capture)
        capture, last = self._connection.call(
            _OPENING, lambda connection: self._checked(connection, place, known)
        )
        self._begin_with_tables()
        self._place = place = replace(place, capture=capture, last=last)
        self._high = self._index = 0
        self._clock_us = view.clock_us
        started = place.position()
        self._records = [LogProgress(started)]
        return started

    def _begin_with_tables(self) -> None:
        """Chunks come from the tables that the first look has found.

        A look sees who writes into the change tables; whoever did before had ended its transactions by then,
        because a trigger comes and goes under a lock that waits for them. So changes of a table that is seen
        for the first time are its own from the next snapshot on, and all of its rows are read after it.
        """
        self._unlogged.first_seen_at(
            lambda: text(self._connection.call(_OPENING, self._durable_view).snapshot)
        )
        self._former = {
            table: SnapshotWitness.parse(snapshot) for table, snapshot in self._unlogged.former().items()
        }
        self._same.follows(self._unlogged.numbers())

    def read(self, timeout_s: float) -> list[LogRecord]:
        """See ``LogReader.read``: at most one poll, or one part of a large one."""
        place = self._started()
        if not self._records:
            if place.to is None:
                self._look(place, timeout_s)
            if self._started().to is not None:
                self._deliver(self._started())
        records, self._records = self._records, []
        return records

    def acknowledge(self, position: Position) -> None:
        """See ``LogReader.acknowledge``; deletes rows if that is configured, a bounded number now and then."""
        resting = time.monotonic() - self._forgot_at < _FORGET_EVERY_S
        if not self._source.forget_changes or not self._to_forget or resting:
            return
        self._forgot_at = time.monotonic()
        below = Place.parse(position).forgettable()
        statement = f"SELECT {SCHEMA}.forget($1::pg_catalog.xid8, $2::int4)"
        rows = self._forgetting.call(
            "captured changes can't be deleted",
            lambda connection: connection.execute(statement, [str(below), _FORGET_ROWS]).fetchone(),
        )
        # Deleting is a transaction itself, so the place moves by it: it must not go on for its own sake.
        self._to_forget = rows is None or rows[0] > 0

    def finish(self) -> None:
        """See ``LogReader.finish``."""
        place = self._started()
        self._connection.call(
            _OPENING, lambda connection: self._checked(connection, place, dict(place.capture))
        )

    def close(self) -> None:
        """See ``LogReader.close``."""
        self._connection.close()
        self._forgetting.close()
        self._place = None

    def _started(self) -> Place:
        if self._place is None:
            raise SourceError("the log reader isn't started", remedy="call start() first")
        return self._place

    # -- looking for what is new --------------------------------------------------------------------------------

    def _look(self, place: Place, timeout_s: float) -> None:
        """Finds out whether anything became visible, and sets out to read it once it is on the source's disk."""
        until = time.monotonic() + timeout_s
        due = self._polled_at + self._source.poll_s
        time.sleep(max(0.0, min(due, until) - time.monotonic()))
        if time.monotonic() < due:
            return
        self._polled_at = time.monotonic()
        view = self._pending or self._connection.call(_OPENING, _view)
        self._pending = None
        self._check_server(place, view)
        if view.order() == ended(place.at):
            return
        if not self._connection.call(
            _OPENING, lambda connection: on_disk(_first_of(connection), view, until)
        ):
            self._pending = view  # this one, not a newer one: its end of the log stays where it is
            return
        self._step("changes.poll")
        self._begin(place, replace(place, to=view.snapshot), view.clock_us)

    def _begin(self, known_place: Place, place: Place, clock_us: int) -> None:
        """Begins the poll that ``place`` names; ``known_place``: whose last change is known."""
        known = dict(place.capture)

        def find(connection: Any) -> tuple[list[Fresh], LastChange]:
            _, before = self._checked(connection, known_place, known)
            with _read_only(connection):
                found = fresh(connection, [(table, self._condition(place, table)) for table in self._tables])
                # Of all changes, also those that another table of a captured one's name left.
                return found, last_change(connection, self._tables, _polled(place), before)

        self._found, last = self._connection.call(_OPENING, find)
        self._clock_us, self._high, self._index = clock_us, 0, 0
        self._place = replace(place, last=last)

    def _checked(
        self, connection: Any, place: Place, known: dict[str, str] | None
    ) -> tuple[dict[str, str], LastChange]:
        """Checks that these are the change tables that were read, that capture went on undisturbed, and that nothing
        needed was deleted. Raises GapError, SchemaError.
        """
        with _read_only(connection):
            query = psycopg_query(connection)
            where = f"snapshot {text(place.at)}"
            tables = [schema.id for schema in self._schemas]
            self._unlogged.look_at_numbers(query, tables)
            fresh = self._unlogged.first_seen()
            capture = undisturbed(query, self._schemas, self._source.choices, known, where, fresh)
            self._unlogged.look_at_values(query, tables)
            ((below,),) = query(_FORGOTTEN, [])
            if int(below) > place.at.xmin:
                raise GapError(
                    "captured changes that were not read yet have been deleted",
                    where=f"{self._source.server.address} after {where}",
                    cause=f"changes of transactions below {below} were deleted, needed from {place.at.xmin} on",
                    remedy="start the migration anew (docs/how-to/start-anew.md); two migrations of one"
                    " source must not both delete what they have read",
                )
            if not self._tables:
                found = [
                    reflect(query, schema.id, self._source.choices(schema.id)) for schema in self._schemas
                ]
                self._tables = [table for table in found if table is not None]
            last = self._proved(connection, place)
        return capture, last

    def _proved(self, connection: Any, place: Place) -> LastChange:
        """The last change before the place, on each connection that is new. Raises ``GapError``."""
        if place.last is None:
            return last_change(connection, self._tables, shown(place.shows()), LastChange())
        if connection is not self._proved_on:
            (below,) = connection.execute(_FORGOTTEN).fetchone()
            asked = self._notes.asked_for(TableId(place.last.schema, place.last.table))
            known = replace(place.last, digest="") if asked else place.last
            check_same(
                connection, self._tables, known, place.shows(), int(below), self._source.server.address
            )
            self._proved_on = connection
            if asked:
                return last_change(
                    connection, self._tables, shown(place.shows()), LastChange(high=known.high)
                )
        return place.last

    def _check_server(self, place: Place, view: View) -> None:
        problem = ""
        if place.server.system != view.server.system:
            problem = f"the position is of server {place.server.system}, this is server {view.server.system}"
        elif place.server.timeline != view.server.timeline:
            problem = (
                f"the position is of timeline {place.server.timeline}, the server is on {view.server.timeline}:"
                " it was promoted or restored, and transactions may have been lost on the way"
            )
        elif view.order() < ended(place.at) or (place.to is not None and view.order() < ended(place.to)):
            problem = "the position is of this server's future: it was restored from a copy"
        if problem:
            raise GapError(
                "the change tables don't go on from the position that is needed",
                where=self._source.server.address,
                cause=problem,
                remedy="check that this is the same server as before; else start the migration anew"
                " (docs/how-to/start-anew.md)",
            )

    # -- delivering ---------------------------------------------------------------------------------------------

    def _deliver(self, place: Place) -> None:
        """Reads the next part of the poll that was begun."""
        if self._found is None:  # begun before a restart
            self._begin(place, place, self._clock_us)
        part = self._connection.call(_OPENING, lambda connection: self._part(connection, place))
        reached = replace(place.reached(), capture=place.capture)
        position = reached.position()
        if self._high == 0 and part.last:
            self._append(part, position)
        else:
            if self._high == 0:
                self._records.append(LogProgress(place.position()))  # which poll this is: see ``Place.to``
            self._append(part, position)
        self._high = part.high
        self._index += len(part.changes)
        if part.last:
            self._place, self._found = reached, None

    def _append(self, part: Part, position: Position) -> None:
        if not part.changes and self._index == 0:
            self._records.append(LogProgress(position))
            return
        self._to_forget = True
        runs = text_runs(self._codecs, part.changes)
        self._records.append(
            TransactionPart((position.order,), position, self._clock_us, self._index, runs, part.last)
        )

    def _part(self, connection: Any, place: Place) -> Part:
        with _read_only(connection):
            self._proved(connection, place)
            return read_part(
                connection,
                self._found or [],
                self._high,
                self._source.part_rows,
                self._source.part_bytes,
            )

    def _condition(self, place: Place, table: ReflectedTable) -> str:
        """Returns a poll's rows of a table, without what another one of its name left (see ``identity``)."""
        former = self._former.get(table.schema.id, place.at)
        return _polled(replace(place, at=max(place.at, former, key=ended)))

    def _durable_view(self, connection: Any) -> View:
        view = _view(connection)
        if not on_disk(_first_of(connection), view, time.monotonic() + FLUSH_S):
            raise not_on_disk(self._source.server.address)
        return view


def _polled(place: Place) -> str:
    """Returns the condition for a poll's rows. Raises ``SourceError`` if no poll was begun."""
    if place.to is None:
        raise SourceError("no poll was begun", where=text(place.at))
    return between(place.at, place.to)


def _view(connection: Any) -> View:
    return View.of(connection.execute(VIEW).fetchone())


def _first_of(connection: Any) -> Callable[[str], Any]:
    return lambda statement: connection.execute(statement).fetchone()[0]


@contextmanager
def _read_only(connection: Any) -> Iterator[None]:
    """One snapshot for all statements within."""
    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    connection.execute(
        _BY_INDEX
    )  # a poll must cost what is new, not what is kept, whatever the server believes
    yield
    connection.execute("COMMIT")
