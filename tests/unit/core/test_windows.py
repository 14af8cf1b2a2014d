"""DBLog's windows on their own: which keys a chunk's watermarks enclose."""

from __future__ import annotations

from migrator.core.touched import EVERY_KEY
from migrator.core.windows import Window, Windows
from migrator.model.event import MarkKind, WatermarkSeen
from tests.unit.core.test_core import OTHER, TABLE, update


def windows(max_keys: int = 10) -> Windows:
    found = Windows(max_keys)
    found["t-1"] = Window(TABLE, set())
    return found


def low(token: str = "t-1") -> WatermarkSeen:
    return WatermarkSeen(token, MarkKind.LOW)


def noted(found: Windows, *keys: str) -> None:
    for key in keys:
        (run,) = update(1, key).runs
        found.note(TABLE, run)


def test_what_came_before_the_low_watermark_is_no_reason_to_drop_a_row() -> None:
    found = windows()
    noted(found, "a")
    assert not found.mark(low())
    noted(found, "b", "c")
    assert found["t-1"].keys == {("b",), ("c",)}
    assert not found["t-1"].high_seen
    assert found.mark(WatermarkSeen("t-1", MarkKind.HIGH))
    assert found["t-1"].high_seen


def test_keys_of_other_tables_are_not_noted() -> None:
    found = windows()
    found["t-2"] = Window(OTHER, set())
    noted(found, "a")
    assert (found["t-1"].keys, found["t-2"].keys) == ({("a",)}, set())


def test_more_keys_than_are_remembered_count_as_every_key_until_the_window_ends() -> None:
    found = windows(max_keys=1)
    noted(found, "a")
    assert found["t-1"].keys == {("a",)}
    noted(found, "b")
    assert found["t-1"].keys is EVERY_KEY
    noted(found, "c")
    assert found["t-1"].keys is EVERY_KEY


def test_a_watermark_of_an_earlier_attempt_is_nobody_s() -> None:
    found = windows()
    noted(found, "a")
    assert not found.mark(low("s-1"))
    assert not found.mark(WatermarkSeen("s-1", MarkKind.HIGH))
    assert found["t-1"].keys == {("a",)}
    assert not found["t-1"].high_seen
