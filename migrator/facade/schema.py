"""Tables of the tool itself, ``migrator.schema`` in a checkout, under the name that users import."""

import sys

import migrator.schema as the_module
from migrator.schema import *  # noqa: F403

sys.modules[__name__] = the_module
