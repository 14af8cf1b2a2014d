"""The step of a start that comes before anybody leads: control tables, and the target's revision."""

from __future__ import annotations

from migrator import schema as control
from migrator.config.project import Settings
from migrator.wiring.half_reset import refuse_half
from migrator.wiring.source import source_database
from migrator.wiring.target import target_database


def prepare(settings: Settings) -> str | None:
    """Brings the control tables up to date; says what is wrong with the user's revisions."""
    refuse_half(settings)
    database = target_database(settings)
    problem = control.target_head_problem(database, settings.alembic, settings.target.schema or None)
    if problem is None:
        control.upgrade_target(database)
        if settings.placement == "watermark":
            control.upgrade_source(source_database(settings))
    return problem
