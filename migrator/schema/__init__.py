"""Alembic environment of the tool's own control tables, in a schema (on MariaDB: a database) called ``migrator``.

Two branches of one environment: ``source`` makes the watermark row's table (only where that placement is configured),
``target`` makes the ledger. Versions stand in ``migrator.alembic_version``, apart from the user's own revisions.
"""

from migrator.schema.control import CONTROL_SCHEMA, control_problem, upgrade_source, upgrade_target
from migrator.schema.user_revisions import target_head_problem, upgrade_user_target

__all__ = [
    "CONTROL_SCHEMA",
    "control_problem",
    "target_head_problem",
    "upgrade_source",
    "upgrade_target",
    "upgrade_user_target",
]
