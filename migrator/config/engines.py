"""Facts about each kind of server that hold before any is reached: a row each of one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """One kind of server.

    Attributes:
        port: where it listens unless another port is named.
        placements: how a chunk's place in its log may be found; the last resort last.
        schema: the schema of tables unless another is named; empty where a database has none.
        exact_texts: whether texts are equal keys only if they are the same, unless a collation says otherwise.
        query_log: format of its log of queries, for dual reads.
    """

    port: int
    placements: tuple[str, ...]
    schema: str
    exact_texts: bool
    query_log: str


_BINLOG = EngineFacts(3306, ("witness", "watermark"), "", False, "mysql")
ENGINES: Mapping[str, EngineFacts] = {
    "postgresql": EngineFacts(5432, ("witness", "watermark", "message"), "public", True, "postgresql"),
    "mariadb": _BINLOG,
    "mysql": _BINLOG,
}
"""The engines by ``kind`` in a project's file."""


def placements(kind: str) -> tuple[str, ...]:
    """Returns the ways to find a chunk's place in a log of this kind; all of them for a kind that isn't known."""
    return ENGINES[kind].placements if kind in ENGINES else ENGINES["postgresql"].placements
