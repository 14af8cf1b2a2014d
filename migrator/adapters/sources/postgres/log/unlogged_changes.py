"""Changes of a captured table that leave nothing in the log: found by looking at the catalog now and then.

- Another table under the name of one that was dumped: see ``identity``.
- The publication: what is written to a table while it is taken out is missing from the stream.
- Partitions: see ``partitions``.
- Labels of enums: one that is renamed is another in every row that has it.
- Values that were written anew in all rows: see ``rewritten``.
- What keeps a key unique: see ``unique_keys``.

A look finds what is different from the one before. Somebody may have put it back meanwhile, so the catalog
rows' own versions (``xmin``) are compared. All of it is noted for the next reader: what was done while nobody
looked is found by its first look. It stops until somebody has asked for the table's rows once more
(``run.resume.asked_again``, the note is given up then): whoever starts it again may not have read why. What
the publication left out stops it for
good: another dump takes away no row that was deleted meanwhile.

Of columns that no mapping needs, nothing stops it; see ``rewritten`` for what is kept in mind of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from migrator.adapters.sources.postgres.log.enum_labels import found_labels, labels_of, noted_labels
from migrator.adapters.sources.postgres.log.identity import (
    Preparing,
    gone,
    replaced,
    table_numbers,
)
from migrator.adapters.sources.postgres.log.partitions import (
    PartitionWatch,
    Tree,
    came_or_went,
    found_partitions,
)
from migrator.adapters.sources.postgres.log.rewritten import Structure, found_structures, rewritten
from migrator.adapters.sources.postgres.log.unique_keys import became, found_keepers
from migrator.adapters.sources.postgres.publication import (
    changed_publication,
    check_covers,
    check_marked,
)
from migrator.adapters.sources.postgres.reflection import Query
from migrator.adapters.sources.postgres.settings import PostgresSource, chosen_otherwise
from migrator.errors import SchemaError
from migrator.model.position import Position
from migrator.model.table import TableId
from migrator.ports.log_notes import RENAMED, LogNotes, with_renamed

_MEMBERSHIPS = """
SELECT '', '', p.oid::text || '/' || p.xmin::text FROM pg_catalog.pg_publication p WHERE p.pubname = $1
UNION ALL
SELECT n.nspname::text, c.relname::text, r.oid::text || '/' || r.xmin::text
FROM pg_catalog.pg_publication p JOIN pg_catalog.pg_publication_rel r ON r.prpubid = p.oid
JOIN pg_catalog.pg_class c ON c.oid = r.prrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE p.pubname = $1
"""
_PUBLICATION = TableId("", "")
"""Under this name the publication is noted: no table has it, so nobody asks for its rows."""
_ENUMS, _TREE, _COLUMNS, _AS_TEXT, _KEEPERS = "labels", "partitions", "columns", "text", "unique"
_FORMER, _LEFT_OUT = "former", "left_out"


class UnloggedChanges:
    """Looks for them. One for each time that the log reader starts.

    Args:
        source: the server and the publication.
        notes: labels and partitions as the last reader saw them; kept up to date.
        resumed: whether the log is read on from an earlier place; the first dump comes after everything else.
        needed: what has to be run before changes of a table that replaced another one are captured.
        needs: tells whether a mapping needs a table's column of some name.
        keys: the columns by which rows of captured tables are told apart.
    """

    def __init__(
        self,
        source: PostgresSource,
        notes: LogNotes,
        resumed: bool,
        needed: Preparing = lambda query, table: (),
        needs: Callable[[TableId, str], bool] = lambda table, column: True,
        keys: Mapping[TableId, Sequence[str]] = MappingProxyType({}),
    ):
        self._source = source
        self._notes = notes
        self._resumed = resumed
        self._needed = needed
        self._needs = needs
        self._keys = keys
        self._numbers: dict[TableId, int] = {}
        self._first_seen: set[TableId] = set()
        self._read_again: set[TableId] = set()
        self._memberships: dict[TableId, str] = {}
        self._structures: Mapping[TableId, Structure] = {}
        self._partitions = PartitionWatch()

    def look(self, query: Query, tables: Sequence[TableId], beside: Sequence[TableId] = ()) -> None:
        """Raises GapError for the publication, SchemaError for all else, named.

        ``beside``: tables of ours that have to be in the publication from now on: what it left out of them before
        is of no interest.
        """
        self.look_at_numbers(query, tables)
        check_covers(self._source, query, tables)
        check_marked(self._source, query, beside)
        self._look_at_memberships(query, tables)
        self._look_at_partitions(query, tables)
        self.look_at_values(query, tables)

    def look_at_values(self, query: Query, tables: Sequence[TableId]) -> None:
        """Checks what became of rows without a change of them. Raises SchemaError, named."""
        self._look_at_labels(query, tables)
        self._look_at_choices(tables)
        self._look_at_columns(query, tables)
        self._look_at_keys(query, tables)

    def column_numbers(self) -> dict[TableId, dict[str, int]]:
        """Returns the numbers of the captured tables' columns, by name, as the last look found them."""
        return {
            table: {name: facts.number for name, facts in found.columns.items()}
            for table, found in self._structures.items()
        }

    def noted_numbers(self) -> dict[TableId, dict[str, int]]:
        """Returns the same as it was noted: of columns that nothing needs, gone ones too, at some earlier time."""
        noted = {table: self._structure(table) for table in self._structures}
        return {
            table: {name: facts.number for name, facts in found.columns.items()}
            for table, found in noted.items()
            if found is not None
        }

    def numbers(self) -> dict[TableId, int]:
        """Returns which tables are captured, by their numbers."""
        return dict(self._numbers)

    def former(self) -> dict[TableId, Any]:
        """Returns up to which place of the log another table may have had the name of one that is captured.

        Of what ``first_seen_at`` was told.
        """
        return self._noted_places(_FORMER)

    def left_out(self) -> dict[TableId, Any]:
        """Returns up to which place of the log changes of a captured table are of no interest: rows came or went
        beside it, and all of its rows are dumped after that place. Of what ``first_seen_at`` was told."""
        return self._noted_places(_LEFT_OUT)

    def _noted_places(self, part: str) -> dict[TableId, Any]:
        noted = {table: _parsed(self._notes.of(table)).get(part) for table in self._numbers}
        return {table: place for table, place in noted.items() if place is not None}

    def first_seen(self) -> frozenset[TableId]:
        """Tables that a look has seen for the first time, while their place isn't known yet."""
        return frozenset(self._first_seen)

    def joined(self) -> bool:
        """Tells whether a look has seen tables for the first time that joined a migration which had begun."""
        return self._resumed and bool(self._first_seen)

    def first_seen_at(self, place: Callable[[], int | str]) -> None:
        """``place``: somewhere in the log behind everything that looks have seen so far; asked if it is needed.

        Of a table that is seen for the first time all rows are dumped after it. Whatever the log has before it of a
        table of that name with another number is of no interest: it is gone. Nor are changes of a table some of whose
        rows went beside the log: it has no trace of that.
        """
        if self._first_seen or self._read_again:
            at = place()
            for table in self._first_seen:
                self._note(table, _FORMER, at)
            for table in self._read_again:
                self._note(table, _LEFT_OUT, at)
            self._first_seen.clear()
            self._read_again.clear()

    def look_at_numbers(self, query: Query, tables: Sequence[TableId]) -> None:
        """Checks that each name leads to the table that was dumped. Raises SchemaError, named."""
        found = table_numbers(query, tables)
        for table in tables:
            known, number = self._known_number(self._notes.of(table)), found.get(table)
            dumped = known or self._known_number(self._notes.given_up(table))
            if number is None:
                if dumped is not None:
                    raise gone(query, table, dumped)
                continue  # what reads it next says so
            if dumped is not None and number != dumped:
                needed = self._needed(query, table)
                answered = known is None and self._notes.answered(table)
                if needed or not (answered or self._notes.consented(table)):
                    raise replaced(query, table, dumped, number, needed)
                self._notes.replace(table)
                self._first_seen.add(table)
            elif dumped is None and (not self._resumed or self._notes.consented(table)):
                self._first_seen.add(table)
            elif known is None:
                self._go_on_behind_the_former(table)
            self._numbers[table] = number

    def _go_on_behind_the_former(self, table: TableId) -> None:
        """Keeps up to where another table had the name, though its rows were asked for again before that place."""
        former = _parsed(self._notes.given_up(table)).get(_FORMER)
        if former is not None:
            self._note(table, _FORMER, former)

    @staticmethod
    def _known_number(note: str) -> int | None:
        structure = _parsed(note).get(_COLUMNS)
        return Structure.from_json(structure).oid if structure else None

    def _look_at_memberships(self, query: Query, tables: Sequence[TableId]) -> None:
        wanted = {_PUBLICATION, *tables}
        found = {
            table: str(version)
            for schema, name, version in query(_MEMBERSHIPS, [self._source.slot])
            if (table := TableId(schema, name)) in wanted
        }
        known = self._memberships or self._noted_memberships(wanted)
        fresh = (
            self._notes.replaced()
        )  # they joined it in the place of others, and all of their rows are read
        changed = [
            table
            for table, version in known.items()
            if found.get(table) != version and table not in fresh and not self._notes.consented(table)
        ]
        if changed:
            tables_named = ", ".join(str(table) for table in sorted(changed) if table.name)
            raise changed_publication(
                self._source, f"it was changed and put back{': ' if tables_named else ''}{tables_named}"
            )
        self._memberships = found
        listed = [[table.schema, table.name, version] for table, version in sorted(found.items())]
        self._notes.note(_PUBLICATION, json.dumps(listed, ensure_ascii=False, separators=(",", ":")))

    def _noted_memberships(self, wanted: Container[TableId]) -> dict[TableId, str]:
        """Returns the tables as the last reader saw them, of those that are still captured."""
        noted = json.loads(self._notes.of(_PUBLICATION) or "[]")
        listed = {TableId(schema, name): version for schema, name, version in noted}
        return {table: version for table, version in listed.items() if table in wanted}

    def _look_at_partitions(self, query: Query, tables: Sequence[TableId]) -> None:
        found = found_partitions(query, self._source.slot, tables)
        for table in tables:
            seen, known = found.get(table), self._known(table)
            if seen is not None and self._notes.consented(table) and came_or_went(table, known, seen):
                self._notes.replace(table)
                self._read_again.add(table)
                tree = seen.tree
            elif known is not None:
                tree = self._partitions.next(query, table, known, seen)
            elif seen is not None:
                anew = self._notes.asked_for(table) or self._notes.consented(table)
                resumed = self._resumed and not anew
                tree = self._partitions.first(table, seen, resumed=resumed)
            else:
                continue
            self._note(table, _TREE, tree.to_json())

    def emptied(self, table: TableId, xid: int) -> None:
        """The log has a TRUNCATE of the whole table by this transaction (32 bits)."""
        known = self._known(table)
        if known is not None:
            self._note(table, _TREE, self._partitions.emptied(table, known, xid).to_json())

    def undecided(self) -> bool:
        """Tells whether what a look found waits for the log to explain it."""
        return self._partitions.undecided()

    def decide_at(self, place: Position) -> None:
        """A place at or behind everything that looks have seen so far."""
        self._partitions.decide_at(place)

    def reached(self, position: Position) -> None:
        """The log has been read so far. Raises SchemaError, named, for what it should have explained."""
        self._partitions.reached(position)

    def _known(self, table: TableId) -> Tree | None:
        noted = _parsed(self._notes.of(table)).get(_TREE)
        return Tree.from_json(noted) if noted else None

    def _note(self, table: TableId, part: str, content: Any) -> None:
        self._notes.note(table, _text({**_parsed(self._notes.of(table)), part: content}))

    def _look_at_labels(self, query: Query, tables: Sequence[TableId]) -> None:
        found, needed = found_labels(query, tables, self._needs)
        known = {table: labels_of(_parsed(self._notes.of(table)).get(_ENUMS, ())) for table in found}
        renamed = {
            table: cause
            for table, labels in found.items()
            for oid, label in known[table].items()
            if oid in labels and (table, oid) in needed and (cause := label.became(labels[oid]))
        }
        if renamed:
            raise SchemaError(
                f"a label in {', '.join(map(str, renamed))} was renamed, which the log doesn't show",
                where=", ".join(map(str, renamed)),
                cause=f"{'; '.join(dict.fromkeys(renamed.values()))}; rows that came before have the old label",
                remedy="have the rows read again (--where bounds which), then start again: migrator dump start"
                + "".join(f" --table {table.name}" for table in renamed),
            )
        for table, labels in found.items():
            unneeded = {oid: label for oid, label in known[table].items() if (table, oid) not in needed}
            self._note(table, _ENUMS, noted_labels({**labels, **unneeded}))

    def _look_at_choices(self, tables: Sequence[TableId]) -> None:
        """An error not of the source, but of the configuration: a column would have values of two types."""
        for table in tables:
            noted, chosen = _parsed(self._notes.of(table)), self._source.choices(table).as_text
            if noted.get(_COLUMNS) and frozenset(noted.get(_AS_TEXT, ())) != chosen:
                raise chosen_otherwise(table, chosen, self._source.server.address)
            if chosen:
                self._note(table, _AS_TEXT, sorted(chosen))

    def _look_at_columns(self, query: Query, tables: Sequence[TableId]) -> None:
        self._structures = found = found_structures(query, tables)
        known = {table: self._structure(table) for table in found}
        changed = {
            table: cause
            for table, now in found.items()
            if (before := known[table]) and (cause := before.became(now, partial(self._needs, table)))
        }
        if changed:
            raise rewritten(changed)
        for table, now in found.items():
            before = known[table]
            noted = now.noted_after(before, partial(self._needs, table))
            self._note(table, _COLUMNS, noted.to_json())
            names = before.renamed(now) if before is not None else {}
            needs = partial(self._needs, table)
            if needed := [pair for pair in names.items() if any(map(needs, pair))]:
                self._note(table, RENAMED, with_renamed(self._part(table, RENAMED) or (), needed))

    def _look_at_keys(self, query: Query, tables: Sequence[TableId]) -> None:
        found = found_keepers(query, {table: self._keys[table] for table in tables if table in self._keys})
        noted = {table: self._part(table, _KEEPERS) or () for table in found}
        changed = {table: why for table, now in found.items() if (why := became(noted[table], now))}
        if changed:
            raise rewritten(changed)
        for table, keepers in found.items():
            self._note(table, _KEEPERS, keepers)

    def _structure(self, table: TableId) -> Structure | None:
        noted = self._part(table, _COLUMNS)
        return Structure.from_json(noted) if noted else None

    def _part(self, table: TableId, part: str) -> Any:
        return _parsed(self._notes.of(table)).get(part)


def _parsed(note: str) -> dict[str, Any]:
    """A note's parts. One that is a list has labels only: so are all of before partitions were noted."""
    parts = json.loads(note or "[]")
    return {_ENUMS: parts} if isinstance(parts, list) else parts


def _text(parts: Mapping[str, Any]) -> str:
    """Inverse of ``_parsed``."""
    document: Any = (
        parts if any(content for part, content in parts.items() if part != _ENUMS) else parts.get(_ENUMS)
    )
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")) if document else ""
