"""The kinds of source, a row each of one table. With the other modules of ``wiring`` the only place that chooses
adapters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from sqlalchemy import URL, Engine

from migrator.adapters.sources.binlog.grants import source_grants as binlog_grants
from migrator.adapters.sources.binlog.load import BinlogLoadMeter
from migrator.adapters.sources.binlog.meter import BinlogMeter
from migrator.adapters.sources.binlog.remains import BinlogRemains
from migrator.adapters.sources.binlog.retention import binlog_retention
from migrator.adapters.sources.binlog.transactions.watermark import WatermarkRowWriter
from migrator.adapters.sources.executors.chunk_reader import (
    ExecutorChunkReader,
    Executors,
    RunThere,
)
from migrator.adapters.sources.mariadb.catalog import MariaCatalog
from migrator.adapters.sources.mariadb.catalog import log_end as maria_log_end
from migrator.adapters.sources.mariadb.catalog import server_name as maria_name
from migrator.adapters.sources.mariadb.chunk_reader import MariaChunkReader
from migrator.adapters.sources.mariadb.log_reader import MariaLogReader
from migrator.adapters.sources.mysql.catalog import MysqlCatalog
from migrator.adapters.sources.mysql.catalog import log_end as mysql_log_end
from migrator.adapters.sources.mysql.catalog import server_name as mysql_name
from migrator.adapters.sources.mysql.chunk_reader import MysqlChunkReader
from migrator.adapters.sources.mysql.log_reader import MysqlLogReader
from migrator.adapters.sources.postgres.catalog import PostgresCatalog
from migrator.adapters.sources.postgres.change_tables.catalog import ChangeTableCatalog, change_table_end
from migrator.adapters.sources.postgres.change_tables.chunk_views import (
    chunk_reader as change_table_chunks,
)
from migrator.adapters.sources.postgres.change_tables.log_reader import ChangeTableLogReader
from migrator.adapters.sources.postgres.chunks.chunk_reader import PostgresChunkReader
from migrator.adapters.sources.postgres.chunks.watermark import mark_writer
from migrator.adapters.sources.postgres.grants import source_grants as postgres_grants
from migrator.adapters.sources.postgres.load import PostgresLoadMeter
from migrator.adapters.sources.postgres.log.log_reader import PostgresLogReader
from migrator.adapters.sources.postgres.meter import PostgresMeter
from migrator.adapters.sources.postgres.remains import PostgresSourceRemains
from migrator.adapters.sources.postgres.retention import slot_retention
from migrator.adapters.sources.postgres.sequences import handed_out as postgres_handed_out
from migrator.adapters.sources.postgres.settings import CHANGE_TABLES, PostgresSource
from migrator.config.project import Settings
from migrator.connections.mysql.sequences import handed_out as binlog_handed_out
from migrator.connections.mysql.session import ENGINE_OPTIONS, REVISES
from migrator.connections.mysql.settings import BinlogSource, default_server_id, opened
from migrator.connections.same_server import SameServer
from migrator.model.grants import Grants
from migrator.model.position import Position
from migrator.model.table import TableSchema
from migrator.ports.log_notes import LogNotes
from migrator.ports.remains import Remains
from migrator.ports.sequences import SourceNumbers
from migrator.ports.source import ChunkReader, LogReader, SourceCatalog
from migrator.run.capture.loop import SourcePorts
from migrator.run.steps import Step
from migrator.schema.engines import as_engine

_PARTS_OF_A_TRANSACTION_ROWS = 50_000

Source = tuple[SourceCatalog, Callable[[list[TableSchema]], SourcePorts]]
S = TypeVar("S")
MakeParts = Callable[[S, Step, RunThere | None], Source]


@dataclass(frozen=True, slots=True)
class SourceEngine(Generic[S]):
    """One kind of source: its adapters, each made of the settings as they take them. What is made connects when it
    is used.

    Attributes:
        settings: makes these settings of a project's.
        parts: see ``migrator.wiring.source.source_parts``.
        numbers: how far the source's sequences are.
        grants: the least rights that reading some tables needs.
        database: see ``source_database`` there.
        reading: module with which executors read chunks.
        script: see ``source_script`` there.
        remains: see ``source_remains`` there.
    """

    settings: Callable[[Settings], S]
    parts: MakeParts[S]
    numbers: Callable[[S], SourceNumbers]
    grants: Callable[[S, Sequence[str]], Grants]
    database: Callable[[S], Engine]
    reading: str
    script: Callable[[S], Callable[[Sequence[str]], str] | None]
    remains: Callable[[S], Remains]


def _elsewhere(
    executors: RunThere | None,
    make: Callable[[], ChunkReader],
    here: Callable[[], ChunkReader],
    same: SameServer,
) -> Callable[[Callable[[str], None]], Callable[[], ChunkReader]] | None:
    """See ``SourcePorts.elsewhere``; ``make`` can be pickled, and knows nothing of this process's steps."""
    if executors is None:
        return None

    def reader_factory(say: Callable[[str], None]) -> Callable[[], ChunkReader]:
        known = Executors(executors, say)
        return lambda: ExecutorChunkReader(make, here(), same, known)

    return reader_factory


def _postgres_parts(source: PostgresSource, step: Step, executors: RunThere | None) -> Source:
    if source.log == CHANGE_TABLES:
        return ChangeTableCatalog(source), lambda schemas: _change_tables(source, schemas, step, executors)

    catalog = PostgresCatalog(source)

    def ports(schemas: Sequence[TableSchema]) -> SourcePorts:
        same, notes = SameServer(), LogNotes()

        def here() -> PostgresChunkReader:
            return PostgresChunkReader(source, step, same=same)

        return SourcePorts(
            lambda: PostgresLogReader(source, schemas, step, same, notes),
            here,
            mark_writer(source),
            lambda: PostgresLoadMeter(source),
            lambda _captured: slot_retention(source, catalog.position),
            lambda: PostgresMeter(source),
            elsewhere=_elsewhere(executors, partial(PostgresChunkReader, source, same=same), here, same),
            notes=notes,
        )

    return catalog, ports


def _change_tables(
    source: PostgresSource, schemas: Sequence[TableSchema], step: Step, executors: RunThere | None
) -> SourcePorts:
    same, notes = SameServer(), LogNotes()

    def here() -> PostgresChunkReader:
        return change_table_chunks(source, step, same)

    return SourcePorts(
        lambda: ChangeTableLogReader(source, schemas, step, same, notes),
        here,
        None,
        lambda: PostgresLoadMeter(source),
        meter=lambda: PostgresMeter(source, change_table_end),
        elsewhere=_elsewhere(executors, partial(change_table_chunks, source, same=same), here, same),
        notes=notes,
    )


def _postgres(settings: Settings) -> PostgresSource:
    return PostgresSource(
        settings.source,
        migration=settings.name,
        placement=settings.placement,
        streaming=settings.streaming,
        failover=settings.failover,
        spill_folder=settings.state / "spill",
        part_rows=_PARTS_OF_A_TRANSACTION_ROWS,
        log=settings.log,
        forget_changes=settings.forget_changes,
        text_columns=settings.text_columns,
        counterpart=settings.counterpart,
    )


def _postgres_script(source: PostgresSource) -> Callable[[Sequence[str]], str] | None:
    return ChangeTableCatalog(source).script if source.log == CHANGE_TABLES else None


def _binlog_parts(
    make_catalog: Callable[[BinlogSource], MariaCatalog | MysqlCatalog],
    log_reader: Callable[[BinlogSource, Sequence[TableSchema], SameServer, LogNotes], LogReader],
    chunk_reader: Callable[..., ChunkReader],
    log_end: Callable[[Any], Position],
    server_name: Callable[[Any], str],
) -> MakeParts[BinlogSource]:
    """Makes a source's parts of the adapters that differ between MariaDB and MySQL."""

    def parts(source: BinlogSource, step: Step, executors: RunThere | None) -> Source:
        catalog = make_catalog(source)

        def ports(schemas: Sequence[TableSchema]) -> SourcePorts:
            same, notes = SameServer(), LogNotes()

            def here() -> ChunkReader:
                return chunk_reader(source, step, same=same)

            return SourcePorts(
                lambda: log_reader(source, schemas, same, notes),
                here,
                _marks(source),
                lambda: BinlogLoadMeter(source),
                partial(binlog_retention, source, catalog.position, server_name),
                lambda: BinlogMeter(source, log_end),
                elsewhere=_elsewhere(executors, partial(chunk_reader, source, same=same), here, same),
                notes=notes,
            )

        return catalog, ports

    return parts


def _binlog(settings: Settings) -> BinlogSource:
    return BinlogSource(
        settings.source,
        migration=settings.name,
        server_id=settings.server_id or default_server_id(settings.name),
        placement=settings.placement,
        part_rows=_PARTS_OF_A_TRANSACTION_ROWS,
        unproven=settings.unproven_log,
        counterpart=settings.counterpart,
    )


def _marks(source: BinlogSource) -> Callable[[], WatermarkRowWriter] | None:
    return (lambda: WatermarkRowWriter(source)) if source.placement == "watermark" else None


def _numbers_of_postgres(source: PostgresSource) -> SourceNumbers:
    return partial(postgres_handed_out, source)


def _numbers_of_binlog(source: BinlogSource) -> SourceNumbers:
    return partial(binlog_handed_out, source)


def _postgres_database(source: PostgresSource) -> Engine:
    url = URL.create(
        "postgresql+psycopg",
        source.server.user,
        source.server.password,
        source.server.host,
        source.server.port,
        source.server.database,
    )
    tls = {
        "sslmode": source.server.tls,
        **({"sslrootcert": source.server.tls_ca} if source.server.tls_ca else {}),
    }
    return as_engine(url, connect_args=tls)


def _binlog_database(kind: str, source: BinlogSource) -> Engine:
    url = URL.create(
        f"{kind}+pymysql",
        source.server.user,
        source.server.password,
        source.server.host,
        source.server.port,
        source.server.database,
    )
    return as_engine(url, creator=lambda: opened(source, REVISES, **ENGINE_OPTIONS))


def _binlog_engine(kind: str, parts: MakeParts[BinlogSource], reading: str) -> SourceEngine[BinlogSource]:
    return SourceEngine(
        settings=_binlog,
        parts=parts,
        numbers=_numbers_of_binlog,
        grants=lambda source, tables: binlog_grants(source, kind, tables),
        database=partial(_binlog_database, kind),
        reading=reading,
        script=lambda _source: None,
        remains=BinlogRemains,
    )


POSTGRES = SourceEngine(
    settings=_postgres,
    parts=_postgres_parts,
    numbers=_numbers_of_postgres,
    grants=postgres_grants,
    database=_postgres_database,
    reading=PostgresChunkReader.__module__,
    script=_postgres_script,
    remains=PostgresSourceRemains,
)
SOURCE_ENGINES: Mapping[str, SourceEngine[Any]] = {
    "postgresql": POSTGRES,
    "mariadb": _binlog_engine(
        "mariadb",
        _binlog_parts(MariaCatalog, MariaLogReader, MariaChunkReader, maria_log_end, maria_name),
        MariaChunkReader.__module__,
    ),
    "mysql": _binlog_engine(
        "mysql",
        _binlog_parts(MysqlCatalog, MysqlLogReader, MysqlChunkReader, mysql_log_end, mysql_name),
        MysqlChunkReader.__module__,
    ),
}
"""The engines by ``kind`` in a project's file."""
