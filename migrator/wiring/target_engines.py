"""The kinds of target, a row each of one table. With the other modules of ``wiring`` the only place that chooses
adapters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sqlalchemy import URL, Engine

from migrator.adapters.targets.mysql import ledger as mysql_ledger
from migrator.adapters.targets.mysql import remap as mysql_remap
from migrator.adapters.targets.mysql.besides import MysqlBesides
from migrator.adapters.targets.mysql.checks import grants as mysql_grants
from migrator.adapters.targets.mysql.key_maps import key_maps as mysql_key_maps
from migrator.adapters.targets.mysql.remains import MysqlRemains
from migrator.adapters.targets.mysql.sequences import MysqlNumbers
from migrator.adapters.targets.mysql.settings import MysqlTarget
from migrator.adapters.targets.mysql.target import MysqlTargetWriter
from migrator.adapters.targets.mysql.upkeep import MysqlUpkeep
from migrator.adapters.targets.postgres import ledger as postgres_ledger
from migrator.adapters.targets.postgres import remap as postgres_remap
from migrator.adapters.targets.postgres.besides import PostgresBesides
from migrator.adapters.targets.postgres.checks import grants as postgres_grants
from migrator.adapters.targets.postgres.key_maps import key_maps as postgres_key_maps
from migrator.adapters.targets.postgres.remains import PostgresRemains
from migrator.adapters.targets.postgres.rows import executor_staging
from migrator.adapters.targets.postgres.sequences import PostgresNumbers
from migrator.adapters.targets.postgres.settings import PostgresTarget
from migrator.adapters.targets.postgres.target import PostgresTargetWriter
from migrator.adapters.targets.postgres.upkeep import PostgresUpkeep
from migrator.config.project import Settings
from migrator.model.grants import Grants
from migrator.model.ledger import Ledger
from migrator.model.progress import TableIdentity
from migrator.ports.besides import Besides
from migrator.ports.key_maps import KeyMaps
from migrator.ports.remains import MarkedRemains
from migrator.ports.sequences import TargetNumbers
from migrator.ports.target import Stager, Target
from migrator.ports.upkeep import Upkeep
from migrator.run.steps import Step

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Written:
    """The tables of a target that a run writes, and what else it does there.

    Attributes:
        tables: their names.
        joined: whether some of them are joined.
        numbered: whether some of them have key maps.
        upkeep: whether the target is to look at them once they are filled.
        both_ways: whether the project leads both ways, so that the record of its cut-overs is there.
    """

    tables: Sequence[str]
    joined: bool
    numbered: bool
    upkeep: bool
    both_ways: bool


@dataclass(frozen=True, slots=True)
class TargetEngine(Generic[S]):
    """One kind of target: its adapters, each made of the settings as they take them. What is made connects when it
    is used.

    Attributes:
        settings: makes these settings of a project's.
        writer: see ``migrator.wiring.target.target_writer``.
        key_maps: see ``target_key_maps`` there, and so on.
        staging: module with which executors stage rows beside the target; empty where they can't.
        identity_stays: whether what ``identities`` returns outlives ALTER, TRUNCATE and the like.
        renamed_to: finds a table that may be what a target was; asked where identities don't stay.
    """

    settings: Callable[[Settings], S]
    writer: Callable[[S, Step], tuple[Target, Stager | None]]
    key_maps: Callable[[S], KeyMaps]
    upkeep: Callable[[S], Upkeep]
    database: Callable[[S], Engine | URL]
    peek: Callable[[S], Ledger | None]
    filled: Callable[[S], list[tuple[str, int]]]
    forget_filled: Callable[[S, str], bool]
    besides: Callable[[S, Step], Besides]
    holds_rows: Callable[[S, str], bool]
    table_bytes: Callable[[S, str], int]
    identities: Callable[[S, Sequence[str]], Mapping[str, TableIdentity]]
    numbers: Callable[[S], TargetNumbers]
    grants: Callable[[S, Written], Grants]
    remains: Callable[[S, Sequence[str], bool], MarkedRemains]
    staging: str = ""
    identity_stays: bool = False
    renamed_to: Callable[[S, str, TableIdentity], str] = lambda settings, target, identity: ""


def _postgres(settings: Settings) -> PostgresTarget:
    return PostgresTarget(
        settings.target, settings.name, reason=settings.reason, changes_only=settings.reversed
    )


def _postgres_writer(target: PostgresTarget, step: Step) -> tuple[Target, Stager]:
    writer = PostgresTargetWriter(target, step)
    return writer, writer


def _postgres_grants(target: PostgresTarget, written: Written) -> Grants:
    return postgres_grants.target_grants(target, written.tables, written.joined, written.upkeep)


def _mysql(settings: Settings) -> MysqlTarget:
    return MysqlTarget(settings.target, settings.name, reason=settings.reason, changes_only=settings.reversed)


def _mysql_writer(target: MysqlTarget, step: Step) -> tuple[Target, None]:
    return MysqlTargetWriter(target, step), None


def _mysql_grants(target: MysqlTarget, written: Written) -> Grants:
    return mysql_grants.target_grants(
        target, written.tables, written.joined, written.numbered, both_ways=written.both_ways
    )


POSTGRES = TargetEngine(
    settings=_postgres,
    writer=_postgres_writer,
    key_maps=postgres_key_maps,
    upkeep=PostgresUpkeep,
    database=PostgresTarget.url,
    peek=postgres_ledger.peek,
    filled=postgres_remap.filled,
    forget_filled=postgres_remap.forget_filled,
    besides=PostgresBesides,
    holds_rows=postgres_remap.holds_rows,
    table_bytes=postgres_remap.table_bytes,
    identities=postgres_remap.identities,
    numbers=PostgresNumbers,
    grants=_postgres_grants,
    remains=PostgresRemains,
    staging=executor_staging.__name__,
    identity_stays=True,
)
MYSQL = TargetEngine(
    settings=_mysql,
    writer=_mysql_writer,
    key_maps=mysql_key_maps,
    upkeep=MysqlUpkeep,
    database=MysqlTarget.engine,
    peek=mysql_ledger.peek,
    filled=mysql_remap.filled,
    forget_filled=mysql_remap.forget_filled,
    besides=MysqlBesides,
    holds_rows=mysql_remap.holds_rows,
    table_bytes=mysql_remap.table_bytes,
    identities=mysql_remap.identities,
    numbers=MysqlNumbers,
    grants=_mysql_grants,
    remains=MysqlRemains,
    renamed_to=mysql_remap.renamed_to,
)
TARGET_ENGINES: Mapping[str, TargetEngine[Any]] = {"postgresql": POSTGRES, "mariadb": MYSQL, "mysql": MYSQL}
"""The engines by ``kind`` in a project's file."""
