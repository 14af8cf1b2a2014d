"""Gaps of a mapping, ``transforms.gaps`` in a checkout, under the name that users import."""

import sys

import transforms.gaps as the_module
from transforms.gaps import *  # noqa: F403

sys.modules[__name__] = the_module
