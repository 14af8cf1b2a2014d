"""A trial for people: few rows of linked tables, unless more are asked for."""

from __future__ import annotations

import pyarrow as pa
import pytest

from migrator.cli.try_ import as_lines
from migrator.run.commands.trial import Trial

TRIAL = Trial(
    "orders id=1",
    {"orders": pa.table({"id": [1, 2, 3, 4]}), "line": pa.table({"no": [11, 12, 13, 14, 15]})},
    pa.table({"id": [1]}),
)


@pytest.mark.parametrize(
    ("linked", "shown", "more"),
    [(3, 3, "[line] and 2 more (--linked)"), (0, 0, "[line] and 5 more"), (5, 5, "")],
)
def test_of_linked_tables_few_rows_are_shown(linked: int, shown: int, more: str) -> None:
    text = "\n".join(as_lines("sum", TRIAL, linked))
    assert text.count("no = 1") == shown
    assert text.count("[orders]") == 4, "those it begins at are all shown"
    assert ("more" in text) == bool(more)
    assert more in text


def test_three_unless_somebody_says_otherwise() -> None:
    assert as_lines("sum", TRIAL) == as_lines("sum", TRIAL, 3)
