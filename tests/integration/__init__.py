"""Tests on real servers and on real Spark, in rooms that mirror the tool's stations."""

import pytest

pytest.register_assert_rewrite(
    "tests.integration.binlog_reading", "tests.integration.sources.binlog_preflight"
)
