"""Makes and upgrades the control tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import psycopg
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Connection, Engine, inspect, text
from sqlalchemy.exc import DBAPIError

from migrator.connections.mysql.settings import login_problem
from migrator.connections.postgres.logins import refused_login
from migrator.connections.postgres.refusal import for_good, refusal
from migrator.connections.refusing import remedy_of
from migrator.errors import ConnectionFailed, MigratorError, SourceError, TargetError
from migrator.schema.dialects import CONTROL_SCHEMA, DIALECTS, fence_table
from migrator.schema.engines import as_engine

_USE_NEWER = "start the version that made them, or a newer one"
_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class _Place:
    """The place of a branch's tables. ``schema`` is None where they are in the connection's own database."""

    branch: str
    schema: str | None
    versions: str

    def options(self) -> dict[str, str | None]:
        """Returns the options for Alembic's context."""
        return {"version_table": self.versions, "version_table_schema": self.schema}

    def table(self) -> str:
        """Name of the table with the revision."""
        return self.versions if self.schema is None else f"{self.schema}.{self.versions}"


def _place(dialect: str, branch: str) -> _Place:
    if branch in ("target", "cutover", "target_fence") and not DIALECTS[dialect].schemas:
        return _Place(branch.removeprefix("target_"), None, "migrator_version")
    return _Place(branch.removeprefix("source_").removeprefix("target_"), CONTROL_SCHEMA, "alembic_version")


def upgrade_source(source: Engine | URL | str) -> None:
    """Makes the watermark table on a source. Only where the watermark placement is configured.

    Raises ``SourceError`` with the statement to run when the role may not, ``ConnectionFailed``.
    """
    _upgrade(as_engine(source), "source")


def upgrade_target(target: Engine | URL | str) -> None:
    """Makes or upgrades the ledger on a target. Raises ``TargetError`` likewise, ``ConnectionFailed``."""
    _upgrade(as_engine(target), "target")


def upgrade_cutover(database: Engine | URL | str) -> None:
    """Makes the table for the record of a cut-over, on either side. Raises as ``upgrade_target``."""
    _upgrade(as_engine(database), "cutover")


def upgrade_fence(database: Engine | URL | str, side: str) -> None:
    """Makes the table in which a fence of ``source`` or ``target`` notes what was there before.

    Raises ``SourceError`` or ``TargetError`` with the statement to run when the role may not, ``ConnectionFailed``.
    """
    _upgrade(as_engine(database), f"{side}_fence")


@dataclass(frozen=True, slots=True)
class ControlProblem:
    """An obstacle to making control tables, and the way past it."""

    problem: str
    remedy: str


def control_problem(target: Engine | URL | str, branch: str = "target") -> ControlProblem | None:
    """Returns what keeps ``upgrade_target`` (or ``upgrade_source``) from working, or None. Changes nothing."""
    engine = as_engine(target)
    place, dialect = _place(engine.dialect.name, branch), DIALECTS[engine.dialect.name]
    with connected(engine) as connection:
        there = _schema_exists(connection, place)
        remedy = _remedy(engine, branch, there)
        try:
            if _is_current(connection, place):
                return None
            if newer := _newer(connection, place):
                problem = (
                    f"its control tables have revision {newer}, which a newer version of the migrator made"
                )
                return ControlProblem(problem, _USE_NEWER)
        except DBAPIError as error:  # MariaDB doesn't tell a user without rights whether a table exists
            problem = f"the control tables can't be looked for: {error.orig}"
            return ControlProblem(problem, remedy_of(error, remedy))
        if there:
            question, problem = dialect.may_use, "the role may not create tables in schema migrator"
        else:
            question = dialect.may_create
            problem = "there is no schema migrator, and the role may not create it"
        may = not question or connection.scalar(text(question))
        return None if may else ControlProblem(problem, remedy)


def connected(engine: Engine) -> Connection:
    """A connection. Raises ``ConnectionFailed``, retryable unless the login itself was refused."""
    try:
        return engine.connect()
    except DBAPIError as error:
        raise _not_reached(engine, error) from None
    except (RuntimeError, ValueError) as error:  # PyMySQL, where the password isn't sent without TLS
        raise ConnectionFailed(
            "the database refuses the login",
            where=engine.url.render_as_string(hide_password=True),
            cause=f"the user's password may not be sent without TLS: {error}",
            remedy='set tls = "require" (or better, verify-full) for this server',
        ) from None


def _not_reached(engine: Engine, error: DBAPIError) -> ConnectionFailed:
    remedy, retryable = _way_in(engine, error.orig)
    return ConnectionFailed(
        "the database can't be reached" if retryable else "the database refuses the login",
        where=engine.url.render_as_string(hide_password=True),
        cause=str(error.orig).replace("\n", " ").strip(),
        remedy=remedy,
        retryable=retryable,
    )


def _way_in(engine: Engine, error: BaseException | None) -> tuple[str, bool]:
    """Returns the remedy for a connection that can't be had, and whether it may pass: by the driver's code, as words
    have many languages."""
    if isinstance(error, psycopg.Error):
        state, words = refusal(error), str(error)
        found = refused_login(words, state, "database", engine.url.username or "", engine.url.database or "")
        return found.remedy, not for_good(state, words)
    known = login_problem(error) if isinstance(error, Exception) else None
    if known is None:
        return "check that the server runs", True
    return known[1].replace(" in the [source] section", ""), known[2]


def _upgrade(engine: Engine, branch: str) -> None:
    place = _place(engine.dialect.name, branch)
    with connected(engine) as connection:
        there = _schema_exists(connection, place)
        try:
            if _is_current(connection, place):
                return
            _alone(connection)
            if _is_current(connection, place):
                return
            _refuse_newer(engine, connection, place)
            if not _schema_exists(connection, place):
                # CREATE SCHEMA IF NOT EXISTS asks for the privilege even where the schema is there already.
                connection.execute(text(f"CREATE SCHEMA {CONTROL_SCHEMA}"))
            config = _config()
            config.attributes["connection"] = connection
            config.attributes["place"] = place.options()
            command.upgrade(config, f"{place.branch}@head")
            connection.commit()
        except DBAPIError as error:
            if error.connection_invalidated:
                raise _not_reached(engine, error) from None
            raise _refused(engine, branch, error, there) from None


def _alone(connection: Connection) -> None:
    """Waits for other processes that make the same tables: several may start at once. Ends with the connection."""
    connection.execute(text(DIALECTS[connection.dialect.name].alone))


def _refuse_newer(engine: Engine, connection: Connection, place: _Place) -> None:
    """An older tool must not write to tables that a newer one made. Raises ``TargetError`` naming the revision."""
    found = _newer(connection, place)
    if found:
        raise TargetError(
            "the control tables were made by a newer version of the migrator",
            where=f"{engine.url.render_as_string(hide_password=True)}, {place.table()}",
            cause=f"their revision {found} is not known to this version",
            remedy=_USE_NEWER,
        )


def _newer(connection: Connection, place: _Place) -> str:
    """Revisions of the control tables that this version doesn't know; empty: none."""
    if not _schema_exists(connection, place):
        return ""
    if not inspect(connection).has_table(place.versions, schema=place.schema):
        return ""
    context = MigrationContext.configure(connection, opts=place.options())
    known = {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}
    return ", ".join(sorted(set(context.get_current_heads()) - known))


def _is_current(connection: Connection, place: _Place) -> bool:
    if not _schema_exists(connection, place):
        return False
    inspector = inspect(connection)
    if not inspector.has_table(place.versions, schema=place.schema):
        return False
    context = MigrationContext.configure(connection, opts=place.options())
    head = ScriptDirectory.from_config(_config()).get_revision(f"{place.branch}@head")
    return head is not None and head.revision in context.get_current_heads()


def _schema_exists(connection: Connection, place: _Place) -> bool:
    return place.schema is None or place.schema in inspect(connection).get_schema_names()


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(_HERE).replace("%", "%%"))
    return config


def _refused(engine: Engine, branch: str, error: DBAPIError, there: bool) -> MigratorError:
    dialect, of_source = DIALECTS[engine.dialect.name], branch.startswith("source")
    kind = SourceError if of_source else TargetError
    name = f"{CONTROL_SCHEMA}.watermark" if of_source else dialect.ledger
    if branch == "cutover":
        name = dialect.cutover
    if branch.endswith("fence"):
        name = fence_table(engine.dialect.name, branch.removesuffix("_fence"))
    return kind(
        f"the control table {name} can't be made",
        where=engine.url.render_as_string(hide_password=True),
        cause=str(error.orig).replace("\n", " ").strip(),
        remedy=remedy_of(error, _remedy(engine, branch, there)),
    )


def _remedy(engine: Engine, branch: str, there: bool) -> str:
    of_source, of_target = DIALECTS[engine.dialect.name].remedies
    remedy = of_source if branch.startswith("source") else of_target
    return remedy(engine.url.username or "the role", engine.url.database or "", there)
