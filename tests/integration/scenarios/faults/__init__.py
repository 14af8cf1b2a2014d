"""Every fault on a real server or process, with proof that it took effect, and a named error where it can't."""

import pytest

pytest.register_assert_rewrite("tests.integration.scenarios.faults.fault_world")
