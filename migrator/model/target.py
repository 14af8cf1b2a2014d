"""Target tables as the apply station sees them."""

from __future__ import annotations

from dataclasses import dataclass

from migrator.model.table import TableId


@dataclass(frozen=True, slots=True)
class TargetColumn:
    """One column of a target table.

    Attributes:
        name: as the target spells it.
        spark_type: the Spark SQL type that values are cast to before staging, e.g. ``decimal(12,2)``; ``string``
            where the target parses text (uuid, json, enum, arrays, ...).
        native_type: the target's own type name, used to cast staged text.
        nullable: whether the target allows NULL.
        has_default: whether the target fills the column by itself (default or identity).
        generated: whether the column is computed and must never be written.
        collation: of a key, the collation (or operator) by which values that differ may be one; empty: by none.
    """

    name: str
    spark_type: str
    native_type: str
    nullable: bool
    has_default: bool
    generated: bool
    collation: str = ""


@dataclass(frozen=True, slots=True)
class TargetTable:
    """A target table with its primary key and the tables its foreign keys point at."""

    id: TableId
    columns: tuple[TargetColumn, ...]
    key: tuple[str, ...]
    references: tuple[TableId, ...] = ()

    def column(self, name: str) -> TargetColumn | None:
        """The column of that name, if there is one."""
        return next((column for column in self.columns if column.name == name), None)
