"""The SQL of a merge, as text. Pure: identifiers quoted, no values inside.

Three staging tables: ``c`` dump rows, ``a`` rows of the log as they are afterwards (columns ``n``, the row's number
in the batch, then ``c0``, ``c1``, ... in written order; the target's key is their key), and ``b`` keys before
(``n``, then ``k0``, ``k1``, ... in key order). No statement names one twice, which MySQL refuses of a
temporary table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from migrator.adapters.targets.mysql.structure import Storage, Structure
from migrator.adapters.targets.shared.structure import ForeignKey
from migrator.model.table import TableId


def quoted(name: str) -> str:
    """An identifier as the server takes it literally."""
    return "`" + name.replace("`", "``") + "`"


def qualified(table: TableId) -> str:
    """A table's quoted name with its database."""
    return f"{quoted(table.schema)}.{quoted(table.name)}"


def columns(names: Iterable[str], alias: str = "") -> str:
    """Quoted column names, separated by commas."""
    prefix = f"{alias}." if alias else ""
    return ", ".join(prefix + quoted(name) for name in names)


def rows_body(storages: Sequence[Storage], key: Sequence[str]) -> str:
    """Declaration of a staging table of rows."""
    names = [one.column.name for one in storages]
    parts = ["n BIGINT NOT NULL"]
    for place, one in enumerate(storages):
        parts.append(f"c{place} {one.declared} {'NOT NULL' if names[place] in key else 'NULL DEFAULT NULL'}")
    parts.append(f"PRIMARY KEY ({', '.join(f'c{names.index(name)}' for name in key)})")
    return ", ".join(parts)


def keys_body(storages: Sequence[Storage]) -> str:
    """Declaration of a staging table of keys, in key order. A key may come twice."""
    names = [f"k{place}" for place in range(len(storages))]
    parts = [f"{name} {one.declared} NOT NULL" for name, one in zip(names, storages, strict=True)]
    return ", ".join(["n BIGINT NOT NULL PRIMARY KEY", *parts, f"KEY ({', '.join(names)})"])


def saved_body(key: Sequence[Storage], kept: Sequence[Storage]) -> str:
    """Declaration of the table that keeps, of rows deleted and inserted again, what no mapping writes."""
    names = [f"k{place}" for place in range(len(key))]
    parts = [f"{name} {one.declared} NOT NULL" for name, one in zip(names, key, strict=True)]
    parts += [f"v{place} {one.declared} NULL DEFAULT NULL" for place, one in enumerate(kept)]
    return ", ".join([*parts, f"PRIMARY KEY ({', '.join(names)})"])


@dataclass(frozen=True, slots=True)
class Merge:
    """Statements for one target table and one set of written columns.

    Attributes:
        structure: the target table.
        written: columns the mapping writes, in staging order; the key's are among them.
        chunk, after, before: names of the staging tables; empty where the batch has no such rows.
        saved: name of the table of kept values, where rows with such are deleted and inserted again.
        doubted: name of the doubted keys' table, or empty.
    """

    structure: Structure
    written: tuple[str, ...]
    chunk: str = ""
    after: str = ""
    before: str = ""
    saved: str = ""
    doubted: str = ""

    @property
    def target(self) -> str:
        """Quoted name of the target table."""
        return qualified(self.structure.table.id)

    @property
    def key(self) -> tuple[str, ...]:
        """The target's key."""
        return self.structure.table.key

    def net_chunk(self) -> list[str]:
        """Removes dump rows whose key the log touches: the log is later than the dump row.

        Keys that look different are those of two source rows, though the target takes them for one.
        """
        statements = []
        if self.chunk and self.after:
            same = self._both_staged() + self._looks(self._place_in("a"), self._place_in("c"))
            statements.append(f"DELETE c FROM {self.chunk} c JOIN {self.after} a ON {same}")
        if self.chunk and self.before:
            same = self._staged("c", "b") + self._looks(self._place_in("c"), self._key_in("b"))
            statements.append(f"DELETE c FROM {self.chunk} c JOIN {self.before} b ON {same}")
        return statements

    def clashes(self) -> list[str]:
        """Find rows of two source rows that have one key to the target: the key's values of both as text.

        Two rows of the batch, or one that would overwrite what the target has. A row whose key is spelled otherwise
        now is in before as it was; of a doubted one the verifier knows that no source row has it.
        """
        if not self.structure.inexact_key():
            return []
        found = []
        if self.chunk and self.after:
            texts = texts_of(f"{alias}.{self._place(name)}" for alias in "ac" for name in self.key)
            found.append(
                f"SELECT {texts} FROM {self.chunk} c JOIN {self.after} a ON {self._both_staged()} LIMIT 1"
            )
        for staged in (self.chunk, self.after):
            if staged:
                found.append(self._clash(staged))
        return found

    def _clash(self, staged: str) -> str:
        stored = self._stored_in("t")
        texts = texts_of(
            [f"s.{self._place(name)}" for name in self.key] + [f"t.{quoted(name)}" for name in self.key]
        )
        conditions = [f"NOT ({self._look(self._place_in('s'), stored)})"]
        if self.before:
            seen = self._stored("b") + self._looks(self._key_in("b"), stored)
            conditions.append(f"NOT EXISTS (SELECT 1 FROM {self.before} b WHERE {seen})")
        if self.doubted:
            conditions.append(f"NOT EXISTS (SELECT 1 FROM {self.doubted} d WHERE {self._stored('d')})")
        return (
            f"SELECT {texts} FROM {staged} s JOIN {self.target} t ON {self._stored('s')}"
            f" WHERE {' AND '.join(conditions)} LIMIT 1"
        )

    def kept_already(self, staged: str, kept: str) -> str:
        """Finds a staged key in a table of keys of rows: the key's values of both as text."""
        texts = texts_of(
            [f"s.{self._place(name)}" for name in self.key] + [f"k.k{n}" for n in range(len(self.key))]
        )
        return f"SELECT {texts} FROM {staged} s JOIN {kept} k ON {self._staged('s', 'k')} LIMIT 1"

    def delete(self) -> str:
        """Deletes the rows whose keys vanish: in before, not in after.

        A stored key that looks otherwise is another source row's: the one that vanishes was never written.
        """
        met = self._stored("b") + self._looks(self._key_in("b"), self._stored_in("t"))
        gone = f"DELETE t FROM {self.target} t JOIN {self.before} b ON {met}"
        if not self.after:
            return gone
        return f"{gone} LEFT JOIN {self.after} a ON {self._staged('a', 'b')} WHERE a.n IS NULL"

    def delete_doubted(self) -> str:
        """Deletes the rows of doubted keys that nothing staged has, and that no row points at."""
        joins = [f"JOIN {self.doubted} d ON {self._stored('d')}"]
        none = []
        for staged, alias in ((self.chunk, "c"), (self.after, "a")):
            if staged:
                joins.append(f"LEFT JOIN {staged} {alias} ON {self._staged(alias, 'd')}")
                none.append(f"{alias}.n IS NULL")
        for place, one in enumerate(self.structure.incoming):
            pairs = [
                f"x{place}.{quoted(child)} = t.{quoted(parent)}"
                for child, parent in zip(one.child_columns, one.parent_columns, strict=True)
            ]
            if one.child == self.structure.table.id:
                own = " AND ".join(f"x{place}.{quoted(name)} = t.{quoted(name)}" for name in self.key)
                pairs.append(f"NOT ({own})")
            joins.append(f"LEFT JOIN {qualified(one.child)} x{place} ON {' AND '.join(pairs)}")
            none.append(f"x{place}.{quoted(one.child_columns[0])} IS NULL")
        return f"DELETE t FROM {self.target} t {' '.join(joins)} WHERE {' AND '.join(none or ['true'])}"

    def save_moving(self, staged: str, strict: bool) -> str:
        """Keeps what no mapping writes of the rows that ``move_away`` deletes."""
        kept = self.structure.kept(self.written)
        places = [f"k{n}" for n in range(len(self.key))] + [f"v{n}" for n in range(len(kept))]
        return (
            f"INSERT INTO {self.saved} ({', '.join(places)}) SELECT {columns((*self.key, *kept), 't')}"
            f" FROM {self._moving(staged, strict)}"
        )

    def move_away(self, staged: str, strict: bool) -> str:
        """Deletes the rows of which a column that must be unique changes; they are inserted again."""
        return f"DELETE t FROM {self._moving(staged, strict)}"

    def update(self, staged: str, strict: bool, more: str = "") -> str:
        """Updates the rows that are there (``strict``: of the log's only those that were there before)."""
        sets = ", ".join(f"t.{quoted(name)} = s.{self._place(name)}" for name in self.written)
        known = self._known() if strict else ""
        return f"UPDATE {self.target} t JOIN {staged} s ON {self._stored('s')} SET {sets} WHERE true{known}{more}"

    def insert_new(self, more: str = "") -> str:
        """Inserts rows of the log that must not exist yet: those without a key before."""
        known = ""
        if self.before:
            known = f" LEFT JOIN {self.before} b ON {self._staged('s', 'b')}"
            more = f" AND b.n IS NULL{more}"
        return f"{self._insert(self.written, self._values())} FROM {self.after} s{known} WHERE true{more}"

    def insert_again(self, staged: str, more: str = "") -> str:
        """Inserts the rows that ``move_away`` deleted, with what was kept of them."""
        kept = self.structure.kept(self.written)
        values = self._values() + [f"m.v{place}" for place in range(len(kept))]
        same = " AND ".join(f"m.k{place} = s.{self._place(name)}" for place, name in enumerate(self.key))
        return (
            f"{self._insert((*self.written, *kept), values)} FROM {staged} s JOIN {self.saved} m ON {same}"
            f" WHERE true{more}"
        )

    def insert_missing(self, staged: str, more: str = "") -> str:
        """Inserts the rows that aren't there."""
        return (
            f"{self._insert(self.written, self._values())} FROM {staged} s"
            f" LEFT JOIN {self.target} t ON {self._stored('s')} WHERE t.{quoted(self.key[0])} IS NULL{more}"
        )

    def otherwise(self, staged: str) -> str:
        """Finds a staged row that the table doesn't hold as it was written: the key's values as text."""
        texts = texts_of(f"s.{self._place(name)}" for name in self.key)
        held = " AND ".join(self._held(name) for name in self.written)
        return (
            f"SELECT {texts} FROM {staged} s LEFT JOIN {self.target} t ON {self._stored('s')} AND {held}"
            f" WHERE t.{quoted(self.key[0])} IS NULL LIMIT 1"
        )

    def _held(self, name: str) -> str:
        one, other = f"t.{quoted(name)}", f"s.{self._place(name)}"
        storage = self.structure.column(name)
        if storage is not None and storage.collation:
            one, other = f"CAST({one} AS BINARY)", f"CAST({other} AS BINARY)"
        return f"{one} <=> {other}"

    def staged_orphan(self, staged: str, key: ForeignKey) -> str:
        """Finds a row just written whose foreign key has no parent: its key's, then the foreign key's values."""
        texts = texts_of(f"t.{quoted(name)}" for name in (*self.key, *key.child_columns))
        return (
            f"SELECT {texts} FROM {staged} s JOIN {self.target} t ON {self._stored('s')}"
            f" {no_parent(key, 't')} LIMIT 1"
        )

    def bereaved(self, key: ForeignKey, child_key: Sequence[str]) -> str:
        """Finds a child row whose parent vanished with this batch: its key's, then the foreign key's values."""
        pairs = " AND ".join(
            f"c.{quoted(child)} = b.k{self.key.index(parent)}"
            for child, parent in zip(key.child_columns, key.parent_columns, strict=True)
        )
        texts = texts_of(f"c.{quoted(name)}" for name in (*child_key, *key.child_columns))
        return (
            f"SELECT {texts} FROM {self.before} b JOIN {qualified(key.child)} c ON {pairs}"
            f" {no_parent(key, 'c')} LIMIT 1"
        )

    def _insert(self, names: Iterable[str], values: Iterable[str]) -> str:
        return f"INSERT INTO {self.target} ({columns(names)}) SELECT {', '.join(values)}"

    def _values(self) -> list[str]:
        return [f"s.{self._place(name)}" for name in self.written]

    def _place(self, name: str) -> str:
        return f"c{self.written.index(name)}"

    def _stored(self, alias: str) -> str:
        """A stored row and a staged one have the same key."""
        return " AND ".join(
            f"t.{quoted(name)} = {alias}.{f'k{place}' if alias in 'bd' else self._place(name)}"
            for place, name in enumerate(self.key)
        )

    def _staged(self, rows: str, keys: str) -> str:
        """A staged row and a key before are the same."""
        return " AND ".join(
            f"{rows}.{self._place(name)} = {keys}.k{place}" for place, name in enumerate(self.key)
        )

    def _both_staged(self) -> str:
        return " AND ".join(f"a.{self._place(name)} = c.{self._place(name)}" for name in self.key)

    def _place_in(self, alias: str) -> Callable[[str], str]:
        return lambda name: f"{alias}.{self._place(name)}"

    def _key_in(self, alias: str) -> Callable[[str], str]:
        return lambda name: f"{alias}.k{self.key.index(name)}"

    def _stored_in(self, alias: str) -> Callable[[str], str]:
        return lambda name: f"{alias}.{quoted(name)}"

    def _look(self, one: Callable[[str], str], other: Callable[[str], str]) -> str:
        """Two equal keys look the same as well."""
        names = [storage.column.name for storage in self.structure.inexact_key()]
        return " AND ".join(f"CAST({one(name)} AS BINARY) = CAST({other(name)} AS BINARY)" for name in names)

    def _looks(self, one: Callable[[str], str], other: Callable[[str], str]) -> str:
        return f" AND {self._look(one, other)}" if self.structure.inexact_key() else ""

    def _known(self) -> str:
        """A staged row was there before."""
        return f" AND EXISTS (SELECT 1 FROM {self.before} b WHERE {self._staged('s', 'b')})"

    def _moving(self, staged: str, strict: bool) -> str:
        known = self._known() if strict else ""
        same = " AND ".join(
            f"t.{quoted(name)} <=> s.{self._place(name)}" for name in self.structure.moving(self.written)
        )
        return f"{self.target} t JOIN {staged} s ON {self._stored('s')} WHERE NOT ({same}){known}"


def orphan(key: ForeignKey, child_key: Sequence[str]) -> str:
    """Finds a child row without its parent in the whole table: its key's, then the foreign key's values as text."""
    texts = texts_of(f"c.{quoted(name)}" for name in (*child_key, *key.child_columns))
    return f"SELECT {texts} FROM {qualified(key.child)} c {no_parent(key, 'c')} LIMIT 1"


def no_parent(key: ForeignKey, alias: str) -> str:
    """Joins and conditions by which a row of the child refers to one that isn't there."""
    pairs = " AND ".join(
        f"p.{quoted(parent)} = {alias}.{quoted(child)}"
        for child, parent in zip(key.child_columns, key.parent_columns, strict=True)
    )
    filled = " AND ".join(f"{alias}.{quoted(name)} IS NOT NULL" for name in key.child_columns)
    missing = f"p.{quoted(key.parent_columns[0])} IS NULL"
    return f"LEFT JOIN {qualified(key.parent)} p ON {pairs} WHERE {filled} AND {missing}"


def texts_of(values: Iterable[str]) -> str:
    """Values as text; bytes, which no character set makes readable, as hexadecimal digits. Numbers and dates are of
    the character set ``binary`` too, and tell themselves by their coercibility."""
    return ", ".join(
        f"IF(CHARSET({one}) = 'binary' AND COERCIBILITY({one}) < 5, CONCAT('0x', HEX({one})), CAST({one} AS CHAR))"
        for one in values
    )
