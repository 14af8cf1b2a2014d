"""The structure of both databases as it is, for a project that is about to begin. Reads, and changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import URL, Engine, inspect
from sqlalchemy.exc import SQLAlchemyError

from migrator.config.project import Settings
from migrator.errors import ConnectionFailed, MigratorError
from migrator.model.table import TableSchema
from migrator.model.target import TargetTable
from migrator.run.analysed import readable
from migrator.run.steps import no_step
from migrator.schema.engines import as_engine
from migrator.wiring.source import source_database, source_parts
from migrator.wiring.target import target_database, target_writer

_OURS = ("alembic_version",)


@dataclass(frozen=True, slots=True)
class Reflected:
    """The structures of the old and the new database.

    Attributes:
        old, new: tables by name.
        refused_old, refused_new: per name of a table that can't take part, why not.
    """

    old: dict[str, TableSchema]
    new: dict[str, TargetTable]
    refused_old: dict[str, str]
    refused_new: dict[str, str]


def reflected(settings: Settings) -> Reflected:
    """Reads the structure of all tables of both sides. Raises ``ConnectionFailed``."""
    catalog, _ = source_parts(settings)
    target, _ = target_writer(settings, no_step)
    refused_old: dict[str, MigratorError] = {}
    refused_new: dict[str, MigratorError] = {}
    old_names = _names(source_database(settings), settings.source.schema, settings.source.url())
    new_names = _names(target_database(settings), settings.target.schema, settings.target.url())
    try:
        new = readable(target.tables, new_names, refused_new)
        old = readable(catalog.tables, old_names, refused_old)
    finally:
        target.close()
    return Reflected(old, new, _reasons(refused_old), _reasons(refused_new))


def declared_defaults(settings: Settings, tables: Sequence[str]) -> dict[str, dict[str, str]]:
    """The defaults that the target's columns declare, as SQL, by table and column. Raises ``ConnectionFailed``."""
    engine = as_engine(target_database(settings))
    try:
        reader = inspect(engine)
        return {
            table: {
                str(column["name"]): "the next number"
                if column.get("autoincrement") is True
                else str(default)
                for column in reader.get_columns(table, settings.target.schema or None)
                if (default := column.get("default")) is not None or column.get("autoincrement") is True
            }
            for table in tables
        }
    except SQLAlchemyError as error:
        raise ConnectionFailed(
            "the columns' defaults can't be read",
            where=settings.target.url(),
            cause=str(error.args[0]).splitlines()[0] if error.args else type(error).__name__,
            remedy="correct the login in [back], and try again",
        ) from error
    finally:
        engine.dispose()


def _names(database: Engine | URL, schema: str, where: str) -> list[str]:
    engine = as_engine(database)
    try:
        names = inspect(engine).get_table_names(schema or None)
    except SQLAlchemyError as error:
        raise ConnectionFailed(
            "the database's tables can't be listed",
            where=where,
            cause=str(error.args[0]).splitlines()[0] if error.args else type(error).__name__,
            remedy="correct the URL, and name the password's environment variable",
        ) from error
    finally:
        engine.dispose()
    return sorted(name for name in names if name not in _OURS and not name.startswith("migrator_"))


def _reasons(errors: dict[str, MigratorError]) -> dict[str, str]:
    return {
        name: "; ".join(text for text in (error.what, error.cause) if text) for name, error in errors.items()
    }
