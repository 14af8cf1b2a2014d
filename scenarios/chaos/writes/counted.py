"""Weights of a workload from what a server has counted: which tables its clients insert into, update, delete from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from migrator.errors import ConfigError, MigratorError
from scenarios.chaos.addresses import addressed, is_address
from scenarios.chaos.writes.weights import KINDS, Weights, load
from scenarios.database import Database
from scenarios.faults.session import query

_REMEDY = "give a file of weights, or an address like postgresql://user@host/database of a server that counts"
_POSTGRES = (
    "SELECT coalesce(root.relname, counted.relname), sum(n_tup_ins), sum(n_tup_upd), sum(n_tup_del)"
    " FROM pg_catalog.pg_stat_user_tables counted"
    " LEFT JOIN pg_catalog.pg_class root ON root.oid = pg_catalog.pg_partition_root(counted.relid)"
    " GROUP BY 1 ORDER BY 1"
)
"""A partition's changes are those of its table."""
_MYSQL = (
    "SELECT object_name, count_insert, count_update, count_delete"
    " FROM performance_schema.table_io_waits_summary_by_table"
    " WHERE object_type = 'TABLE' AND object_schema = DATABASE() ORDER BY 1"
)
_GROUPS: Mapping[str, tuple[str, ...]] = {
    "inserted": ("insert", "family"),
    "updated": ("update", "hot", "move"),
    "deleted": ("delete", "again"),
}
"""Kinds of transactions by the kind of row change that they are made of; those that are undone leave no count."""


class Counted(NamedTuple):
    """The row changes of one table since the server began to count."""

    inserted: int
    updated: int
    deleted: int


def weights(origin: str | Path, kind: str) -> Weights:
    """The weights of a file, or of a server's counters at an address; ``kind``: the engine of the project's source.

    Raises ``ConfigError``.
    """
    return from_server(origin, kind) if isinstance(origin, str) and is_address(origin) else load(Path(origin))


def from_server(address: str, kind: str) -> Weights:
    """Reads a server's counters; nothing else is read there.

    Raises ``ConfigError`` where it can't be asked, or has counted no change.
    """
    server = addressed(address, kind, "the weights", _REMEDY)
    where = f"{server.host}, {server.database}"
    try:
        counts = counted(server)
    except MigratorError as error:
        raise ConfigError(
            "the server's counters can't be read", where=where, cause=error.cause, remedy=_REMEDY
        ) from error
    if not any(map(sum, counts.values())):
        off = "performance_schema is off, or was reset" if server.kind != "postgresql" else "they were reset"
        raise ConfigError(
            "the server has counted no row change",
            where=where,
            cause=f"it is new, {off}",
            remedy=_REMEDY,
        )
    return weighed(counts)


def counted(server: Database) -> dict[str, Counted]:
    """The row changes that a server has counted, by table. Raises ``MigratorError``."""
    rows = query(server, _POSTGRES if server.kind == "postgresql" else _MYSQL)
    return {str(name): Counted(*(int(number or 0) for number in numbers)) for name, *numbers in rows}


def weighed(counts: Mapping[str, Counted]) -> Weights:
    """The weights that draw tables and kinds of changes as often as they were counted; a table without any has 0."""
    changes = {name: sum(one) for name, one in counts.items()}
    written = [number for number in changes.values() if number]
    total, mean = sum(written), sum(written) / max(len(written), 1)
    whole = sum(KINDS[name] for names in _GROUPS.values() for name in names)
    kinds = dict(KINDS)
    for place, names in enumerate(_GROUPS.values()):
        share = sum(one[place] for one in counts.values()) / max(total, 1)
        usual = sum(KINDS[name] for name in names)
        kinds |= {name: KINDS[name] / usual * whole * share for name in names}
    return Weights(kinds, {name: number / mean if mean else 0.0 for name, number in changes.items()})
