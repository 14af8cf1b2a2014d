"""The engines as the judge reads them, a row each of one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from migrator.model.server import Server
from migrator.model.table import Column
from verify.readers.mysql import key_map as mysql_key_map
from verify.readers.mysql import keys as mysql_keys
from verify.readers.mysql.mariadb_source import MariaDBSource
from verify.readers.mysql.mysql_source import MySQLSource
from verify.readers.mysql.statements import MySQLStatements
from verify.readers.mysql.target import MySQLTarget
from verify.readers.postgres import key_map as postgres_key_map
from verify.readers.postgres import keys as postgres_keys
from verify.readers.postgres.change_tables import ChangeTableSource
from verify.readers.postgres.source import PostgresSource
from verify.readers.postgres.statements import PostgresStatements
from verify.readers.postgres.target import PostgresTarget
from verify.readers.snapshot import TargetColumnText
from verify.readers.source import SourceReader
from verify.readers.statements import Statements
from verify.settings import ServerSettings

TargetReader = PostgresTarget | MySQLTarget
SourceKey = Callable[[Column], str | None]
TargetKey = Callable[[TargetColumnText], str | None]
AgreedKey = Callable[[Column, TargetColumnText], str | None]


@dataclass(frozen=True, slots=True)
class JudgedEngine:
    """One kind of server.

    Attributes:
        source: makes the reader of a source, for a migration.
        target: likewise.
        schema: the schema part of a table's identity.
        keys: kinds of key columns (``verify.readers.chunk_keys``): of a source's that are neither numbers nor bytes,
            of a target's, and of those whose order two servers of this kind agree upon, and others may not.
        key_map: old keys and numbers of a migration's map in a target, by name, behind a number, in their order.
        statements: writes statements that would mend a target, by the schema of its tables.
    """

    source: Callable[[ServerSettings, str], SourceReader]
    target: Callable[[ServerSettings, str], TargetReader]
    schema: Callable[[Server], str]
    keys: tuple[SourceKey, TargetKey, AgreedKey]
    key_map: Callable[[ServerSettings, str, str, int], list[tuple[str, int]]]
    statements: Callable[[str], Statements]


def _postgres_source(settings: ServerSettings, migration: str) -> SourceReader:
    return (ChangeTableSource if settings.change_tables else PostgresSource)(settings, migration)


def _of_mysql(source: Callable[[ServerSettings], SourceReader]) -> JudgedEngine:
    return JudgedEngine(
        source=lambda settings, _migration: source(settings),
        target=MySQLTarget,
        schema=lambda server: server.database,
        keys=(mysql_keys.source_key, mysql_keys.target_key, mysql_keys.agreed_key),
        key_map=mysql_key_map.key_map_entries,
        statements=MySQLStatements,
    )


JUDGED: Mapping[str, JudgedEngine] = {
    "postgresql": JudgedEngine(
        source=_postgres_source,
        target=PostgresTarget,
        schema=lambda server: server.schema,
        keys=(postgres_keys.source_key, postgres_keys.target_key, postgres_keys.agreed_key),
        key_map=postgres_key_map.key_map_entries,
        statements=PostgresStatements,
    ),
    "mariadb": _of_mysql(MariaDBSource),
    "mysql": _of_mysql(MySQLSource),
}
"""The engines by ``kind`` of a server."""


def source_reader(settings: ServerSettings, migration: str) -> SourceReader:
    """The reader for the kind of the source."""
    return JUDGED[settings.server.kind].source(settings, migration)


def target_reader(settings: ServerSettings, migration: str) -> TargetReader:
    """The reader for the kind of the target."""
    return JUDGED[settings.server.kind].target(settings, migration)
