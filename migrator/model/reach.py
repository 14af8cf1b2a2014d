"""The tables that a joined target's rows depend on: a grain, and the links from its table to every other table.

A change anywhere in the join is traced along these links to the grain values it can touch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from migrator.model.table import Column, TableId, TableSchema

VALUE = "~"
"""Begins the names of columns that only the mirror has: hashes of values computed from the row."""


def spoken(column: str) -> str:
    """A column's name as its mapping has it."""
    return column[1:].rpartition("~")[0] if column.startswith(VALUE) else column


@dataclass(frozen=True, order=True, slots=True)
class Reference:
    """A foreign key between two source tables, as its catalog tells it; column by column.

    ``own_equality``: it compares by an operator that somebody defined, not by one that the server came with.
    """

    child: TableId
    columns: tuple[str, ...]
    parent: TableId
    parent_columns: tuple[str, ...]
    own_equality: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """One source table in the part it plays for a target; a table may play several parts.

    Attributes:
        role: name of the part: the table's own name unless the mapping gave it another.
        schema: the source table.
        above: index of the node towards the grain's table; None for that table itself, and for others that
            share the
            grain with it.
        columns: columns whose values equal those of ``above_columns`` in the linked row above; of a table
            that shares
            the grain, its columns that hold the grain's value.
        above_columns: the other end of the link.
    """

    role: str
    schema: TableSchema
    above: int | None = None
    columns: tuple[str, ...] = ()
    above_columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reach:
    """One grain of a target and everything that hangs on it.

    Attributes:
        grain: columns of the first node's table; rows with equal values belong together.
        nodes: the grain's table first, then those that share the grain with it; each other node after the one
            above.
        name: what tells a computed grain from others: its values are kept beside the mirror under this name. Empty
            for a grain of plain columns.
    """

    grain: tuple[str, ...]
    nodes: tuple[Node, ...]
    name: str = ""

    @property
    def root(self) -> Node:
        """The grain's table, the first one where several share it."""
        return self.nodes[0]

    @property
    def shared(self) -> bool:
        """Tells whether several tables have values of the grain: each value may be in some of them only."""
        return len(self.roots()) > 1

    def roots(self) -> list[int]:
        """The nodes whose rows have a value of the grain."""
        return [number for number, node in enumerate(self.nodes) if node.above is None]

    def grain_of(self, index: int) -> tuple[str, ...]:
        """The columns of a root that hold the grain's value."""
        return self.nodes[index].columns if index else self.grain

    def begun_at(self, index: int) -> Reach:
        """The same with another of its roots as the first node."""
        places = list(range(len(self.nodes)))
        places[0], places[index] = index, 0
        nodes = [self.nodes[place] for place in places]
        nodes = [node if node.above is None else replace(node, above=places[node.above]) for node in nodes]
        first, other = replace(nodes[0], columns=()), replace(nodes[index], columns=self.grain_of(0))
        nodes[index], nodes[0] = other, first
        return Reach(self.grain_of(index), tuple(nodes), self.name)

    def tables(self) -> dict[str, TableSchema]:
        """The source tables it reaches, by name."""
        return {node.schema.id.name: node.schema for node in self.nodes}

    def below(self, index: int) -> list[int]:
        """The nodes linked directly under one."""
        return [number for number, node in enumerate(self.nodes) if node.above == index]

    def path(self, index: int) -> list[int]:
        """Returns the nodes from one node up to the table that has the grain, both included."""
        found = [index]
        while (above := self.nodes[found[-1]].above) is not None:
            found.append(above)
        return found

    def down_columns(self, index: int) -> tuple[str, ...]:
        """Returns the columns of a node's row by which those below are found: its key, and its ends of their
        links."""
        below = [name for child in self.below(index) for name in self.nodes[child].above_columns]
        return tuple(dict.fromkeys([*self.nodes[index].schema.key, *below]))

    def up_columns(self, index: int) -> tuple[str, ...]:
        """Returns the columns of a node's row by which the one above is found; for the grain's table, its key."""
        node = self.nodes[index]
        return node.schema.key if node.above is None else node.columns


def entangled(reaches: tuple[Reach, ...]) -> bool:
    """Tells whether rows of a grain's table also come in by another link (a hierarchy, or tables that are each
    other's grain).

    Then rows read for some grains stand for other grains too, of which only a part is there. Of a grain that
    several tables share nothing is there by half: of each table the rows with its values are read.
    """
    roots = [reach.nodes[index].schema.id for reach in reaches for index in reach.roots()]
    others = {node.schema.id for reach in reaches for node in reach.nodes if node.above is not None}
    return bool(set(roots) & others) or len(set(roots)) < len(roots)


def linked_columns(reaches: tuple[Reach, ...]) -> dict[TableId, set[tuple[str, ...]]]:
    """The column tuples by which rows are looked up, per source table."""
    found: dict[TableId, set[tuple[str, ...]]] = {}
    for reach in reaches:
        for node in reach.nodes:
            if node.above is not None:
                found.setdefault(node.schema.id, set()).add(node.columns)
                above = reach.nodes[node.above]
                found.setdefault(above.schema.id, set()).add(node.above_columns)
    return found


def united(targets: Sequence[tuple[Reach, ...]]) -> list[tuple[Reach, ...]]:
    """The reaches of several targets with one layout per table, that of its mirror: every computed value of
    each."""
    found: dict[TableId, dict[str, Column]] = {}
    nodes = [node for reaches in targets for reach in reaches for node in reach.nodes]
    for node in nodes:
        values = [column for column in node.schema.columns if column.name.startswith(VALUE)]
        found.setdefault(node.schema.id, {}).update({column.name: column for column in values})

    def wider(node: Node) -> Node:
        own = [column for column in node.schema.columns if not column.name.startswith(VALUE)]
        more = sorted(found[node.schema.id].values(), key=lambda column: column.name)
        return replace(node, schema=replace(node.schema, columns=(*own, *more)))

    return [
        tuple(replace(reach, nodes=tuple(map(wider, reach.nodes))) for reach in reaches)
        for reaches in targets
    ]
