"""Checks of a mapping before a run, and messages that name the places where it reads a source table.

A server's message about the table alone doesn't lead the mapping's author there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from migrator.errors import MappingError, PreflightError, SourceError
from migrator.model.finding import Finding
from migrator.model.target import TargetTable
from transforms.registry import Mapping, TargetMapping


def readers_of(mapping: Mapping, table: str) -> str:
    """The functions and queries that read a source table, with file and line."""
    found = [target.where_named(table) for target in mapping.targets if table in target.sources]
    return "; ".join(dict.fromkeys(found))


def with_readers(mapping: Mapping, findings: Sequence[Finding]) -> list[Finding]:
    """Findings about a table as a whole also say who reads it."""
    read = {table: readers_of(mapping, table) for target in mapping.targets for table in target.sources}

    def with_reader(finding: Finding) -> Finding:
        name = next((table for table in read if finding.subject.endswith(f".{table}")), None)
        if finding.check != "table" or name is None:
            return finding
        return replace(finding, problem=f"{finding.problem}; read by {read[name]}")

    return [with_reader(finding) for finding in findings]


@contextmanager
def naming_readers(mapping: Mapping) -> Iterator[None]:
    """A ``SourceError`` that ends with tables' names also says who reads them."""
    try:
        yield
    except SourceError as error:
        named = [name.rpartition(".")[2] for name in error.what.rpartition(": ")[2].split(", ")]
        readers = [found for name in named if (found := readers_of(mapping, name))]
        if readers:
            error.where = "; ".join(dict.fromkeys([*readers, error.where or ""])).strip("; ")
        raise


CLOSE = (
    "write a function or a query that makes it, then delete its line mapping.gap(...); one that stays without rows"
    " needs no function"
)
"""Remedy for a target table that its author has left open."""


def gaps(mapping: Mapping) -> list[Finding]:
    """A finding for each target table that its author has left open."""
    return [Finding("gap", table, f"not mapped yet: {why}", CLOSE) for table, why in mapping.gaps.items()]


def refuse(findings: list[Finding]) -> None:
    """Raises ``PreflightError`` with every fatal finding, if there is one."""
    fatal = [finding for finding in findings if finding.fatal]
    if fatal:
        raise PreflightError(
            f"preflight found {len(fatal)} problem(s)",
            cause=" | ".join(f"{finding.subject}: {finding.problem}" for finding in fatal),
            remedy=" | ".join(dict.fromkeys(finding.remedy for finding in fatal)),
        )


def check_key(mapping: TargetMapping, table: TargetTable) -> None:
    """Raises ``MappingError`` where the mapping names another key than the table's, by which rows are merged."""
    if set(mapping.key) != set(table.key):
        raise MappingError(
            f"target table {mapping.name!r} has another key than its mapping says",
            where=mapping.where(),
            cause=f"key= says {', '.join(mapping.key)}; the table's key is {', '.join(table.key)}",
            remedy="name the table's key columns in key=, or change the key in an Alembic revision",
        )
