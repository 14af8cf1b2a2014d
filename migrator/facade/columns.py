"""The column library, ``transforms.columns`` in a checkout, under the name that users import."""

import sys

import transforms.columns as the_module
from transforms.columns import *  # noqa: F403

sys.modules[__name__] = the_module
