"""One batch inside its transaction: load, deletes, moves, inserts, upserts, in an order that constraints allow.

Ordinary plan. Upserts parent-first, then deletes child-first: right for foreign keys. When a touched table has
uniqueness beside its key, deletes come first, because a new row may take a value that a vanishing row had.
Where the ordinary plan meets a foreign key (both at once, or a cycle), or would fire a cascade, the merge is
rolled back to its savepoint and done in the relaxed plan: foreign keys off (``session_replication_role``),
deletes first, and every foreign key of the rows just written checked by query before the commit.

While a dump isn't complete the whole transaction is relaxed, because children may come before their parents; the
keys of whole tables are checked in the transaction that completes the dump. So they are where a table is
emptied: all its rows go first, and what the batch brings is written to what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from migrator.adapters.targets.postgres.refusal import (
    FOREIGN_KEY_VIOLATIONS,
    UNIQUE_VIOLATION,
    NeedsRelaxedKeys,
    Refusal,
)
from migrator.adapters.targets.postgres.rows.explain import explained, not_kept
from migrator.adapters.targets.postgres.rows.merge import orphan, qualified, quoted
from migrator.adapters.targets.postgres.rows.order import parents_first
from migrator.adapters.targets.postgres.rows.orphans import ORPHANS
from migrator.adapters.targets.postgres.rows.prepared import Prepared
from migrator.adapters.targets.postgres.rows.triggers import check_written
from migrator.adapters.targets.postgres.session import Session
from migrator.adapters.targets.postgres.structure import ForeignKey, Structure
from migrator.adapters.targets.shared.orphans import Orphans
from migrator.adapters.targets.shared.rows import one_key
from migrator.errors import TargetError
from migrator.model.table import TableId
from migrator.ports.target import OrphansAside

_AVOIDED_BATCHES = 20
_UPDATES_FROM_ROWS = 1000
"""The number of rows from which an update is worth the statements around it."""
_LOAD = quoted("migrator_load")
_MERGE = quoted("migrator_merge")


class DirectLoads:
    """Remembers for which tables loading straight into the target ended in a conflict, for some batches."""

    def __init__(self) -> None:
        self._left: dict[TableId, int] = {}

    def allowed(self, table: TableId) -> bool:
        """Tells whether to try a direct load; counts the batches that may not."""
        left = self._left.get(table, 0)
        if left:
            self._left[table] = left - 1
        return not left

    def conflict(self, table: TableId) -> None:
        """Staging is better for the next batches: rows exist already (a repeated dump, a repair)."""
        self._left[table] = _AVOIDED_BATCHES


class BatchWriter:
    """Writes prepared rows in the session's open transaction.

    Raises ``TargetError`` (the transaction must then be rolled back), ``ConnectionLost``.

    Attributes:
        triggers: names of triggers by the tables that have any.
    """

    def __init__(
        self,
        session: Session,
        role: str,
        direct_loads: DirectLoads,
        known: Mapping[TableId, Structure],
        step: Callable[[str], None] = lambda name: None,
        triggers: Mapping[TableId, tuple[str, ...]] = MappingProxyType({}),
        orphans: OrphansAside | None = None,
    ):
        self._session = session
        self._role = role
        self.triggers = triggers
        self._direct_loads = direct_loads
        self._known = known
        self._step = step
        self._relaxed = False
        tables = {table: one.table for table, one in known.items()}
        self._orphans = Orphans(session, tables, self._foreign_keys(), orphans, ORPHANS)

    @property
    def relaxed(self) -> bool:
        """Tells whether no foreign key can stand in the way: there are none, or they are off."""
        return self._relaxed or not any(one.outgoing or one.incoming for one in self._known.values())

    def relax(self) -> None:
        """Turns foreign keys off for the rest of the transaction if any target table has one."""
        named = [str(one.table.id) for one in self._known.values() if one.outgoing or one.incoming]
        if not named:
            return
        try:
            self._set_replica()
        except Refusal as refusal:
            raise TargetError(
                "foreign keys can't hold while a dump runs or a table is emptied, and"
                f" {self._role} may not turn them off",
                where=", ".join(named),
                cause=refusal.cause(),
                remedy=relax_grant(self._role),
            ) from None

    def empty(self, tables: Sequence[TableId]) -> None:
        """Deletes all their rows. Not by TRUNCATE, which a reader with an older snapshot would see at once."""
        for table in tables:
            self._session.run(f"DELETE FROM {qualified(table)}")

    def write(self, batch: Sequence[Prepared]) -> None:
        """Merges all rows."""
        place = {table: rank for rank, table in enumerate(parents_first(_references(batch)))}
        ordered = sorted(batch, key=lambda one: place[one.id])
        deferrable = any(one.structure.deferrable for one in ordered)
        if deferrable:
            self._session.run("SET CONSTRAINTS ALL DEFERRED")
        # One for all: whatever is refused, of the tables loaded before it nothing is needed any more.
        self._session.run(f"SAVEPOINT {_LOAD}")
        for one in ordered:
            self._load(one)
        self._step("target.loaded")
        self._merge_loaded(ordered, deferrable)
        check_written(self._session, ordered, self.triggers)

    def _merge_loaded(self, ordered: Sequence[Prepared], deferrable: bool) -> None:
        self._session.run(f"SAVEPOINT {_MERGE}")
        try:
            self._merge(ordered, deletes_first=self._relaxed or _exclusive(ordered))
            if deferrable:
                self._settle(ordered)
        except NeedsRelaxedKeys:
            self._merge_relaxed(ordered, None)
        except _Refused as refused:
            if self._relaxed or refused.refusal.sqlstate not in FOREIGN_KEY_VIOLATIONS:
                self._session.run(f"ROLLBACK TO SAVEPOINT {_MERGE}")
                raise explained(self._session, refused.refusal, refused.prepared) from None
            self._merge_relaxed(ordered, refused)

    def insert(self, one: Prepared) -> None:
        """Inserts rows into a table that nobody else sees, and that has none."""
        self._session.run(f"SAVEPOINT {_LOAD}")
        self._load(one)
        self._session.run(f"SAVEPOINT {_MERGE}")
        try:
            self._run(one, one.merge.insert_all())
        except _Refused as refused:
            self._session.run(f"ROLLBACK TO SAVEPOINT {_MERGE}")
            raise explained(self._session, refused.refusal, refused.prepared) from None

    def check_foreign_keys(self) -> None:
        """Checks every foreign key of all target tables. Raises ``TargetError`` naming key and value."""
        child_keys = {one.table.id: one.table.key for one in self._known.values()}
        for key in self._foreign_keys():
            child_key = child_keys.get(key.child, ())
            self._refuse(key, child_key, orphan(key, child_key))

    def set_orphans_aside(self) -> None:
        """Takes out, at the end, the rows whose foreign keys were found to point at nothing."""
        if self._orphans.waiting():
            self.relax()
            self._orphans.settle()

    def _foreign_keys(self) -> list[ForeignKey]:
        keys = {key for one in self._known.values() for key in (*one.outgoing, *one.incoming)}
        return sorted(keys, key=lambda one: (one.child, one.name))

    def _load(self, one: Prepared) -> None:
        first = 0
        if (
            not self.triggers
            and one.direct()
            and self._direct_loads.allowed(one.id)
            and self._load_directly(one)
        ):
            first = one.chunk_rows
        one.check_keys(first)
        staged_rows = one.source.num_rows - first
        if staged_rows:
            self._load_staging(one, first)
            self._check_kept(one)
        if one.before is not None:
            self._session.load(one.merge.before, one.before)
        if one.doubted is not None:
            self._session.load(one.merge.doubted, one.doubted)
        if first < one.chunk_rows and (one.before is not None or one.source.num_rows > one.chunk_rows):
            for statement in one.merge.net_chunk():
                self._session.run(statement)
        if staged_rows and not one.structure.key_is_exact():
            self._refuse_one_key(one)

    def _refuse_one_key(self, one: Prepared) -> None:
        """Raises ``TargetError`` for keys of two source rows that the target takes for one."""
        queries = [one.merge.duplicates()]
        if not one.replaces:  # of a table that is filled anew, rows of an earlier mapping are there
            queries.append(one.merge.clash())
        for query in queries:
            for row in self._session.rows(query):
                raise one_key(one.id, one.structure.table.key, row, one.structure.key_compares())

    def _load_directly(self, one: Prepared) -> bool:
        """Loads the chunk rows straight into the table; undoes it and returns False when some exist already."""
        self._session.run(f"SAVEPOINT {_LOAD}")
        try:
            self._session.load(one.id, one.for_target())
        except Refusal as refusal:
            self._session.run(f"ROLLBACK TO SAVEPOINT {_LOAD}")
            if refusal.sqlstate == UNIQUE_VIOLATION:
                self._direct_loads.conflict(one.id)
                return False
            raise explained(self._session, refusal, one) from None
        return True

    def _load_staging(self, one: Prepared, first: int) -> None:
        try:
            self._session.load(one.merge.staging, one.for_staging(first, one.source.num_rows))
        except Refusal as refusal:
            self._session.run(f"ROLLBACK TO SAVEPOINT {_LOAD}")
            raise explained(self._session, refusal, one, first) from None

    def _check_kept(self, one: Prepared) -> None:
        """Refuses staged values of which the columns would keep less, without a word of the server."""
        for name, encoded in zip(one.merge.written, one.encoded, strict=True):
            if not encoded.lost:
                continue
            query = one.merge.lost(name, encoded.lost)
            try:
                found = self._session.rows(query)
            except Refusal as refusal:
                self._session.run(f"ROLLBACK TO SAVEPOINT {_LOAD}")
                raise explained(self._session, refusal, one) from None
            if found:
                raise not_kept(self._session, one, name, found[0], query)

    def _merge(self, ordered: Sequence[Prepared], deletes_first: bool) -> None:
        if deletes_first:
            for one in reversed(ordered):
                self._delete(one)
        for one in ordered:
            self._upsert(one)
        if not deletes_first:
            for one in reversed(ordered):
                self._delete(one)

    def _merge_relaxed(self, ordered: Sequence[Prepared], refused: _Refused | None) -> None:
        self._session.run(f"ROLLBACK TO SAVEPOINT {_MERGE}")
        try:
            self._set_replica()
        except Refusal as refusal:
            self._session.run(f"ROLLBACK TO SAVEPOINT {_MERGE}")
            if refused is not None:
                error = explained(self._session, refused.refusal, refused.prepared)
                raise TargetError(
                    error.what,
                    where=error.where,
                    cause=error.cause,
                    remedy=f"{error.remedy}; if the rows are right in the end: {relax_grant(self._role)}",
                ) from None
            raise TargetError(
                "rows change in an order that a cascading foreign key forbids",
                cause=refusal.cause(),
                remedy=relax_grant(self._role),
            ) from None
        try:
            self._merge(ordered, deletes_first=True)
        except _Refused as final:
            self._session.run(f"ROLLBACK TO SAVEPOINT {_MERGE}")
            raise explained(self._session, final.refusal, final.prepared) from None
        self._session.run("SET LOCAL session_replication_role = origin")
        self._relaxed = False
        for one in ordered:
            self._check_written(one)

    def _check_written(self, one: Prepared) -> None:
        for key in one.structure.outgoing:
            self._refuse(key, one.structure.table.key, one.merge.staged_orphan(key))
        for key in one.structure.incoming:  # a value that children point at may have gone or changed
            child = self._known.get(key.child)
            child_key = child.table.key if child is not None else ()
            self._refuse(key, child_key, one.merge.bereaved(key, child_key) or orphan(key, child_key))

    def _refuse(self, key: ForeignKey, child_key: Sequence[str], query: str) -> None:
        """Raises ``TargetError`` where a query finds a row without its parent, unless it may go aside."""
        for found in self._session.rows(query):
            self._orphans.met(key, child_key, found)

    def _delete(self, one: Prepared) -> None:
        if one.doubted is not None:
            self._run(one, one.merge.delete_doubted())
        if one.before is None:
            return
        if not self._relaxed:
            for key in one.structure.incoming:
                if key.acts() and self._run(one, one.merge.vanishing_parents(key), read=True):
                    raise NeedsRelaxedKeys
        self._run(one, one.merge.delete())

    def _upsert(self, one: Prepared) -> None:
        if not one.source.num_rows:
            return
        if one.structure.moving(one.merge.written):
            guarded = not self._relaxed and any(key.on_delete != "a" for key in one.structure.incoming)
            if guarded and self._run(one, one.merge.any_moving(), read=True):
                raise NeedsRelaxedKeys
            self._run(one, one.merge.move(one.strict))
        if one.strict:
            self._run(one, one.merge.insert_new())
        if not self._updated(one):
            self._run(one, one.merge.upsert(one.strict))

    def _updated(self, one: Prepared) -> bool:
        """Tries a plain update; True if it wrote all rows. It takes a fifth less: an upsert locks each row first.

        Each row is looked up by the key's index, as an upsert does it: to join, the server may read the whole
        table. Where keys lie close together, that part of the index is read along with them: at most two rows
        for one.
        """
        rows = one.source.num_rows
        if not one.updates or rows < _UPDATES_FROM_ROWS or not one.merge.updatable():
            return False
        span = one.span()
        avoided = ("enable_hashjoin", "enable_mergejoin" if span is None else "enable_nestloop")
        off = "".join(f"SET LOCAL {setting} = off; " for setting in avoided)
        on = "; ".join(f"SET LOCAL {setting} TO DEFAULT" for setting in avoided)
        try:
            written = self._session.changed(off + one.merge.update(span))
        except Refusal as refusal:
            raise _Refused(refusal, one) from None
        self._session.changed(on)
        return bool(written == rows)  # else some row isn't there: the upsert brings it

    def _run(self, one: Prepared, statement: str, read: bool = False) -> bool:
        """Runs a statement for a table; for a query, whether it found a row."""
        try:
            if read:
                return bool(self._session.rows(statement))
            self._session.run(statement)
        except Refusal as refusal:
            raise _Refused(refusal, one) from None
        return False

    def _settle(self, ordered: Sequence[Prepared]) -> None:
        """Makes deferred constraints speak now, while the rows at fault can still be found."""
        try:
            self._session.run("SET CONSTRAINTS ALL IMMEDIATE")
        except Refusal as refusal:
            at_fault = next((one for one in ordered if one.id.name == refusal.table), ordered[0])
            raise _Refused(refusal, at_fault) from None

    def _set_replica(self) -> None:
        self._session.run("SET LOCAL session_replication_role = replica")
        self._relaxed = True


class _Refused(Exception):
    """A refusal together with the table whose statement met it."""

    def __init__(self, refusal: Refusal, prepared: Prepared):
        super().__init__(str(refusal))
        self.refusal = refusal
        self.prepared = prepared


def relax_grant(role: str) -> str:
    """The grant that lets a role turn foreign keys off for its own transactions."""
    return f"as a superuser: GRANT SET ON PARAMETER session_replication_role TO {quoted(role)}"


def _exclusive(ordered: Sequence[Prepared]) -> bool:
    return any(one.structure.exclusive and one.before is not None for one in ordered)


def _references(batch: Sequence[Prepared]) -> dict[TableId, tuple[TableId, ...]]:
    return {one.id: one.structure.table.references for one in batch}
