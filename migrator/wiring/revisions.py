"""The revisions of the target: our control tables', and those of the user that make the new schema."""

from __future__ import annotations

from dataclasses import replace

from migrator import schema as control
from migrator.config.project import Settings
from migrator.config.way_back import way_back
from migrator.errors import PreflightError
from migrator.schema import Manner, Revision, Standing
from migrator.wiring.half_reset import refuse_half
from migrator.wiring.source import source_database
from migrator.wiring.target import target_database


def prepare(settings: Settings) -> str | None:
    """Brings the control tables up to date; says what is wrong with the user's revisions."""
    refuse_half(settings)
    database = target_database(settings)
    problem = None
    if not settings.reversed:  # the old schema has no revisions of ours
        problem = control.target_head_problem(database, settings.alembic, settings.target.schema or None)
    if problem is None:
        control.upgrade_target(database)
        if settings.placement == "watermark":
            control.upgrade_source(source_database(settings))
    return problem


def prepare_both(settings: Settings) -> None:
    """Brings the control tables of both sides up to date. Raises ``PreflightError`` where a revision is missing."""
    for one in (settings, way_back(settings)):
        if problem := prepare(one):
            raise PreflightError(
                "the target schema isn't at its head revision",
                cause=problem,
                remedy="run `migrator schema upgrade`, then start again",
            )


def upgrade(settings: Settings, revision: str, lock_s: int) -> list[Revision]:
    """Runs the user's revisions as the owner of the new tables; returns those that ran.

    Raises ``TargetError``, ``ConnectionFailed``.
    """
    owner = _as_owner(settings)
    manner = Manner(settings.target.schema, lock_s)
    return control.upgrade_user_target(target_database(owner), settings.alembic, revision, manner)


def written(settings: Settings, revision: str) -> str:
    """The SQL that ``upgrade`` would run now. Changes nothing, raises likewise."""
    database = target_database(_as_owner(settings))
    return control.user_sql(database, settings.alembic, revision, settings.target.schema)


def standing(settings: Settings) -> Standing:
    """Returns where the target stands among the revisions. Changes nothing, raises likewise."""
    database = target_database(_as_owner(settings))
    return control.standing(database, settings.alembic, settings.target.schema or None)


def _as_owner(settings: Settings) -> Settings:
    return replace(settings, target=settings.owner or settings.target)
