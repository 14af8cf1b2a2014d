"""The user's own Alembic revisions, which make the target's new schema: are they at head, and running them."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import URL, Connection, Engine
from sqlalchemy.exc import DBAPIError

from migrator.connections.postgres.session import REVISIONS
from migrator.errors import TargetError
from migrator.schema.control import connected
from migrator.schema.engines import as_engine


def target_head_problem(
    target: Engine | URL | str, alembic_dir: str | Path, schema: str | None = None
) -> str | None:
    """Says that the target isn't at the head of the user's revisions, with both and the remedy; None when it is.

    ``alembic_dir`` is the script location. ``alembic_version`` is looked for in ``schema``, then in the
    connection's default schema; that it may not be read is a problem, too. Raises ``TargetError`` when the script
    location can't be read, ``ConnectionFailed``.
    """
    heads = set(_scripts(alembic_dir).get_heads())
    with connected(as_engine(target, REVISIONS)) as connection:
        try:
            current = _current(connection, schema) or _current(connection, None)
        except DBAPIError as error:
            cause = str(error.orig).partition("\n")[0]
            remedy = "GRANT SELECT ON alembic_version (`migrator grants` has all rights)"
            return f"the target's revision can't be read: {cause}; {remedy}"
    if current == heads:
        return None
    return (
        f"the target is at revision {', '.join(sorted(current)) or 'none'}, the head of {alembic_dir} is"
        f" {', '.join(sorted(heads)) or 'none'}: run `alembic upgrade head`, until then `migrator run` refuses"
    )


def upgrade_user_target(target: Engine | URL | str, alembic_dir: str | Path, revision: str = "head") -> None:
    """Runs the user's revisions up to ``revision``.

    The user's ``env.py`` finds an open connection in ``config.attributes["connection"]``, and the URL in
    ``sqlalchemy.url`` if it prefers to connect itself. Raises ``TargetError`` naming what failed.
    """
    engine = as_engine(target, REVISIONS)
    config = _config(alembic_dir)
    url = engine.url.render_as_string(hide_password=False)
    config.set_main_option("sqlalchemy.url", url.replace("%", "%%"))
    with connected(engine) as connection:
        config.attributes["connection"] = connection
        try:
            command.upgrade(config, revision)
            connection.commit()
        except (DBAPIError, CommandError) as error:
            cause = error.orig if isinstance(error, DBAPIError) else error
            raise TargetError(
                "the target's revisions can't be run",
                where=str(alembic_dir),
                cause=str(cause).replace("\n", " ").strip(),
                remedy="correct the revision, or the rights of the target's role, and run again",
            ) from None


def _current(connection: Connection, schema: str | None) -> set[str]:
    context = MigrationContext.configure(connection, opts={"version_table_schema": schema})
    return set(context.get_current_heads())


def _config(alembic_dir: str | Path) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(alembic_dir).absolute()).replace("%", "%%"))
    return config


def _scripts(alembic_dir: str | Path) -> ScriptDirectory:
    try:
        scripts = ScriptDirectory.from_config(_config(alembic_dir))
        scripts.get_heads()
    except CommandError as error:
        raise TargetError(
            "the target's Alembic revisions can't be read",
            where=str(alembic_dir),
            cause=str(error).replace("\n", " "),
            remedy="set [migration] alembic to the folder with env.py and versions/",
        ) from None
    return scripts
