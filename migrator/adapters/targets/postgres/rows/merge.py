"""The SQL of a merge, as text. Pure: identifiers quoted, no values inside.

Every statement reads the staging table ``s`` (columns ``chunk``, then ``c0``, ``c1``, ... in written order) and the
table ``b`` of before keys (``k0``, ``k1``, ... in key order), and writes the target ``t``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from migrator.adapters.targets.postgres.structure import ForeignKey, Structure
from migrator.model.table import TableId


def quoted(name: str) -> str:
    """An identifier as PostgreSQL takes it literally."""
    return '"' + name.replace('"', '""') + '"'


def qualified(table: TableId) -> str:
    """A table's quoted name with its schema."""
    return f"{quoted(table.schema)}.{quoted(table.name)}"


def columns(names: Iterable[str], alias: str = "") -> str:
    """Quoted column names, separated by commas."""
    prefix = f"{alias}." if alias else ""
    return ", ".join(prefix + quoted(name) for name in names)


@dataclass(frozen=True, slots=True)
class Merge:
    """Statements for one target table and one set of written columns.

    Attributes:
        structure: the target table.
        written: columns the mapping writes, in staging order; the key's are among them.
        expressions: per written column the SQL of its value; ``{0}`` stands for the staging column.
        staging: quoted name of the staging table.
        before: quoted name of the before keys' table, or empty when the batch has none.
        key_expressions: per key column the SQL of a before key; ``{0}`` stands for its staging column.
        doubted: quoted name of the doubted keys' table, or empty.
        doubted_expressions: as ``key_expressions``.
    """

    structure: Structure
    written: tuple[str, ...]
    expressions: tuple[str, ...]
    staging: str
    before: str = ""
    key_expressions: tuple[str, ...] = ()
    doubted: str = ""
    doubted_expressions: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        """Quoted name of the target table."""
        return qualified(self.structure.table.id)

    def value(self, name: str, alias: str = "s") -> str:
        """The staged value of a written column."""
        place = self.written.index(name)
        return self.expressions[place].replace("{0}", f"{alias}.c{place}")

    def net_chunk(self) -> list[str]:
        """Removes staged dump rows whose key the log delta touches: the delta is later than the dump row.

        Keys that look different are those of two source rows, though the target takes them for one.
        """
        key = self.structure.table.key
        same = self._one_key(self.value(name, "a") for name in key) + self._looks("s", self._staged_key("a"))
        statements = [
            f"DELETE FROM {self.staging} s WHERE s.chunk"
            f" AND EXISTS (SELECT 1 FROM {self.staging} a WHERE NOT a.chunk AND {same})"
        ]
        if self.before:
            seen = self._in_before(self._looks("s", self._before_key()))
            statements.append(f"DELETE FROM {self.staging} s WHERE s.chunk AND {seen}")
        return statements

    def delete(self) -> str:
        """Deletes the rows whose keys vanish: in before, not in after.

        A stored key that looks otherwise is another source row's: the one that vanishes was never written.
        """
        return (
            f"DELETE FROM {self.target} t USING {self.before} b WHERE {self._was_there()} AND {self._gone()}"
        )

    def delete_doubted(self) -> str:
        """Deletes the rows of doubted keys that nothing staged has, and that no row points at."""
        key = self.structure.table.key
        values = [part.replace("{0}", f"d.k{place}") for place, part in enumerate(self.doubted_expressions)]
        conditions = [
            self._stored_key("t", values),
            f"NOT EXISTS (SELECT 1 FROM {self.staging} s WHERE {self._one_key(values)})",
        ]
        for one in self.structure.incoming:
            pairs = [_points(one, "c", "t")]
            if one.child == self.structure.table.id:
                own = self._stored_key("c", [f"t.{quoted(name)}" for name in key])
                pairs.append(f"NOT ({own})")
            conditions.append(
                f"NOT EXISTS (SELECT 1 FROM {qualified(one.child)} c WHERE {' AND '.join(pairs)})"
            )
        return f"DELETE FROM {self.target} t USING {self.doubted} d WHERE {' AND '.join(conditions)}"

    def vanishing_parents(self, key: ForeignKey) -> str:
        """Finds child rows that still point at a vanishing row. Values of the child's columns, one row at most."""
        return (
            f"SELECT {_texts(key.child_columns, 'c')} FROM {self.target} t JOIN {self.before} b"
            f" ON {self._was_there()} JOIN {qualified(key.child)} c ON {_points(key, 'c', 't')}"
            f" WHERE {self._gone()} LIMIT 1"
        )

    def any_moving(self) -> str:
        """Finds out whether some row must be deleted and inserted again (see ``Structure.moving``)."""
        return (
            f"SELECT 1 FROM {self.target} t JOIN {self.staging} s ON {self._same_staged()}"
            f" WHERE {self._moves()} LIMIT 1"
        )

    def move(self, strict: bool) -> str:
        """Deletes and inserts again, in one statement, the rows whose exclusive columns change.

        In one statement because then a foreign key without action is checked at its end, when the row is there
        again; the count makes all deletions happen before the first insertion, so values may swap.
        """
        kept = self.structure.kept(self.written)
        names = columns([*self.written, *kept])
        values = ", ".join(
            [self.value(name) for name in self.written] + [f"m.{quoted(name)}" for name in kept]
        )
        key = self.structure.table.key
        met = self._stored_key("t", [f"m.{quoted(name)}" for name in key])
        source = f"{self.staging} s ON {self._stored_key('m', [self.value(name) for name in key])}"
        return (
            f"WITH moving AS MATERIALIZED (SELECT t.* FROM {self.target} t JOIN {self._upserted(strict)} s"
            f" ON {self._same_staged()} WHERE {self._moves()}),"
            f" gone AS (DELETE FROM {self.target} t USING moving m WHERE {met} RETURNING 1)"
            f" INSERT INTO {self.target} ({names}) OVERRIDING SYSTEM VALUE"
            f" SELECT {values} FROM moving m JOIN {source} WHERE (SELECT count(*) FROM gone) >= 0"
        )

    def insert_new(self) -> str:
        """Inserts the rows that must not exist yet: log rows without a before key."""
        only = "NOT s.chunk"
        if self.before:
            only += f" AND NOT {self._in_before()}"
        return f"{self._insert(self.staging)} WHERE {only}"

    def insert_all(self) -> str:
        """Inserts all staged rows, none of which may exist."""
        return self._insert(self.staging)

    def upsert(self, strict: bool) -> str:
        """Inserts or updates all staged rows (``strict``: apart from those of ``insert_new``)."""
        updated = self._updated()
        action = "NOTHING"
        if updated:
            sets = ", ".join(f"{quoted(name)} = excluded.{quoted(name)}" for name in updated)
            # Images, not IS DISTINCT FROM: json has no equality, and 1.0 = 1.00 though they look different.
            differ = f"{_images(updated, 't')} OPERATOR(pg_catalog.*<>) {_images(updated, 'excluded')}"
            action = f"UPDATE SET {sets} WHERE {differ}"
        rows = self._insert(self._upserted(strict))
        return f"{rows} WHERE true ON CONFLICT ({columns(self.structure.table.key)}) DO {action}"

    def updatable(self) -> bool:
        """Tells whether ``update`` does what ``upsert`` does to rows that are there."""
        return bool(self._updated()) and all(self._exact(name) for name in self.structure.table.key)

    def update(self, span: tuple[int, int] | None = None) -> str:
        """Updates the rows of all staged keys, also those that hold these values already.

        ``span``: first and last of these keys, where they are integers that lie close together.
        """
        sets = ", ".join(f"{quoted(name)} = {self.value(name)}" for name in self._updated())
        within = ""
        if span is not None:
            within = f" AND t.{quoted(self.structure.table.key[0])} BETWEEN {span[0]} AND {span[1]}"
        return f"UPDATE {self.target} t SET {sets} FROM {self.staging} s WHERE {self._same_staged()}{within}"

    def lost(self, name: str, condition: str) -> str:
        """Finds a staged value of which the column would keep less: the key's values as text, then the value."""
        place = f"s.c{self.written.index(name)}"
        texts = ", ".join(f"({self.value(part)})::text" for part in self.structure.table.key)
        return (
            f"SELECT {texts}, {place}::text FROM {self.staging} s"
            f" WHERE {place} IS NOT NULL AND {condition.replace('{0}', place)} LIMIT 1"
        )

    def duplicates(self) -> str:
        """Finds two staged rows of one key: the key's values of both as text."""
        key = self.structure.table.key
        both = ", ".join(f"({self.value(name, alias)})::text" for alias in "sa" for name in key)
        same = self._one_key(self.value(name, "a") for name in key)
        return (
            f"SELECT {both} FROM {self.staging} s JOIN {self.staging} a ON {same} AND s.ctid < a.ctid LIMIT 1"
        )

    def kept_already(self, kept: str) -> str:
        """Finds a staged key among those in a table of keys: the key's values of both as text."""
        key = self.structure.table.key
        others = [f"k.{quoted(name)}" for name in key]
        texts = ", ".join(f"({value})::text" for value in [*(self.value(name) for name in key), *others])
        return f"SELECT {texts} FROM {self.staging} s JOIN {kept} k ON {self._one_key(others)} LIMIT 1"

    def clash(self) -> str:
        """Finds a staged row that would overwrite another source row's, whose key the target takes for its own.

        The key's values of the staged and of the stored row as text. A row whose key is spelled otherwise now is in
        before as it was; of a doubted one the verifier knows that no source row has it.
        """
        key = self.structure.table.key
        stored = [f"t.{quoted(name)}" for name in key]
        texts = ", ".join(f"({value})::text" for value in [*(self.value(name) for name in key), *stored])
        conditions = [f"NOT {_look_same(self._staged_key('s'), stored)}"]
        if self.before:
            conditions.append(f"NOT EXISTS (SELECT 1 FROM {self.before} b WHERE {self._was_there()})")
        if self.doubted:
            values = [
                part.replace("{0}", f"d.k{place}") for place, part in enumerate(self.doubted_expressions)
            ]
            doubted = self._stored_key("t", values)
            conditions.append(f"NOT EXISTS (SELECT 1 FROM {self.doubted} d WHERE {doubted})")
        return (
            f"SELECT {texts} FROM {self.staging} s JOIN {self.target} t ON {self._same_staged()}"
            f" WHERE {' AND '.join(conditions)} LIMIT 1"
        )

    def staged_orphan(self, key: ForeignKey) -> str:
        """Finds a row just written whose foreign key has no parent: its key's, then the foreign key's values."""
        return (
            f"SELECT {_texts((*self.structure.table.key, *key.child_columns), 't')} FROM {self.target} t"
            f" JOIN {self.staging} s ON {self._same_staged()} WHERE {without_parent(key, 't')} LIMIT 1"
        )

    def bereaved(self, key: ForeignKey, child_key: Sequence[str]) -> str:
        """Finds a child row whose parent vanished with this batch: its key's, then the foreign key's values.

        Empty when the foreign key points at other columns than the key: then only the whole table can tell.
        """
        own = self.structure.table.key
        if set(key.parent_columns) != set(own):
            return ""
        if not self.before:
            return f"SELECT 1 FROM {self.target} WHERE false"
        pairs = " AND ".join(
            equality.of(self._before_value(own.index(parent)), f"c.{quoted(child)}")
            for parent, child, equality in key.pairs()
        )
        return (
            f"SELECT {_texts((*child_key, *key.child_columns), 'c')} FROM {self.before} b"
            f" JOIN {qualified(key.child)} c ON {pairs}"
            f" WHERE NOT EXISTS (SELECT 1 FROM {self.target} t WHERE {self._same_before('t')}) LIMIT 1"
        )

    def _updated(self) -> list[str]:
        return [
            name
            for name in self.written
            if not self._identity_always(name)
            and (name not in self.structure.table.key or not self._exact(name))
        ]

    def _insert(self, rows: str) -> str:
        values = ", ".join(self.value(name) for name in self.written)
        return (
            f"INSERT INTO {self.target} AS t ({columns(self.written)}) OVERRIDING SYSTEM VALUE"
            f" SELECT {values} FROM {rows} s"
        )

    def _stored_key(self, alias: str, values: Iterable[str]) -> str:
        """A stored row has a key of these values."""
        found = dict(zip(self.structure.table.key, values, strict=True))
        return self.structure.one_key(lambda name: f"{alias}.{quoted(name)}", found.__getitem__)

    def _one_key(self, values: Iterable[str]) -> str:
        """A staged row ``s`` has a key of these values."""
        found = dict(zip(self.structure.table.key, values, strict=True))
        return self.structure.one_key(self.value, found.__getitem__)

    def _same_staged(self) -> str:
        return self._stored_key("t", [self.value(name) for name in self.structure.table.key])

    def _before_value(self, place: int) -> str:
        return self.key_expressions[place].replace("{0}", f"b.k{place}")

    def _before_values(self) -> list[str]:
        return [self._before_value(place) for place in range(len(self.structure.table.key))]

    def _same_before(self, alias: str) -> str:
        return self._stored_key(alias, self._before_values())

    def _was_there(self) -> str:
        """A stored row ``t`` has a key before, and looks like it."""
        same, key = self._same_before("t"), self.structure.table.key
        if self.structure.key_is_exact():
            return same
        return f"{same} AND {_look_same(self._before_key(), [f't.{quoted(name)}' for name in key])}"

    def _in_before(self, more: str = "") -> str:
        same = self._one_key(self._before_values())
        return f"EXISTS (SELECT 1 FROM {self.before} b WHERE {same}{more})"

    def _gone(self) -> str:
        # A dump row that is left here is another source row's, which takes the key over.
        staged = "NOT s.chunk AND " if self.structure.key_is_exact() else ""
        same = self._one_key(self._before_values())
        return f"NOT EXISTS (SELECT 1 FROM {self.staging} s WHERE {staged}{same})"

    def _staged_key(self, alias: str) -> list[str]:
        """The staged key as its columns will hold it."""
        return [self.assigned(name, alias) for name in self.structure.table.key]

    def _before_key(self) -> list[str]:
        """The key before, likewise."""
        key = self.structure.table.key
        return [self._held(name, self._before_value(place)) for place, name in enumerate(key)]

    def _looks(self, alias: str, values: Sequence[str]) -> str:
        """Returns the condition that a staged key looks like these values; empty for exact keys."""
        if self.structure.key_is_exact():
            return ""
        return f" AND {_look_same(self._staged_key(alias), values)}"

    def _upserted(self, strict: bool) -> str:
        """The staged rows, or those that ``insert_new`` leaves out."""
        if not strict:
            return self.staging
        chunk = f"SELECT s.* FROM {self.staging} s WHERE s.chunk"
        if not self.before:
            return f"({chunk})"
        # UNION ALL, because no plan joins well on "chunk OR EXISTS": it took minutes where this takes seconds.
        return (
            f"({chunk} UNION ALL SELECT s.* FROM {self.staging} s WHERE NOT s.chunk AND {self._in_before()})"
        )

    def _moves(self) -> str:
        moving = self.structure.moving(self.written)
        new = ", ".join(self.assigned(name) for name in moving)
        return f"{_images(moving, 't')} OPERATOR(pg_catalog.*<>) ROW({new})::pg_catalog.record"

    def assigned(self, name: str, alias: str = "s") -> str:
        """The staged value as its column will hold it, modifier applied."""
        return self._held(name, self.value(name, alias))

    def _held(self, name: str, value: str) -> str:
        storage = self.structure.column(name)
        if storage is None:
            return value
        return f"CAST(CAST({value} AS {storage.declared}) AS {storage.cast})"

    def _exact(self, name: str) -> bool:
        storage = self.structure.column(name)
        return storage is not None and storage.equality.exact

    def _identity_always(self, name: str) -> bool:
        storage = self.structure.column(name)
        return storage is not None and storage.identity_always


def orphan(key: ForeignKey, child_key: Sequence[str]) -> str:
    """Finds a child row without its parent in the whole table: its key's, then the foreign key's values as text."""
    return (
        f"SELECT {_texts((*child_key, *key.child_columns), 'c')} FROM {qualified(key.child)} c"
        f" WHERE {without_parent(key, 'c')} LIMIT 1"
    )


def without_parent(key: ForeignKey, alias: str) -> str:
    """A row of the child refers to one that isn't there: by all of its values, or any where all must match."""
    missing = f"NOT EXISTS (SELECT 1 FROM {qualified(key.parent)} p WHERE {_points(key, alias, 'p')})"
    among = " OR " if key.match_full else " AND "
    refers = among.join(f"{alias}.{quoted(name)} IS NOT NULL" for name in key.child_columns)
    return f"({refers}) AND {missing}"


def _points(key: ForeignKey, child: str, parent: str) -> str:
    """A row of the child refers to one of the parent."""
    return " AND ".join(
        equality.of(f"{parent}.{quoted(above)}", f"{child}.{quoted(below)}")
        for above, below, equality in key.pairs()
    )


def _look_same(ones: Iterable[str], others: Iterable[str]) -> str:
    """Two keys look the same, whatever equality says."""
    left, right = (f"ROW({', '.join(values)})::pg_catalog.record" for values in (ones, others))
    return f"({left} OPERATOR(pg_catalog.*=) {right})"


def _texts(names: Iterable[str], alias: str) -> str:
    return ", ".join(f"{alias}.{quoted(name)}::text" for name in names)


def _images(names: Iterable[str], alias: str) -> str:
    return f"ROW({columns(names, alias)})::pg_catalog.record"
