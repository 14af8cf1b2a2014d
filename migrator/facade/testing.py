"""A mapping in unit tests, ``transforms.testing`` in a checkout, under the name that users import."""

import sys

import transforms.testing as the_module
from transforms.testing import *  # noqa: F403

sys.modules[__name__] = the_module
