"""The work of ``alembic/env.py``, ``migrator.schema.project_env`` in a checkout, as users import it."""

import sys

import migrator.schema.project_env as the_module
from migrator.schema.project_env import *  # noqa: F403

sys.modules[__name__] = the_module
