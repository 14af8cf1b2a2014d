"""Facts about each kind of server that hold before any is reached: a row each of one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """One kind of server.

    Attributes:
        name: the product's, for messages.
        port: where it listens unless another port is named.
        placements: how a chunk's place in its log may be found; the last resort last.
        query_log: format of its log of queries, for dual reads.
        schema: the schema of tables unless another is named; empty where a database has none.
        schemes: schemes of URLs that mean it, beside its kind.
        change_tables: whether triggers may fill change tables, to be read instead of its log.
        text_columns: whether columns may be chosen that travel as the text of their values.
        staging: whether executors can load rows beside it as a target.
        texts_of_times: whether its dates and times travel as text, since some of them aren't in the calendar.
        positions: the unit in which positions of its log are apart: ``bytes`` of log, or ``transactions``.
    """

    name: str
    port: int
    placements: tuple[str, ...]
    query_log: str
    schema: str = ""
    schemes: tuple[str, ...] = ()
    change_tables: bool = False
    text_columns: bool = False
    staging: bool = False
    texts_of_times: bool = False
    positions: str = "transactions"


def _binlog(name: str) -> EngineFacts:
    return EngineFacts(name, 3306, ("witness", "watermark"), "mysql", texts_of_times=True)


EXAMPLE = "postgresql"
"""The kind of both servers of a project that is written without being told."""
ENGINES: Mapping[str, EngineFacts] = {
    "postgresql": EngineFacts(
        "PostgreSQL",
        5432,
        ("witness", "watermark", "message"),
        "postgresql",
        schema="public",
        schemes=("postgres",),
        change_tables=True,
        text_columns=True,
        staging=True,
        positions="bytes",
    ),
    "mariadb": _binlog("MariaDB"),
    "mysql": _binlog("MySQL"),
}
"""The engines by ``kind`` in a project's file."""


def placements(kind: str) -> tuple[str, ...]:
    """Returns the ways to find a chunk's place in a log of this kind; all of them for a kind that isn't known."""
    if kind in ENGINES:
        return ENGINES[kind].placements
    return tuple(dict.fromkeys(placement for facts in ENGINES.values() for placement in facts.placements))


def names_where(has: Callable[[EngineFacts], bool]) -> str:
    """Returns the names of the engines of which something is true, for messages."""
    return ", ".join(facts.name for facts in ENGINES.values() if has(facts))


def kind_of_scheme(scheme: str) -> str:
    """Returns the kind of server that a URL's scheme means; the scheme itself where it means none."""
    return next((kind for kind, facts in ENGINES.items() if scheme in facts.schemes), scheme)
