"""One suite per port, run over every adapter that serves it."""

import pytest

pytest.register_assert_rewrite(
    "tests.contract.event_log.eventlog_content",
    "tests.contract.event_log.eventlog_batches_contract",
    "tests.contract.event_log.eventlog_contract",
    "tests.contract.coordination.leadership_contract",
)
