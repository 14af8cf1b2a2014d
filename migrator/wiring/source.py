"""The choice of the source's adapters. With ``migrator.wiring.parts`` the only place that chooses adapters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from sqlalchemy import URL, Engine

from migrator.adapters.sources.binlog.grants import source_grants as binlog_grants
from migrator.adapters.sources.binlog.load import BinlogLoadMeter
from migrator.adapters.sources.binlog.retention import binlog_retention
from migrator.adapters.sources.binlog.transactions.watermark import WatermarkRowWriter
from migrator.adapters.sources.executors.chunk_reader import (
    ExecutorChunkReader,
    Executors,
    RunThere,
)
from migrator.adapters.sources.mariadb.catalog import MariaCatalog
from migrator.adapters.sources.mariadb.chunk_reader import MariaChunkReader
from migrator.adapters.sources.mariadb.log_reader import MariaLogReader
from migrator.adapters.sources.mysql.catalog import MysqlCatalog
from migrator.adapters.sources.mysql.chunk_reader import MysqlChunkReader
from migrator.adapters.sources.mysql.log_reader import MysqlLogReader
from migrator.adapters.sources.postgres.catalog import PostgresCatalog
from migrator.adapters.sources.postgres.change_tables.catalog import ChangeTableCatalog
from migrator.adapters.sources.postgres.change_tables.chunk_views import (
    chunk_reader as change_table_chunks,
)
from migrator.adapters.sources.postgres.change_tables.log_reader import ChangeTableLogReader
from migrator.adapters.sources.postgres.chunks.chunk_reader import PostgresChunkReader
from migrator.adapters.sources.postgres.chunks.watermark import mark_writer
from migrator.adapters.sources.postgres.grants import source_grants as postgres_grants
from migrator.adapters.sources.postgres.load import PostgresLoadMeter
from migrator.adapters.sources.postgres.log.log_reader import PostgresLogReader
from migrator.adapters.sources.postgres.retention import slot_retention
from migrator.adapters.sources.postgres.sequences import handed_out as postgres_handed_out
from migrator.adapters.sources.postgres.settings import CHANGE_TABLES, PostgresSource
from migrator.config.project import Settings
from migrator.connections.mysql.sequences import handed_out as binlog_handed_out
from migrator.connections.mysql.session import ENGINE_OPTIONS, REVISES
from migrator.connections.mysql.settings import BinlogSource, default_server_id, opened
from migrator.connections.same_server import SameServer
from migrator.model.grants import Grants
from migrator.model.table import TableSchema
from migrator.ports.log_notes import LogNotes
from migrator.ports.sequences import SourceNumbers
from migrator.ports.source import ChunkReader, SourceCatalog
from migrator.run.capture.loop import SourcePorts
from migrator.run.steps import Step, no_step
from migrator.schema.engines import as_engine

_PARTS_OF_A_TRANSACTION_ROWS = 50_000

Source = tuple[SourceCatalog, Callable[[list[TableSchema]], SourcePorts]]


def source_parts(settings: Settings, step: Step = no_step, executors: RunThere | None = None) -> Source:
    """The catalog of the configured source, and what makes its readers for given tables. Connects to nothing yet.

    Args:
        settings: the project's configuration.
        step: hook at named points.
        executors: runs a function on an executor, where they are to read the dump's chunks.
    """
    return {"postgresql": _postgres, "mariadb": _mariadb, "mysql": _mysql}[settings.source.kind](
        settings, step, executors
    )


def _elsewhere(
    executors: RunThere | None,
    make: Callable[[], ChunkReader],
    here: Callable[[], ChunkReader],
    same: SameServer,
) -> Callable[[Callable[[str], None]], Callable[[], ChunkReader]] | None:
    """See ``SourcePorts.elsewhere``; ``make`` can be pickled, and knows nothing of this process's steps."""
    if executors is None:
        return None

    def told(say: Callable[[str], None]) -> Callable[[], ChunkReader]:
        known = Executors(executors, say)
        return lambda: ExecutorChunkReader(make, here(), same, known)

    return told


def _postgres(settings: Settings, step: Step, executors: RunThere | None) -> Source:
    source = _postgres_source(settings)
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
            lambda: slot_retention(source, catalog.position),
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
        elsewhere=_elsewhere(executors, partial(change_table_chunks, source, same=same), here, same),
        notes=notes,
    )


def _postgres_source(settings: Settings) -> PostgresSource:
    server = settings.source
    return PostgresSource(
        host=server.host,
        port=server.port,
        database=server.database,
        schema=server.schema,
        user=server.user,
        migration=settings.name,
        password=server.password,
        sslmode=server.tls,
        sslrootcert=server.tls_ca,
        silence_s=server.silence_s,
        placement=settings.placement,
        streaming=settings.streaming,
        failover=settings.failover,
        spill_folder=settings.state / "spill",
        part_rows=_PARTS_OF_A_TRANSACTION_ROWS,
        log=settings.log,
        forget_changes=settings.forget_changes,
        text_columns=server.text_columns,
    )


def _mariadb(settings: Settings, step: Step, executors: RunThere | None) -> Source:
    source = _binlog(settings)
    catalog = MariaCatalog(source)

    def ports(schemas: Sequence[TableSchema]) -> SourcePorts:
        same, notes = SameServer(), LogNotes()

        def here() -> MariaChunkReader:
            return MariaChunkReader(source, step, same=same)

        return SourcePorts(
            lambda: MariaLogReader(source, schemas, same, notes),
            here,
            _marks(source),
            lambda: BinlogLoadMeter(source),
            lambda: binlog_retention(source, catalog.position),
            elsewhere=_elsewhere(executors, partial(MariaChunkReader, source, same=same), here, same),
            notes=notes,
        )

    return catalog, ports


def _mysql(settings: Settings, step: Step, executors: RunThere | None) -> Source:
    source = _binlog(settings)
    catalog = MysqlCatalog(source)

    def ports(schemas: Sequence[TableSchema]) -> SourcePorts:
        same, notes = SameServer(), LogNotes()

        def here() -> MysqlChunkReader:
            return MysqlChunkReader(source, step, same=same)

        return SourcePorts(
            lambda: MysqlLogReader(source, schemas, same, notes),
            here,
            _marks(source),
            lambda: BinlogLoadMeter(source),
            lambda: binlog_retention(source, catalog.position),
            elsewhere=_elsewhere(executors, partial(MysqlChunkReader, source, same=same), here, same),
            notes=notes,
        )

    return catalog, ports


def source_numbers(settings: Settings) -> SourceNumbers:
    """Returns the reader of how far the source's sequences are. Connects to nothing yet."""
    if settings.source.kind == "postgresql":
        return partial(postgres_handed_out, _postgres_source(settings))
    return partial(binlog_handed_out, _binlog(settings))


def source_grants(settings: Settings, tables: Sequence[str]) -> Grants:
    """The least rights that reading these tables needs. Connects to nothing."""
    if settings.source.kind == "postgresql":
        return postgres_grants(_postgres_source(settings), tables)
    return binlog_grants(_binlog(settings), settings.source.kind, tables)


def _binlog(settings: Settings) -> BinlogSource:
    server = settings.source
    return BinlogSource(
        host=server.host,
        port=server.port,
        database=server.database,
        user=server.user,
        password=server.password,
        tls=server.tls,
        tls_ca=server.tls_ca or None,
        silence_s=server.silence_s,
        migration=settings.name,
        server_id=settings.server_id or default_server_id(settings.name),
        placement=settings.placement,
        part_rows=_PARTS_OF_A_TRANSACTION_ROWS,
        unproven=settings.unproven_log,
    )


def _marks(source: BinlogSource) -> Callable[[], WatermarkRowWriter] | None:
    return (lambda: WatermarkRowWriter(source)) if source.placement == "watermark" else None


def source_database(settings: Settings) -> Engine:
    """Returns the engine for our own table on the source (watermark placement)."""
    server = settings.source
    drivers = {"postgresql": "postgresql+psycopg", "mariadb": "mariadb+pymysql", "mysql": "mysql+pymysql"}
    driver = drivers[server.kind]
    url = URL.create(driver, server.user, server.password, server.host, server.port, server.database)
    if server.kind != "postgresql":
        source = _binlog(settings)
        return as_engine(url, creator=lambda: opened(source, REVISES, **ENGINE_OPTIONS))
    tls = {"sslmode": server.tls, **({"sslrootcert": server.tls_ca} if server.tls_ca else {})}
    return as_engine(url, connect_args=tls)
