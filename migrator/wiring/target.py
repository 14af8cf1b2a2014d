"""The target's adapters, as the project's settings choose them from ``TARGET_ENGINES``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import URL, Engine

from migrator.config.project import Settings
from migrator.config.way_back import has_way_back
from migrator.model.grants import Grants
from migrator.model.ledger import Ledger
from migrator.model.progress import BadRow, TableIdentity
from migrator.ports.besides import Besides
from migrator.ports.key_maps import KeyMaps
from migrator.ports.remains import MarkedRemains
from migrator.ports.sequences import TargetNumbers
from migrator.ports.target import Stager, Target
from migrator.ports.upkeep import Upkeep
from migrator.run.steps import Step, no_step
from migrator.schema.acts import Acts
from migrator.wiring.target_engines import TARGET_ENGINES, TargetEngine, Written


def target_writer(settings: Settings, step: Step) -> tuple[Target, Stager | None]:
    """Returns the writer of the target, and the one that executors write to, if they can. Connects to nothing yet."""
    engine, target = _chosen(settings)
    return engine.writer(target, step)


def target_key_maps(settings: Settings) -> KeyMaps:
    """The numbers that stand for old keys. Connects to nothing yet."""
    engine, target = _chosen(settings)
    return engine.key_maps(target)


def target_upkeep(settings: Settings) -> Upkeep:
    """Returns the upkeep, which has the target look at tables that were filled. Connects to nothing yet."""
    engine, target = _chosen(settings)
    return engine.upkeep(target)


def target_database(settings: Settings) -> Engine | URL:
    """The target as Alembic takes it."""
    engine, target = _chosen(settings)
    return engine.database(target)


def peek(settings: Settings) -> Ledger | None:
    """The ledger as committed now, without a lock; None while there is none. Raises ``ConnectionFailed``."""
    engine, target = _chosen(settings)
    return engine.peek(target)


def known_epoch(settings: Settings) -> int:
    """The highest epoch that the target's ledger saw; 0 before the first run."""
    ledger = peek(settings)
    return ledger.epoch if ledger is not None else 0


def bad_rows(settings: Settings) -> tuple[BadRow, ...]:
    """Returns the rows that are set aside now, as the ledger names them. Raises ``ConnectionFailed``."""
    ledger = peek(settings)
    return () if ledger is None or ledger.checkpoint is None else ledger.checkpoint.bad_rows


def filled(settings: Settings) -> list[tuple[str, int]]:
    """The joined targets that were filled, and the segment at which each was. Raises ``ConnectionFailed``."""
    engine, target = _chosen(settings)
    return engine.filled(target)


def forget_filled(settings: Settings, table: str) -> bool:
    """Makes the run fill a joined target anew; False if it wasn't filled yet. Raises ``ConnectionFailed``."""
    engine, target = _chosen(settings)
    return engine.forget_filled(target, table)


def target_besides(settings: Settings, step: Step = no_step) -> Besides:
    """Returns the tables that next mappings fill. Connects to nothing yet."""
    engine, target = _chosen(settings)
    return engine.besides(target, step)


def holds_rows(settings: Settings, table: str) -> bool:
    """Tells whether a target table has any row. Raises ``ConnectionFailed``."""
    engine, target = _chosen(settings)
    return engine.holds_rows(target, table)


def table_bytes(settings: Settings, table: str) -> int:
    """Returns the bytes that a target table takes on disk, with its indexes. Raises ``ConnectionFailed``."""
    engine, target = _chosen(settings)
    return engine.table_bytes(target, table)


def tables_made(settings: Settings, tables: Sequence[str]) -> Mapping[str, TableIdentity]:
    """Returns the identities of target tables, as far as the server shows them. Raises ``ConnectionFailed``."""
    engine, target = _chosen(settings)
    return engine.identities(target, tables)


def identity_stays(settings: Settings) -> bool:
    """Tells whether the identity of a target table outlives ALTER, TRUNCATE and the like."""
    engine, _ = _chosen(settings)
    return engine.identity_stays


def renamed_to(settings: Settings, table: str, identity: TableIdentity) -> str:
    """Returns a table that may be what a target was, under another name; else "". Raises ``ConnectionFailed``."""
    engine, target = _chosen(settings)
    return engine.renamed_to(target, table, identity)


def target_numbers(settings: Settings) -> TargetNumbers:
    """Returns the generators of numbers in the target. Connects to nothing yet."""
    engine, target = _chosen(settings)
    return engine.numbers(target)


_VERSION_TABLE = "alembic_version"


def target_grants(settings: Settings, tables: Sequence[str], joined: bool, numbered: bool) -> Grants:
    """The least rights that writing these tables needs, some of them joined or with key maps. Connects to
    nothing."""
    engine, target = _chosen(settings)
    written = Written(tables, joined, numbered, settings.apply.upkeep, has_way_back(settings))
    found = engine.grants(target, written)
    if not settings.reversed:
        return found
    # The old side has no revisions of the user's: a right on their table couldn't be given.
    return replace(found, needed=tuple(one for one in found.needed if _VERSION_TABLE not in one))


def target_remains(settings: Settings, tables: Sequence[str], key_maps: bool) -> MarkedRemains:
    """Returns what a reset looks at in the target. Connects to nothing yet."""
    engine, target = _chosen(settings)
    return engine.remains(target, tables, key_maps)


def acts(settings: Settings) -> Acts:
    """The history of the migration. Connects to nothing yet."""
    server = settings.target
    return Acts(target_database(settings), settings.name, server.user, server.url())


def _chosen(settings: Settings) -> tuple[TargetEngine[Any], Any]:
    """Returns the engine of the target, and the settings as its adapters take them."""
    engine = TARGET_ENGINES[settings.target.kind]
    return engine, engine.settings(settings)
