"""Dual read, ``verify.dual_read`` in a checkout, under the name that users import."""

import sys

import verify.dual_read as the_module
from verify.dual_read import *  # noqa: F403

sys.modules[__name__] = the_module
