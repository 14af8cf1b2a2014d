"""Keys as messages show them."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from migrator.columnar.shown import key_text


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (7, "7"),
        (None, "NULL"),
        ("O'Hara", "'O''Hara'"),
        ("größer", "'größer'"),
        ("a\n\u202eb", "'a\\n\\u202eb'"),
        (b"\x00\xff'k", "0x00ff276b"),
        (Decimal("1.50"), "1.50"),
        (date(2026, 1, 2), "2026-01-02"),
    ],
)
def test_a_key_is_shown_much_as_sql_has_it(value: object, said: str) -> None:
    assert key_text(["id"], [value]) == f"id={said}"
