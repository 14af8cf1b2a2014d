"""What the writer knows about a target table beyond ``TargetTable``: storage of columns, foreign keys, uniqueness."""

from __future__ import annotations

from dataclasses import dataclass, field

from migrator.model.table import TableId
from migrator.model.target import TargetColumn, TargetTable


@dataclass(frozen=True, slots=True)
class Storage:
    """How one column is stored.

    Attributes:
        column: as the other stations see it.
        base: name of the built-in type under any domains (``int4``, ``varchar``, ...), ``enum`` for enums.
        declared: that type with its modifier, schema-qualified where needed: what a staging column is declared as.
        cast: the column's own type without modifier, quoted: a cast to it never shortens or pads a value.
        precision: digits of seconds of a timestamp (6 unless declared smaller).
        identity_always: ``GENERATED ALWAYS AS IDENTITY``: may be inserted, never updated.
        exact: whether equal values of the type always look the same (not so for citext, char(n), floats, ...).
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
    exact: bool = True
    plain: str = ""
    domain: bool = False
    nested: bool = False


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """One foreign key. ``on_delete``: a(no action), r(estrict), c(ascade), n(ull), d(efault), as in pg_constraint."""

    name: str
    child: TableId
    child_columns: tuple[str, ...]
    parent: TableId
    parent_columns: tuple[str, ...]
    on_delete: str
    match_full: bool
    deferrable: bool

    def acts(self) -> bool:
        """Whether deleting a parent row changes child rows by itself."""
        return self.on_delete in "cnd"


@dataclass(frozen=True, slots=True)
class Structure:
    """A target table as the writer needs it.

    Attributes:
        table: as the other stations see it.
        storage: one per column, in order.
        outgoing: foreign keys of this table.
        incoming: foreign keys of any table that point here.
        exclusive: columns that unique indexes beside the key, or exclusion constraints, depend on.
        deferrable: whether any constraint of this table or pointing here can be deferred.
    """

    table: TargetTable
    storage: tuple[Storage, ...]
    outgoing: tuple[ForeignKey, ...] = ()
    incoming: tuple[ForeignKey, ...] = ()
    exclusive: frozenset[str] = field(default=frozenset())
    deferrable: bool = False

    def column(self, name: str) -> Storage | None:
        """Storage of the column of that name, if there is one."""
        return next((one for one in self.storage if one.column.name == name), None)

    def kept(self, written: tuple[str, ...]) -> tuple[str, ...]:
        """Columns that are neither written by the mapping nor computed: a rewritten row must keep their values."""
        return tuple(
            one.column.name
            for one in self.storage
            if one.column.name not in written and not one.column.generated
        )

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
