"""The choice of the target's adapter. With ``migrator.wiring.parts`` the only place that chooses adapters."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import URL, Engine

from migrator.adapters.targets.mysql import peek as mysql_peek
from migrator.adapters.targets.mysql import remap as mysql_remap
from migrator.adapters.targets.mysql.checks import grants as mysql_grants
from migrator.adapters.targets.mysql.key_maps import key_maps as mysql_key_maps
from migrator.adapters.targets.mysql.sequences import MysqlNumbers
from migrator.adapters.targets.mysql.settings import MysqlTarget
from migrator.adapters.targets.mysql.target import MysqlTargetWriter
from migrator.adapters.targets.mysql.upkeep import MysqlUpkeep
from migrator.adapters.targets.postgres import peek as postgres_peek
from migrator.adapters.targets.postgres import remap as postgres_remap
from migrator.adapters.targets.postgres.checks import grants as postgres_grants
from migrator.adapters.targets.postgres.key_maps import key_maps as postgres_key_maps
from migrator.adapters.targets.postgres.sequences import PostgresNumbers
from migrator.adapters.targets.postgres.settings import PostgresTarget
from migrator.adapters.targets.postgres.target import PostgresTargetWriter
from migrator.adapters.targets.postgres.upkeep import PostgresUpkeep
from migrator.config.project import Settings
from migrator.model.grants import Grants
from migrator.model.ledger import Ledger
from migrator.ports.key_maps import KeyMaps
from migrator.ports.sequences import TargetNumbers
from migrator.ports.target import Stager, Target
from migrator.ports.upkeep import Upkeep
from migrator.run.steps import Step
from migrator.schema.acts import Acts


def target_writer(settings: Settings, step: Step) -> tuple[Target, Stager | None]:
    """Returns the writer of the target, and the one that executors write to, if they can. Connects to nothing yet."""
    if settings.target.kind == "postgresql":
        target = PostgresTargetWriter(_postgres(settings), step)
        return target, target
    return MysqlTargetWriter(_mysql(settings), step), None


def target_key_maps(settings: Settings) -> KeyMaps:
    """The numbers that stand for old keys. Connects to nothing yet."""
    if settings.target.kind == "postgresql":
        return postgres_key_maps(_postgres(settings))
    return mysql_key_maps(_mysql(settings))


def target_upkeep(settings: Settings) -> Upkeep:
    """Returns the upkeep, which has the target look at tables that were filled. Connects to nothing yet."""
    if settings.target.kind == "postgresql":
        return PostgresUpkeep(_postgres(settings))
    return MysqlUpkeep(_mysql(settings))


def target_database(settings: Settings) -> Engine | URL:
    """The target as Alembic takes it."""
    return _postgres(settings).url() if settings.target.kind == "postgresql" else _mysql(settings).engine()


def peek(settings: Settings) -> Ledger | None:
    """The ledger as committed now, without a lock; None while there is none. Raises ``ConnectionFailed``."""
    if settings.target.kind == "postgresql":
        return postgres_peek.peek(_postgres(settings))
    return mysql_peek.peek(_mysql(settings))


def filled(settings: Settings) -> list[tuple[str, int]]:
    """The joined targets that were filled, and the segment at which each was. Raises ``ConnectionFailed``."""
    if settings.target.kind == "postgresql":
        return postgres_remap.filled(_postgres(settings))
    return mysql_remap.filled(_mysql(settings))


def forget_filled(settings: Settings, table: str) -> bool:
    """Makes the run fill a joined target anew; False if it wasn't filled yet. Raises ``ConnectionFailed``."""
    if settings.target.kind == "postgresql":
        return postgres_remap.forget_filled(_postgres(settings), table)
    return mysql_remap.forget_filled(_mysql(settings), table)


def holds_rows(settings: Settings, table: str) -> bool:
    """Tells whether a target table has any row. Raises ``ConnectionFailed``."""
    if settings.target.kind == "postgresql":
        return postgres_remap.holds_rows(_postgres(settings), table)
    return mysql_remap.holds_rows(_mysql(settings), table)


def target_numbers(settings: Settings) -> TargetNumbers:
    """Returns the generators of numbers in the target. Connects to nothing yet."""
    if settings.target.kind == "postgresql":
        return PostgresNumbers(_postgres(settings))
    return MysqlNumbers(_mysql(settings))


def target_grants(settings: Settings, tables: Sequence[str], joined: bool, numbered: bool) -> Grants:
    """The least rights that writing these tables needs, some of them joined or with key maps. Connects to
    nothing."""
    if settings.target.kind == "postgresql":
        return postgres_grants.target_grants(_postgres(settings), tables, joined, settings.apply.upkeep)
    return mysql_grants.target_grants(_mysql(settings), tables, joined, numbered)


def acts(settings: Settings) -> Acts:
    """The history of the migration. Connects to nothing yet."""
    server = settings.target
    return Acts(target_database(settings), settings.name, server.user, server.address())


def _postgres(settings: Settings) -> PostgresTarget:
    server = settings.target
    return PostgresTarget(
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
        reason=settings.reason,
    )


def _mysql(settings: Settings) -> MysqlTarget:
    server = settings.target
    return MysqlTarget(
        kind=server.kind,
        host=server.host,
        port=server.port,
        database=server.database,
        user=server.user,
        migration=settings.name,
        password=server.password,
        tls=server.tls,
        tls_ca=server.tls_ca,
        silence_s=server.silence_s,
        reason=settings.reason,
    )
