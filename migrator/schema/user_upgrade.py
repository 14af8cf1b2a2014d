"""The user's own Alembic revisions, run on the target, or written as SQL."""

from __future__ import annotations

import io
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from alembic import command
from alembic.config import Config
from alembic.script import Script, ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import URL, Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from migrator.connections.postgres.session import REVISIONS
from migrator.connections.refusing import refusing_state
from migrator.errors import MigratorError, TargetError
from migrator.old_names import old_names
from migrator.schema.control import connected
from migrator.schema.dialects import DIALECTS
from migrator.schema.engines import as_engine
from migrator.schema.user_revisions import Revision, configured, current, known, scripts_in, through

_HOWTO = "docs/how-to/mapping/new-schema.md"


@dataclass(frozen=True, slots=True)
class Manner:
    """The conditions under which revisions run.

    Attributes:
        schema: of names without one, on PostgreSQL; empty leaves that to the role.
        lock_s: seconds that a statement may wait for a lock: whoever wants the same table waits behind it. 0 leaves
            that to the session.
        found: whether the tables are there already: where no revision is noted as run, all of them are, and none
            is run.
    """

    schema: str = ""
    lock_s: int = 0
    found: bool = False


def upgrade_user_target(
    target: Engine | URL | str, alembic_dir: str | Path, revision: str = "head", manner: Manner | None = None
) -> list[Revision]:
    """Runs the user's revisions up to ``revision``; returns those that ran.

    The user's ``env.py`` finds an open connection in ``config.attributes["connection"]``, and the URL in
    ``sqlalchemy.url`` if it prefers to connect itself. Raises ``TargetError`` naming what failed and what stays,
    ``ConnectionFailed``.
    """
    scripts, engine = _single(alembic_dir, revision), as_engine(target, REVISIONS)
    config, manner = _config(alembic_dir, engine), manner or Manner()
    with connected(engine) as connection:
        try:
            _begin(connection, scripts, manner)
            before = _before(connection, scripts, alembic_dir)
            noted = manner.found and not before
            todo = [] if noted else _todo(scripts, before, revision)
        except DBAPIError as error:
            raise _refused(engine, alembic_dir, error) from None
        config.attributes["connection"] = connection
        try:
            with old_names(Path(alembic_dir)):
                (command.stamp if noted else command.upgrade)(config, revision)
            connection.commit()
        except (Exception, SystemExit) as error:  # revisions are the user's code
            connection.close()
            raise _failure(engine, todo, alembic_dir, error) from error
    return [Revision(one.revision, one.doc or "", ran=True) for one in todo]


def user_sql(
    target: Engine | URL | str, alembic_dir: str | Path, revision: str = "head", schema: str = ""
) -> str:
    """The statements that ``upgrade_user_target`` would run now; empty where nothing is to run. Changes nothing.

    Raises as that, and ``TargetError`` where a revision asks the database before it says what to do.
    """
    scripts, engine = _single(alembic_dir, revision), as_engine(target, REVISIONS)
    with connected(engine) as connection:
        try:
            resolved = _resolve(connection, scripts, schema)
            before = _before(connection, scripts, alembic_dir)
        except DBAPIError as error:
            raise _refused(engine, alembic_dir, error) from None
    if not _todo(scripts, before, revision):
        return ""
    written = io.StringIO()
    config = _config(alembic_dir, engine, written)
    try:
        with old_names(Path(alembic_dir)):
            command.upgrade(
                config, f"{','.join(sorted(before))}:{revision}" if before else revision, sql=True
            )
    except (Exception, SystemExit) as error:
        raise TargetError(
            "the target's revisions can't be written as SQL",
            where=str(alembic_dir),
            cause=_words(error),
            remedy="run `migrator schema upgrade` on a copy instead: a revision that asks the database has no SQL",
        ) from error
    return f"{resolved};\n\n{written.getvalue()}" if resolved else written.getvalue()


def _config(alembic_dir: str | Path, engine: Engine, output: TextIO | None = None) -> Config:
    config = configured(alembic_dir, output)
    url = engine.url.render_as_string(hide_password=False)
    config.set_main_option("sqlalchemy.url", url.replace("%", "%%"))
    return config


def _single(alembic_dir: str | Path, revision: str) -> ScriptDirectory:
    """The revisions of a folder. Raises ``TargetError`` where there is none, or not one ``head``, or no such one."""
    scripts = scripts_in(alembic_dir)
    heads = sorted(scripts.get_heads())
    if not heads:
        raise TargetError(
            "there is no Alembic revision to run",
            where=str(alembic_dir),
            remedy='write one in the project\'s folder: alembic revision -m "new tables"',
        )
    if revision == "head" and len(heads) > 1:
        raise TargetError(
            f"the Alembic revisions have {len(heads)} heads",
            where=str(alembic_dir),
            cause=f"{', '.join(heads)} each come last: they were written side by side",
            remedy="join them by an Alembic revision, in the project's folder: alembic merge -m joined heads",
        )
    try:
        scripts.get_revisions(revision)
    except CommandError as error:
        raise TargetError(
            f"there is no Alembic revision {revision!r}",
            where=str(alembic_dir),
            cause=_words(error),
            remedy="name one that `migrator schema history` shows, or none for the newest",
        ) from None
    return scripts


def _begin(connection: Connection, scripts: ScriptDirectory, manner: Manner) -> None:
    """Makes the session such that nobody else runs revisions beside it, and that nobody waits long for it.

    Raises ``TargetError`` while somebody else does.
    """
    dialect = DIALECTS[connection.dialect.name]
    if manner.lock_s:
        connection.execute(text(dialect.patience.format(*[manner.lock_s] * 2)))
    name = f"migrator revisions of {connection.engine.url.database}"
    if not connection.scalar(text(dialect.taken), {"name": name}):
        raise TargetError(
            "somebody else is running the revisions of this target",
            where=connection.engine.url.render_as_string(hide_password=True),
            remedy="wait until they have ended, then run `migrator schema upgrade` again",
        )
    connection.commit()
    _resolve(connection, scripts, manner.schema)
    connection.commit()  # Alembic ends only transactions that it began


def _resolve(connection: Connection, scripts: ScriptDirectory, schema: str) -> str:
    """Has names without a schema be those of ``schema``; the statement, empty where none was needed.

    Where revisions ran before as the role's own settings have it, these go on to hold: otherwise all of them would
    run once more elsewhere.
    """
    dialect = DIALECTS[connection.dialect.name]
    if not schema or not dialect.resolves:
        return ""
    if not current(connection, schema) and current(connection, None) & known(scripts):
        return ""
    statement = dialect.resolves.format(connection.dialect.identifier_preparer.quote_identifier(schema))
    connection.execute(text(statement.replace(":", r"\:")))
    return statement


def _before(connection: Connection, scripts: ScriptDirectory, alembic_dir: str | Path) -> set[str]:
    found = current(connection, None)
    connection.commit()
    if unknown := found - known(scripts):
        raise TargetError(
            f"the target is at revision {', '.join(sorted(unknown))}, which this project doesn't have",
            where=f"{connection.engine.url.render_as_string(hide_password=True)}, {alembic_dir}",
            cause="the revisions of another project, or of a newer state of this one, ran there",
            remedy="take the folder that has it ([migration] alembic), or another database or schema as target",
        )
    return found


def _todo(scripts: ScriptDirectory, before: set[str], revision: str) -> list[Script]:
    above = [one.revision for one in scripts.get_revisions(revision) if one is not None]
    ran = {one.revision for one in through(scripts, sorted(before))}
    return [one for one in through(scripts, above) if one.revision not in ran]


def _failure(
    engine: Engine, todo: list[Script], alembic_dir: str | Path, error: BaseException
) -> MigratorError:
    """The error of revisions that couldn't be run: which, where, what stays of them."""
    if isinstance(error, MigratorError):
        return error
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    places = [(one, line) for file, line in frames for one in todo if one.path == file]
    script, line = places[-1] if places else (None, 0)
    what = f"revision {script.revision} can't be run" if script else "the target's revisions can't be run"
    return TargetError(
        what,
        where=f"{script.path}:{line}" if script else str(alembic_dir),
        cause=f"{_words(error)}; {_stays(engine, script)}",
        remedy=_remedy(engine, error),
    )


def _stays(engine: Engine, script: Script | None) -> str:
    """Says what a failed upgrade left, as the target has it."""
    try:
        with connected(engine) as connection:
            at = ", ".join(sorted(current(connection, None))) or "none"
    except (MigratorError, DBAPIError):
        return "what stays of it can't be seen now"
    if DIALECTS[engine.dialect.name].schemas:
        return f"all revisions of an upgrade are one transaction: the target stays at revision {at}"
    which = script.revision if script else "one"
    return (
        f"the target is at revision {at}, and what {which} did before stays:"
        " this server ends a transaction with each change of a structure"
    )


def _remedy(engine: Engine, error: BaseException) -> str:
    dialect, found = DIALECTS[engine.dialect.name], error.orig if isinstance(error, DBAPIError) else None
    code = getattr(found, "sqlstate", "") if dialect.schemas else next(iter(getattr(found, "args", ())), "")
    if code in dialect.busy:
        return (
            "end the transaction that holds the table, or wait longer with --lock-timeout,"
            " then run `migrator schema upgrade` again"
        )
    if (state := refusing_state(found)) is not None:
        return f"{state.remedy}; then run `migrator schema upgrade` again"
    if code in dialect.forbidden:
        return f"run it with the login that owns the tables: set [target] owner ({_HOWTO})"
    undo = "" if dialect.schemas else "undo what stays of it by hand, "
    return f"correct the revision, {undo}then run `migrator schema upgrade` again"


def _words(error: BaseException) -> str:
    found = error.orig if isinstance(error, DBAPIError) else error
    said = str(found).replace("\n", " ").strip()
    return said if isinstance(error, DBAPIError | CommandError) else f"{type(error).__name__}: {said}"


def _refused(engine: Engine, alembic_dir: str | Path, error: DBAPIError) -> TargetError:
    return TargetError(
        "the target's revision can't be read",
        where=f"{engine.url.render_as_string(hide_password=True)}, {alembic_dir}",
        cause=_words(error),
        remedy=_remedy(engine, error),
    )
