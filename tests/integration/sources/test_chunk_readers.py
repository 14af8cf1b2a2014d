"""The chunk readers of all engines keep the contract, those that ask Spark's executors included."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from migrator.model.limits import CaptureLimits
from tests.contract.chunk_reader_contract import ChunkReaderContract, Read, make_table
from tests.fix_executor_reads import Asked
from tests.integration.capturing import capturing
from tests.servers import Database

pytestmark = pytest.mark.integration

READERS = [
    *(pytest.param((old, False), id=old) for old in ("old_pg", "old_maria", "old_mysql")),
    *(
        pytest.param((old, True), id=f"{old}, executors", marks=pytest.mark.spark)
        for old in ("old_pg", "old_maria")
    ),
]
"""MySQL differs from MariaDB in what the witness is made of, which its own case tries; a task brings either."""


class TestChunkReaders(ChunkReaderContract):
    @pytest.fixture(params=READERS)
    def it(self, request: pytest.FixtureRequest) -> Iterator[Read]:
        name, there = request.param
        database: Database = request.getfixturevalue(name)
        make_table(database)
        capture = capturing(database, ["t"], CaptureLimits())
        (schema,) = capture.schemas.values()
        if not there:
            with closing(capture.chunk_reader()) as reader:
                yield Read(database, capture, reader, schema)
            return
        asked = Asked(request.getfixturevalue("spark"))
        with closing(asked.reading(capture).chunk_reader()) as reader:
            yield Read(database, capture, reader, schema)
        assert asked.said == []
