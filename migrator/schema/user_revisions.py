"""The user's own Alembic revisions, which make the target's new schema: which there are, and which ran."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import Script, ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import URL, Connection, Engine
from sqlalchemy.exc import DBAPIError

from migrator.connections.postgres.session import REVISIONS
from migrator.connections.refusing import remedy_of
from migrator.errors import TargetError
from migrator.schema.control import connected
from migrator.schema.engines import as_engine

_RIGHTS_REMEDY = "GRANT SELECT ON alembic_version (`migrator grants` has all rights)"
_READ_ERROR = "the target's revision can't be read"


@dataclass(frozen=True, slots=True)
class Revision:
    """One revision, by name, with the first line of its text; ``ran``: on the target."""

    name: str
    said: str
    ran: bool

    def line(self) -> str:
        """Name and text, for people."""
        return f"{self.name}  {self.said}".rstrip()


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of a target among the revisions: those it is ``at``, the ``heads``, and all, oldest first."""

    at: tuple[str, ...]
    heads: tuple[str, ...]
    revisions: tuple[Revision, ...]


def target_head_problem(
    target: Engine | URL | str, alembic_dir: str | Path, schema: str | None = None
) -> str | None:
    """Says that the target isn't at the head of the user's revisions, with both and the remedy; None when it is.

    ``alembic_dir`` is the script location. ``alembic_version`` is looked for in ``schema``, then in the
    connection's default schema; that it may not be read is a problem, too. Raises ``TargetError`` when the script
    location can't be read, ``ConnectionFailed``.
    """
    heads = set(scripts_in(alembic_dir).get_heads())
    with connected(as_engine(target, REVISIONS)) as connection:
        try:
            current = _current_of(connection, schema)
        except DBAPIError as error:
            cause = str(error.orig).partition("\n")[0]
            remedy = remedy_of(error, _RIGHTS_REMEDY)
            return f"{_READ_ERROR}: {cause}; {remedy}"
    if current == heads:
        return None
    return (
        f"the target is at revision {', '.join(sorted(current)) or 'none'}, the head of {alembic_dir} is"
        f" {', '.join(sorted(heads)) or 'none'}: run `migrator schema upgrade`, until then `migrator run` refuses"
    )


def standing(target: Engine | URL | str, alembic_dir: str | Path, schema: str | None = None) -> Standing:
    """Returns where the target stands. Changes nothing. Raises as ``target_head_problem``, and ``TargetError``
    where the revision may not be read."""
    scripts = scripts_in(alembic_dir)
    with connected(as_engine(target, REVISIONS)) as connection:
        try:
            at = _current_of(connection, schema)
        except DBAPIError as error:
            raise TargetError(
                _READ_ERROR,
                where=str(alembic_dir),
                cause=str(error.orig).partition("\n")[0],
                remedy=remedy_of(error, _RIGHTS_REMEDY),
            ) from None
    ran = {one.revision for one in through(scripts, sorted(at & known(scripts)))}
    found = [Revision(one.revision, one.doc or "", one.revision in ran) for one in scripts.walk_revisions()]
    return Standing(tuple(sorted(at)), tuple(sorted(scripts.get_heads())), tuple(reversed(found)))


def current(connection: Connection, schema: str | None) -> set[str]:
    """Revisions that stand in ``alembic_version`` of a schema; None: of those that names without one are from."""
    context = MigrationContext.configure(connection, opts={"version_table_schema": schema})
    return set(context.get_current_heads())


def _current_of(connection: Connection, schema: str | None) -> set[str]:
    return current(connection, schema) or current(connection, None)


def known(scripts: ScriptDirectory) -> set[str]:
    """Names of all revisions."""
    return {script.revision for script in scripts.walk_revisions()}


def through(scripts: ScriptDirectory, revisions: Sequence[str]) -> list[Script]:
    """Revisions and all that come before them, in the order in which they run."""
    return list(reversed(list(scripts.iterate_revisions(tuple(revisions), "base")))) if revisions else []


def configured(alembic_dir: str | Path, output: TextIO | None = None) -> Config:
    """Alembic's configuration of the folder; ``output``: where it writes SQL."""
    config = Config(output_buffer=output)
    config.set_main_option("script_location", str(Path(alembic_dir).absolute()).replace("%", "%%"))
    return config


def scripts_in(alembic_dir: str | Path) -> ScriptDirectory:
    """The revisions of a folder. Raises ``TargetError``: there is none, or a revision is no valid Python."""
    remedy = "set [migration] alembic to the folder with env.py and versions/"
    try:
        scripts = ScriptDirectory.from_config(configured(alembic_dir))
        scripts.get_heads()
    except (Exception, SystemExit) as error:  # revisions are the user's code, run as they are read
        where = str(alembic_dir)
        if isinstance(error, SyntaxError):
            where, remedy = f"{error.filename}:{error.lineno}", "correct the line"
        elif not isinstance(error, CommandError):
            remedy = "correct the revision; `alembic history` in the project's folder names the line"
        raise TargetError(
            "the target's Alembic revisions can't be read",
            where=where,
            cause=str(error).replace("\n", " "),
            remedy=remedy,
        ) from error
    return scripts
