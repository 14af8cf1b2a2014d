"""Slots of standing plans: a disk that refuses is a named error, whoever meets it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from migrator.errors import MigratorError
from migrator.model.table import Column, TableId, TableSchema
from transforms.on_spark.standing import Slots

SCHEMA = TableSchema(TableId("s", "item"), (Column("k", "int64", False, "bigint"),), ("k",))


def test_a_full_disk_is_named_when_a_batch_is_put_in_place(tmp_path: Path) -> None:
    slots = Slots(tmp_path, {"item": SCHEMA})
    slot = slots.path("after", "item")
    slot.unlink()
    slot.symlink_to("/dev/full")  # every write there finds no space left

    with pytest.raises(MigratorError, match="can't be put where Spark reads them") as raised:
        slots.fill({"after": {"item": pa.table({"k": [1]})}})

    assert raised.value.where == str(slot)
    assert "No space left" in raised.value.cause
    assert not raised.value.retryable


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "slots").write_text("a file in the way")

    with pytest.raises(MigratorError, match="can't be put") as raised:
        Slots(tmp_path / "slots", {"item": SCHEMA})

    assert raised.value.where == str(tmp_path / "slots")
