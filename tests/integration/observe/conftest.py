"""The folder of a Prometheus of tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from migrator.embedded.process import scratch_directory


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that Prometheus may enter, which doesn't run as root."""
    with scratch_directory("migrator-observe-") as found:
        yield found
