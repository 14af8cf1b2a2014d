"""Constants and other frames for mappings, ``transforms.frames`` in a checkout, under the name that users import."""

import sys

import transforms.frames as the_module
from transforms.frames import *  # noqa: F403

sys.modules[__name__] = the_module
