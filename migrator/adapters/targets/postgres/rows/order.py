"""Order of tables by their foreign keys. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from migrator.model.table import TableId


def parents_first(references: Mapping[TableId, Iterable[TableId]]) -> list[TableId]:
    """The tables so that a referenced one comes before those that reference it.

    Self references don't count. Within a cycle the order is arbitrary but stable; ``cycles`` names it.
    """
    done: dict[TableId, None] = {}
    visiting: set[TableId] = set()

    def visit(table: TableId) -> None:
        if table in done or table in visiting:
            return
        visiting.add(table)
        for parent in sorted(set(references[table])):
            if parent in references and parent != table:
                visit(parent)
        visiting.discard(table)
        done[table] = None

    for table in sorted(references):
        visit(table)
    return list(done)


def cycles(references: Mapping[TableId, Iterable[TableId]]) -> list[list[TableId]]:
    """Groups of two or more tables that reference each other in a circle."""
    reach = {table: _reachable(table, references) for table in references}
    groups: list[list[TableId]] = []
    for table in sorted(references):
        group = sorted({table} | {other for other in reach[table] if table in reach.get(other, set())})
        if len(group) > 1 and group not in groups:
            groups.append(group)
    return groups


def _reachable(start: TableId, references: Mapping[TableId, Iterable[TableId]]) -> set[TableId]:
    found: set[TableId] = set()
    waiting = [start]
    while waiting:
        for parent in references.get(waiting.pop(), ()):
            if parent not in found:
                found.add(parent)
                waiting.append(parent)
    return found
