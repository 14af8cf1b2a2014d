"""Facts that the writer knows about a target table beyond ``TargetTable``: storage of columns, foreign keys,
uniqueness."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from migrator.adapters.targets.shared import structure as shared
from migrator.adapters.targets.shared.structure import TableStructure
from migrator.model.target import TargetColumn


@dataclass(frozen=True, slots=True)
class Equality:
    """The server's test whether two values are equal: operator and collation of an index or foreign key.

    Written out, because a bare ``=`` is another operator where the search path has one for the column's type, and
    values that were staged have another collation than the column.

    Attributes:
        operator: qualified.
        collation: qualified and quoted; empty for types without one.
        exact: whether values that are one always look the same (not so for citext, char(n), floats, ...).
    """

    operator: str = "OPERATOR(pg_catalog.=)"
    collation: str = ""
    exact: bool = True

    def of(self, left: str, right: str) -> str:
        """SQL that says whether two values are one."""
        collated = f" COLLATE {self.collation}" if self.collation else ""
        return f"{left} {self.operator} {right}{collated}"


@dataclass(frozen=True, slots=True)
class Storage:
    """The storage of one column.

    Attributes:
        column: as the other stations see it.
        base: name of the built-in type under any domains (``int4``, ``varchar``, ...), ``enum`` for enums.
        declared: that type with its modifier, schema-qualified where needed: what a staging column is declared as.
        cast: the column's own type without modifier, quoted: a cast to it never shortens or pads a value.
        precision: digits of seconds of a timestamp (6 unless declared smaller).
        identity_always: ``GENERATED ALWAYS AS IDENTITY``: may be inserted, never updated.
        equality: of a key column, that of the key's index.
        plain: the built-in type without its modifier; ``declared`` where it has none.
        domain: whether the column's type is a domain, a cast to which shortens and rounds.
        nested: whether parts of its values have a modifier: members of composites, elements that are domains.
    """

    column: TargetColumn
    base: str
    declared: str
    cast: str
    precision: int = 6
    identity_always: bool = False
    plain: str = ""
    domain: bool = False
    nested: bool = False
    equality: Equality = Equality()

    @property
    def exact(self) -> bool:
        """Tells whether values that the server takes for equal always look the same."""
        return self.equality.exact

    @property
    def collation(self) -> str:
        """The collation of the key's index; empty for types without one."""
        return self.equality.collation


@dataclass(frozen=True, slots=True)
class ForeignKey(shared.ForeignKey):
    """One foreign key as PostgreSQL has it.

    ``on_delete``: a(no action), r(estrict), c(ascade), n(ull), d(efault), as in pg_constraint. ``equalities``: per
    pair of columns, the parent's on the left.
    """

    on_delete: str
    match_full: bool
    deferrable: bool
    equalities: tuple[Equality, ...] = ()

    def pairs(self) -> Iterator[tuple[str, str, Equality]]:
        """The parent's columns, the child's, and how they compare."""
        equalities = self.equalities or (Equality(),) * len(self.child_columns)
        yield from zip(self.parent_columns, self.child_columns, equalities, strict=True)

    def acts(self) -> bool:
        """Tells whether deleting a parent row changes child rows by itself."""
        return self.on_delete in "cnd"


@dataclass(frozen=True, slots=True)
class Structure(TableStructure[Storage, ForeignKey]):
    """A target table as the writer needs it.

    Attributes:
        table, storage, outgoing, incoming: see ``TableStructure``.
        exclusive: columns that unique indexes beside the key, or exclusion constraints, depend on.
        deferrable: whether any constraint of this table or pointing here can be deferred.
    """

    exclusive: frozenset[str] = field(default=frozenset())
    deferrable: bool = False

    def one_key(self, left: Callable[[str], str], right: Callable[[str], str]) -> str:
        """SQL that says whether two rows have one key, given what each calls a column of it."""
        storages = [(name, self.column(name)) for name in self.table.key]
        return " AND ".join(
            (Equality() if storage is None else storage.equality).of(left(name), right(name))
            for name, storage in storages
        )

    def key_is_exact(self) -> bool:
        """Tells whether keys that the server takes for equal always look the same."""
        storages = [self.column(name) for name in self.table.key]
        return all(storage is not None and storage.equality.exact for storage in storages)

    def moving(self, written: tuple[str, ...]) -> tuple[str, ...]:
        """Written columns whose change needs the row to be deleted and inserted again.

        Exclusive columns, because PostgreSQL checks uniqueness row by row and two rows may swap values; identity
        columns that are always generated, because UPDATE refuses them.
        """
        return tuple(
            one.column.name
            for one in self.storage
            if one.column.name in written
            and one.column.name not in self.table.key
            and (one.column.name in self.exclusive or one.identity_always)
        )
