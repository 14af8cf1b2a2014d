"""Tests on real servers and on real Spark."""

import pytest

pytest.register_assert_rewrite("tests.integration.binlog_reading", "tests.integration.binlog_preflight")
