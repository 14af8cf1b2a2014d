"""The way in which a server is asked for listed keys, and what is refused before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from migrator.adapters.sources.binlog.keyset import listed
from migrator.errors import MappingError
from migrator.model.table import Column, TableId, TableSchema
from migrator.run.commands.repair import Wanted, repair_steps
from migrator.run.parts import Parts
from transforms import Mapping


@pytest.mark.parametrize(
    ("keys", "condition"),
    [
        (["1", "2"], "`id` IN (1, 2)"),
        (["18446744073709551615"], "`id` IN (18446744073709551615)"),
        (
            ["1", "9223372036854775808", "9223372036854775807", "18446744073709551615"],
            "(`id` IN (1, 9223372036854775807) OR `id` IN (9223372036854775808, 18446744073709551615))",
        ),
    ],
)
def test_unsigned_keys_are_listed_such_that_an_index_finds_them(keys: list[str], condition: str) -> None:
    """MariaDB scans the table for one list of numbers below and above 2^63."""
    column = Column("id", "decimal(20,0)", False, "bigint(20) unsigned")
    schema = TableSchema(TableId("s", "t"), (column,), ("id",))
    assert listed(schema, [(key,) for key in keys], repr) == condition


def test_rows_of_a_target_that_left_the_mapping_are_refused_by_name() -> None:
    """A ledger may have records of it, a report its keys."""
    mapping = Mapping()
    mapping.target("kept", key="id")(lambda source: source)
    parts = cast(Parts, SimpleNamespace(mapping=mapping))
    with pytest.raises(MappingError, match="makes no target table 'gone'") as refused:
        repair_steps(parts, [Wanted("gone", ("id",), (("1",),))])
    assert "it makes kept" in refused.value.cause
