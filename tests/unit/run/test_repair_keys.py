"""Which numbers of a target's key tell the source's key, and how a server is asked for them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from migrator.adapters.sources.binlog.keyset import listed
from migrator.errors import MappingError
from migrator.model.table import Column, TableId, TableSchema
from migrator.model.target import TargetColumn
from migrator.run.commands.repair import Wanted, _same_values, repair_steps
from migrator.run.parts import Parts
from transforms import Mapping


@pytest.mark.parametrize(
    ("source", "target", "told"),
    [
        ("int64", "bigint", True),
        ("decimal(20,0)", "decimal(20,0)", True),
        ("decimal(20,0)", "bigint", True),
        ("int64", "decimal(20,0)", True),
        ("decimal(12,2)", "decimal(12,2)", True),
        ("decimal(12,2)", "decimal(14,4)", True),
        ("decimal(12,2)", "decimal(12,1)", False),  # 1.25 and 1.3 become one key
        ("decimal(12,2)", "bigint", False),
        ("decimal(12,2)", "double", False),
        ("int64", "string", False),
        ("float64", "double", False),
    ],
)
def test_exact_numbers_tell_the_source_s_key_unless_decimals_are_lost(
    source: str, target: str, told: bool
) -> None:
    column = TargetColumn("id", target, target, False, False, False)
    assert _same_values(Column("id", source, False, source), column, exact_texts=True) is told


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
        repair_steps(parts, [Wanted("gone", ("id",), (("1",),))], exact_texts=True)
    assert "it makes kept" in refused.value.cause
