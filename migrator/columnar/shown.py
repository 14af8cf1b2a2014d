"""Keys and values of mapped rows as messages show them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from migrator.model.observed.printable import printable

_SHOWN = 60


def shown(value: pa.Scalar) -> object:
    """A value for messages: what Python has no word for as its number, the middle of long ones left out."""
    try:
        found = value.as_py()
    except (ValueError, OverflowError):  # dates beyond the year 9999, infinities
        found = value.cast(pa.int32() if pa.types.is_date32(value.type) else pa.int64()).as_py()
    if isinstance(found, (str, bytes)) and len(found) > _SHOWN:
        half = _SHOWN // 2
        dots = "..." if isinstance(found, str) else b"..."
        return found[:half] + dots + found[-half:]  # type: ignore[operator]
    return found


def key_text(names: Sequence[str], values: Sequence[object]) -> str:
    """``name=value`` pairs of a key, for messages."""
    return ", ".join(f"{name}={spoken(value)}" for name, value in zip(names, values, strict=True))


def spoken(value: object) -> str:
    """A value much as one writes it in SQL: bytes as hexadecimal digits, texts in quotes; what doesn't print is
    escaped."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    if isinstance(value, str):
        doubled = value.replace("'", "''")
        return f"'{printable(doubled)}'"
    return str(value)
