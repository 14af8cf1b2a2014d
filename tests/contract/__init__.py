"""One suite per port, run over every adapter that serves it."""

import pytest

pytest.register_assert_rewrite(
    "tests.contract.eventlog_content",
    "tests.contract.eventlog_batches_contract",
    "tests.contract.eventlog_contract",
    "tests.contract.leadership_contract",
)
