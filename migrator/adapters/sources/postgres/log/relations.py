"""The log reader's knowledge of the relations of its stream: which are captured, and with which row
schema.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from migrator.adapters.sources.postgres.chunks.witness import SnapshotWitness
from migrator.adapters.sources.postgres.log.pgoutput import (
    Insert,
    Relation,
    RowMessage,
    Truncate,
    Update,
)
from migrator.adapters.sources.postgres.log.present_names import present_names
from migrator.adapters.sources.postgres.log.row_codec import RowCodec
from migrator.adapters.sources.postgres.log.schema_change import carried_on
from migrator.adapters.sources.postgres.reflection import Query, describe_types, other_numbers, reflect
from migrator.adapters.sources.postgres.settings import CONTROL_SCHEMA, WATERMARK_TABLE, Choices
from migrator.adapters.sources.postgres.whole_images import incomplete_image
from migrator.errors import SchemaError, SourceError
from migrator.model.event import TransactionId
from migrator.model.table import Column, TableId, TableSchema

WATERMARK_ID = TableId(CONTROL_SCHEMA, WATERMARK_TABLE)


@dataclass(frozen=True, slots=True)
class Captured:
    """A captured table in the stream: what reads its rows, and whether it logs whole old ones."""

    codec: RowCodec
    full_images: bool

    @property
    def schema(self) -> TableSchema:
        """The relation's row schema."""
        return self.codec.schema


@dataclass(frozen=True, slots=True)
class RelationFacts:
    """The columns of a Relation message with their types resolved, and the table as the catalog has it at
    present.

    ``current`` is False when the catalog was read with a snapshot that lacks the transaction of the message:
    commits are in the log before they are visible, and DDL is no exception. ``dropped``: the numbers of columns
    that the table has no more.
    """

    columns: tuple[Column, ...]
    now: TableSchema | None
    numbers: tuple[tuple[str, int], ...] = ()
    current: bool = True
    dropped: frozenset[int] = frozenset()

    def by_present_names(self, needs: Callable[[str], bool], noted: Mapping[str, int]) -> RelationFacts:
        """The same, with columns under the names that they have now, where a mapping needs those.

        ``noted``: their numbers as they were noted at some earlier time.
        """
        seen = [column.name for column in self.columns]
        names = present_names(seen, self.numbers, self.dropped, noted)
        columns = tuple(
            replace(column, name=new) if needs(new := names.get(column.name, column.name)) else column
            for column in self.columns
        )
        return replace(self, columns=columns)


@dataclass(frozen=True, slots=True)
class _InDoubt:
    """A Relation message to be looked at again, with the schema known before it."""

    relation: Relation
    transaction: TransactionId
    known: TableSchema
    where: str


@dataclass(frozen=True, slots=True)
class Places:
    """Places of the log up to which some tables are of no interest.

    Attributes:
        former: others may have had their names; those were never captured.
        left_out: their own changes: all of their rows are dumped after it.
    """

    former: Mapping[TableId, int]
    left_out: Mapping[TableId, int]


_SNAPSHOT = "SELECT pg_catalog.pg_current_snapshot()::text, pg_catalog.pg_is_in_recovery()"
Lookup = Callable[[Relation, TableId, TransactionId], RelationFacts]


def catalog_lookup(query: Query, choices: Choices) -> Lookup:
    """Resolves a Relation message, of a captured table and of a transaction, with the source's catalog."""

    def lookup(relation: Relation, name: TableId, transaction: TransactionId) -> RelationFacts:
        # First: what is read after it contains at least as much.
        ((snapshot, standby),) = query(_SNAPSHOT, [])
        # A standby sends nothing that it hasn't replayed, so it shows whatever it sends.
        current = bool(standby) or SnapshotWitness.parse(snapshot).contains(transaction)
        described = describe_types(
            query, [(column.type_oid, column.type_modifier) for column in relation.columns]
        )
        chosen = choices(name)
        columns = tuple(
            Column(column.name, "string" if column.name in chosen.as_text else logical, True, declared)
            for column, (declared, logical) in zip(relation.columns, described, strict=True)
        )
        table = reflect(query, name, chosen)
        if table is None or table.oid != relation.oid:  # it has another name by now
            return RelationFacts(columns, None, current=current)
        numbers = tuple((reflected.column.name, reflected.number) for reflected in table.columns)
        return RelationFacts(columns, table.schema, numbers, current, other_numbers(query, table))

    return lookup


class Relations:
    """The relations of one stream, by OID.

    Args:
        schemas: row schemas of the captured tables, as used so far.
        lookup: asked once per Relation message of a captured table, and again for those that were in doubt.

    Attributes:
        codecs: by how their messages begin (``HEAD_BYTES``): those of row changes that are captured and whole.
    """

    def __init__(self, schemas: Sequence[TableSchema], lookup: Lookup):
        self._known = {schema.id: schema for schema in schemas}
        self._lookup = lookup
        self._captured: dict[int, Captured] = {}
        self.codecs: dict[bytes, RowCodec] = {}
        self._watermark: set[int] = set()
        self._numbers: dict[TableId, dict[str, int]] = {}
        self._noted: Mapping[TableId, Mapping[str, int]] = {}
        self._tables: dict[int, TableId] = {}
        self._places = Places({}, {})
        self._seen: dict[int, Relation] = {}
        self._left_out: dict[int, Relation] = {}
        self._in_doubt: dict[TableId, _InDoubt] = {}
        self._passed: dict[int, SchemaError] = {}
        self._root: Relation | None = None
        self._by_half: dict[int, int] = {}

    def follow(
        self,
        numbers: Mapping[TableId, int],
        places: Places,
        columns: Mapping[TableId, Mapping[str, int]],
        noted: Mapping[TableId, Mapping[str, int]] = MappingProxyType({}),
    ) -> None:
        """Captured tables, and their columns, are told by these numbers from now on (see ``identity``).

        ``noted``: numbers of columns as they were noted before.
        """
        self._noted = noted
        self._tables = {number: table for table, number in numbers.items()}
        self._places = places
        self._numbers = {table: dict(found) for table, found in columns.items()}

    def entered(self, place: int) -> list[Relation]:
        """Leaves out what is of no interest at the place where a transaction begins that wasn't delivered before.

        Returns the relations that were left out until now: to be seen again.
        """
        for oid, table in self._tables.items() if self._places.left_out else ():
            found = self._seen.get(oid)
            if found is not None and self._is_left_out(table, place):
                self._leave_out(found)
        due = [one for oid, one in self._left_out.items() if not self._is_left_out(self._tables[oid], place)]
        for relation in due:
            del self._left_out[relation.oid]
        return due

    def _is_left_out(self, table: TableId, place: int) -> bool:
        return place <= self._places.left_out.get(table, -1)

    def _leave_out(self, relation: Relation) -> None:
        """Stops capturing a relation. Messages of its partitions go on to tell whether their old rows are whole."""
        self._root = self._left_out[relation.oid] = relation
        self._captured.pop(relation.oid, None)
        self._forget_heads(relation.oid)

    def is_other(self, relation: Relation, place: int) -> bool:
        """Tells whether the relation has a captured table's name at that place of the log, and is another one."""
        name = TableId(relation.schema, relation.name)
        known = name in self._known and relation.oid not in self._tables
        return known and place > self._places.former.get(name, -1)

    def schemas(self) -> list[TableSchema]:
        """The row schemas as of the place read last."""
        return list(self._known.values())

    def captured(self, oid: int) -> Captured | None:
        """The captured table of that OID, or None for a table that isn't captured."""
        return self._captured.get(oid)

    def touched(self, message: object) -> bool:
        """Tells whether a message that no codec reads tells of a change of captured tables."""
        oids: Sequence[int] = ()
        if isinstance(message, Truncate):
            oids = message.relation_oids
        elif isinstance(message, RowMessage):
            oids = (message.relation_oid,)
        return any(oid in self._captured or oid in self._passed for oid in oids)

    def check_known(self, oid: int) -> None:
        """Raises ``SchemaError`` where a change comes under a structure that was only passed by (see ``see``)."""
        if oid in self._passed:
            raise self._passed[oid]

    def is_watermark(self, oid: int) -> bool:
        """Tells whether the relation is our own watermark table."""
        return oid in self._watermark

    def see(
        self, relation: Relation, transaction: TransactionId, place: int, where: str, passing: bool = False
    ) -> TableSchema | None:
        """Takes a Relation message in; returns the new row schema if it changed. Raises SchemaError,
        named.

        Args:
            relation: what it says.
            transaction: in which it came.
            place: that transaction's in the log.
            where: the same in words.
            passing: whether the transaction was delivered before. A mapping that was adapted since may need what the
                table had no more then: that is an error only if a change comes that wasn't delivered.
        """
        name = TableId(relation.schema, relation.name)
        if name == WATERMARK_ID:
            self._watermark.add(relation.oid)
            return None
        table = self._tables.get(relation.oid)
        if table is None:
            if self.is_other(relation, place):
                raise _renamed(name, f"another table (number {relation.oid}) has its name there", where)
            self._see_partition(relation)
            return None
        self._seen[relation.oid] = relation
        if not passing and self._is_left_out(table, place):
            self._leave_out(relation)
            return None
        known = self._known[table]
        facts = self._lookup(relation, table, transaction).by_present_names(
            known.needs, self._noted.get(table, {})
        )
        self._in_doubt.pop(table, None)
        try:
            self._check_numbers(table, facts, where)
            schema = carried_on(known, facts.columns, facts.now, where)
        except SchemaError as error:
            if not passing:
                raise
            self._passed[relation.oid] = error
            self._captured.pop(relation.oid, None)
            self._forget_heads(relation.oid)
            return None
        self._passed.pop(relation.oid, None)
        if not facts.current:
            self._in_doubt[table] = _InDoubt(relation, transaction, known, where)
        self._root = relation
        self._capture(relation, schema)
        self._known[table] = schema
        return schema if schema is not known else None

    def _see_partition(self, relation: Relation) -> None:
        """A partition's Relation message follows its root's, under whose name its changes come.

        Without its own full identity its old rows have nothing but keys, though the root's says that they are
        whole. Which rows are a partition's the log doesn't say: while one is so, no UPDATE or DELETE of the
        table is read.
        """
        root = self._root
        if root is None or (relation.replica_identity == "f") == (relation.oid not in self._by_half):
            return
        if relation.replica_identity == "f":
            del self._by_half[relation.oid]
        else:
            self._by_half[relation.oid] = root.oid
        self._capture(root, self._known[self._tables[root.oid]])

    def _capture(self, relation: Relation, schema: TableSchema) -> None:
        if relation.oid in self._left_out:
            return
        before = self._captured.get(relation.oid)
        codec = before.codec if before is not None and before.schema is schema else RowCodec(schema)
        whole = relation.replica_identity == "f" and relation.oid not in self._by_half.values()
        captured = Captured(codec, whole)
        if captured != before:
            self._captured[relation.oid] = captured
            self._forget_heads(relation.oid)
            heads = codec.heads(relation.oid)
            self.codecs.update(dict.fromkeys(heads if captured.full_images else heads[:1], codec))

    def _forget_heads(self, oid: int) -> None:
        of_relation = struct.pack("!I", oid)
        for head in [head for head in self.codecs if head[1:5] == of_relation]:
            del self.codecs[head]

    def in_doubt(self) -> bool:
        """Tells whether ``check_again`` has something to look at."""
        return bool(self._in_doubt)

    def check_again(self) -> None:
        """Looks again at tables whose catalog may have been older than the log. Raises SchemaError, named.

        What only the catalog tells (a changed key, a column that is gone) would stay unseen otherwise: the server
        sends the next Relation message after the next change of the table.
        """
        for table, doubt in list(self._in_doubt.items()):
            facts = self._lookup(doubt.relation, table, doubt.transaction)
            facts = facts.by_present_names(doubt.known.needs, self._noted.get(table, {}))
            if facts.current:
                del self._in_doubt[table]
                self._check_numbers(table, facts, doubt.where)
                carried_on(doubt.known, facts.columns, facts.now, doubt.where)

    def _check_numbers(self, table: TableId, facts: RelationFacts, where: str) -> None:
        """A column whose name another one has by now has another number: it was dropped, or renamed, and its name
        was given again."""
        numbers, known = self._numbers.setdefault(table, {}), self._known[table]
        for name, number in facts.numbers:
            if numbers.setdefault(name, number) != number and known.needs(name):
                raise _renamed(table, f"column {name!r} was dropped and added again", where)


def unreadable(message: RowMessage, table: Captured, where: str) -> SourceError:
    """The named error for a change of a captured table that no codec reads."""
    # With another replica identity an unchanged large column would be missing from the old image as well.
    name = table.schema.id
    if not isinstance(message, Insert) and (message.old is None or not table.full_images):
        return incomplete_image(name, "UPDATE" if isinstance(message, Update) else "DELETE", where)
    return SourceError(
        f"a row of {name} doesn't have the table's {len(table.schema.columns)} columns",
        where=f"{name} at {where}",
        retryable=True,
    )


def _renamed(table: TableId, cause: str, where: str) -> SchemaError:
    return SchemaError(
        f"table {table} changed in a way that can't be carried on",
        where=f"{table} at {where}",
        cause=cause,
        remedy="undo the change, or start the migration anew (docs/how-to/start-anew.md)",
    )
