"""Alembic environment of the tool's own control tables, in a schema (on MariaDB: a database) called ``migrator``.

Three branches of one environment: ``source`` makes the watermark row's table (only where that placement is
configured),
``target`` makes the ledger, ``fence`` the table in which the fence of a cut-over notes what was there before.
Versions stand in ``migrator.alembic_version``, apart from the user's own revisions.

On a MySQL or MariaDB target a schema of our own would be another database: it would stay when the target's is
dropped, restored or renamed. There the ledger is a table of the target's database, beside ``migrator_version``.
"""

from migrator.schema.control import control_problem, upgrade_fence, upgrade_source, upgrade_target
from migrator.schema.dialects import CONTROL_SCHEMA, MYSQL_LEDGER
from migrator.schema.user_revisions import Revision, Standing, standing, target_head_problem
from migrator.schema.user_upgrade import Manner, upgrade_user_target, user_sql

__all__ = [
    "CONTROL_SCHEMA",
    "MYSQL_LEDGER",
    "Manner",
    "Revision",
    "Standing",
    "control_problem",
    "standing",
    "target_head_problem",
    "upgrade_fence",
    "upgrade_source",
    "upgrade_target",
    "upgrade_user_target",
    "user_sql",
]
