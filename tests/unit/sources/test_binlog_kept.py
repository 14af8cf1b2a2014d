"""The bytes of a binary log behind a place: its own files, and never a number of another server's."""

from __future__ import annotations

import pytest

from migrator.adapters.sources.binlog.retention import kept_bytes, left_bytes

FILES = [("bin.000007", 1000), ("bin.000008", 500), ("bin.000009", 30)]


@pytest.mark.parametrize(
    ("file", "offset", "kept"),
    [
        ("bin.000009", 30, 0),
        ("bin.000009", 4, 26),
        ("bin.000008", 100, 430),
        ("bin.000007", 0, 1530),
        ("bin.000006", 4, None),
        ("bin.000008", 501, None),
        ("", 0, None),
    ],
)
def test_what_follows_a_place_is_counted_over_all_files(file: str, offset: int, kept: int | None) -> None:
    assert kept_bytes(FILES, file, offset) == kept
    assert kept_bytes([], file, offset) is None, "who may not see the files knows nothing"


@pytest.mark.parametrize(
    ("file", "offset", "left"),
    [
        ("bin.000009", 4, 2000 - 26),  # the one that is written is never purged
        ("bin.000008", 100, 2000 - 530),  # files go whole: what is read of it doesn't count as free
        ("bin.000007", 999, 2000 - 1530),
        ("bin.000006", 4, None),
    ],
)
def test_what_may_be_written_before_a_file_is_purged_by_size(
    file: str, offset: int, left: int | None
) -> None:
    assert left_bytes(FILES, file, offset, 2000) == left
    assert left_bytes(FILES, file, offset, None) is None, "the control: no bound"
    assert left_bytes([], file, offset, 2000) is None
