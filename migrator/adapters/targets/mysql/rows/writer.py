"""One batch inside its transaction: load, deletes, moves, updates, inserts.

All deletes come first, over all tables, and rows whose unique values change are among them: so a value may move on,
swap, or be inherited by a new row. No row is written by ``INSERT ... ON DUPLICATE KEY UPDATE``, which would update
another row than the one with the key when a second unique index matches.

Foreign keys are off in the session (``foreign_key_checks``): the server checks them row by row, never at the
end of a statement, and an order that suits every batch does not exist; and a cascade would change rows that
nobody mapped. Instead every foreign key of the rows just written is checked by query before the commit. While
a dump isn't complete children may come before their parents; whole tables are checked in the transaction that
completes the dump.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from migrator.adapters.targets.mysql.refusal import Refusal
from migrator.adapters.targets.mysql.rows.explain import Build, not_loaded, not_merged
from migrator.adapters.targets.mysql.rows.merge import orphan, qualified, quoted
from migrator.adapters.targets.mysql.rows.orphans import ORPHANS
from migrator.adapters.targets.mysql.rows.prepared import Prepared
from migrator.adapters.targets.mysql.session import Session
from migrator.adapters.targets.mysql.structure import Structure
from migrator.adapters.targets.shared.orphans import Orphans
from migrator.adapters.targets.shared.refused import not_as_written
from migrator.adapters.targets.shared.rows import one_key
from migrator.adapters.targets.shared.structure import ForeignKey
from migrator.model.table import TableId
from migrator.ports.target import OrphansAside


class BatchWriter:
    """Writes prepared rows in the session's open transaction.

    Raises ``TargetError`` (the transaction must then be rolled back), ``ConnectionLost``.
    """

    def __init__(
        self,
        session: Session,
        known: Mapping[TableId, Structure],
        step: Callable[[str], None] = lambda name: None,
        triggers: Mapping[TableId, tuple[str, ...]] = MappingProxyType({}),
        orphans: OrphansAside | None = None,
    ):
        self._session = session
        self._known = known
        self._step = step
        self._triggers = triggers
        tables = {table: one.table for table, one in known.items()}
        self._orphans = Orphans(session, tables, self._foreign_keys(), orphans, ORPHANS)

    def empty(self, tables: Sequence[TableId]) -> None:
        """Deletes all their rows. Not by TRUNCATE, which would commit."""
        for table in tables:
            self._session.run(f"DELETE FROM {qualified(table)}")

    def write(self, batch: Sequence[Prepared], checked: bool) -> None:
        """Merges all rows. ``checked``: whether their foreign keys must hold."""
        ordered = sorted(batch, key=lambda one: one.id)  # every writer takes its locks in the same order
        for one in ordered:
            self._load(one)
        self._step("target.loaded")
        for one in ordered:
            self._make_room(one)
        for one in ordered:
            self._put(one)
        for one in ordered:
            if one.id in self._triggers:
                self._check_held(one, self._triggers[one.id])
        if checked:
            for one in ordered:
                self._check_written(one)

    def insert(self, one: Prepared, there: bool) -> None:
        """Inserts rows into a table that nobody else sees, and that has none; not ``there``: only stages them."""
        self._load(one, there)
        if there:
            self._run(one, one.merge.after, one.merge.insert_new)

    def check_foreign_keys(self) -> None:
        """Checks every foreign key of all target tables. Raises ``TargetError`` naming key and value."""
        for key in self._foreign_keys():
            self._refuse_orphans(key, orphan(key, self._child_key(key)), self._child_key(key))

    def set_orphans_aside(self) -> None:
        """Takes out, at the end, the rows whose foreign keys were found to point at nothing."""
        self._orphans.settle()

    def _foreign_keys(self) -> list[ForeignKey]:
        keys = {key for one in self._known.values() for key in (*one.outgoing, *one.incoming)}
        return sorted(keys, key=lambda one: (one.child, one.name))

    def _load(self, one: Prepared, there: bool = True) -> None:
        loads = ["{0}", *(encoded.load for encoded in one.encoded)]
        for staged, first, last in one.staged():

            def load(begin: int, end: int, staged: str = staged) -> None:
                rows = one.texts(begin, end)
                self._session.load(staged, rows.column_names, loads, rows)

            try:
                load(first, last)
            except Refusal as refusal:
                raise not_loaded(self._session, refusal, one, staged, load) from None
        for name, keys in ((one.merge.before, one.before), (one.merge.doubted, one.doubted)):
            if keys is not None:
                rows = one.key_texts(keys)
                loads = ["{0}", *(encoded.load for encoded in keys)]
                self._session.load(name, rows.column_names, loads, rows)
        for statement in one.merge.net_chunk():
            self._session.run(statement)
        if there and not one.replaces:  # of a table that is filled anew, rows of an earlier mapping are there
            for query in one.merge.clashes():
                for row in self._session.rows(query):
                    raise one_key(one.id, one.structure.table.key, row, one.structure.key_compares())

    def _make_room(self, one: Prepared) -> None:
        """Deletes what vanishes, and what is to be inserted again."""
        if one.doubted is not None:
            self._run(one, "", lambda more: one.merge.delete_doubted())
        if one.before is not None:
            self._run(one, "", lambda more: one.merge.delete())
        if not one.structure.moving(one.merge.written):
            return
        for staged, _, _ in one.staged():
            strict = one.strict and staged == one.merge.after
            if strict and not one.merge.before:
                continue  # all are new: what is there already is an error
            if one.merge.saved:
                self._session.run(one.merge.save_moving(staged, strict))
            self._session.run(one.merge.move_away(staged, strict))

    def _put(self, one: Prepared) -> None:
        merge = one.merge
        for staged, _, _ in one.staged():
            strict = one.strict and staged == merge.after
            if not strict or merge.before:
                self._run(one, staged, _update(one, staged, strict))
            if strict:
                self._run(one, staged, merge.insert_new)
            if not strict or merge.before:
                if merge.saved:
                    self._run(one, staged, _bound(merge.insert_again, staged))
                self._run(one, staged, _bound(merge.insert_missing, staged))

    def _check_held(self, one: Prepared, triggers: Sequence[str]) -> None:
        """Raises ``BesideError`` for a row of which a trigger has changed a value."""
        for staged, _, _ in one.staged():
            for row in self._session.rows(one.merge.otherwise(staged)):
                off = "; ".join(f"DROP TRIGGER {quoted(one.id.schema)}.{quoted(name)}" for name in triggers)
                raise not_as_written(one.id, one.structure.table.key, row, triggers, off)

    def _run(self, one: Prepared, staged: str, build: Build) -> None:
        try:
            self._session.run(build(""))
        except Refusal as refusal:
            raise not_merged(self._session, refusal, one, staged, build) from None

    def _check_written(self, one: Prepared) -> None:
        own = one.structure.table.key
        for key in one.structure.outgoing:
            for staged, _, _ in one.staged():
                self._refuse_orphans(key, one.merge.staged_orphan(staged, key), own)
        for key in one.structure.incoming:  # a value that children point at may have gone or changed
            child_key = self._child_key(key)
            if set(key.parent_columns) != set(own):
                self._refuse_orphans(key, orphan(key, child_key), child_key)
            elif one.before is not None:
                self._refuse_orphans(key, one.merge.bereaved(key, child_key), child_key)

    def _refuse_orphans(self, key: ForeignKey, query: str, child_key: Sequence[str]) -> None:
        for found in self._session.rows(query):
            self._orphans.met(key, child_key, found)

    def _child_key(self, key: ForeignKey) -> tuple[str, ...]:
        child = self._known.get(key.child)
        return child.table.key if child is not None else ()


def _update(one: Prepared, staged: str, strict: bool) -> Build:
    return lambda more: one.merge.update(staged, strict, more)


def _bound(build: Callable[[str, str], str], staged: str) -> Build:
    return lambda more: build(staged, more)
