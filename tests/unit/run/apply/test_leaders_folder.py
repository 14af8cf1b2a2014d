"""Folders of leaders: each has its own, earlier ones go, later ones stay."""

from __future__ import annotations

from pathlib import Path

from migrator.run.apply.leaders_folder import leaders_folder


def test_folders_of_earlier_leaders_and_versions_are_removed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "kept").mkdir(parents=True)
    parent = tmp_path / "slots"
    for name in ("2/joined-0", "9", "10", "joined-0/values"):  # 9 and 10 as numbers, not as texts
        (parent / name).mkdir(parents=True)
        (parent / name / "rows.parquet").write_text("x")
    (parent / "orders.before.4.parquet").write_text("as versions before wrote them")
    (parent / "link").symlink_to(elsewhere)

    assert leaders_folder(parent, 10) == parent / "10"
    assert {entry.name for entry in parent.iterdir()} == {"10"}
    assert (parent / "10" / "rows.parquet").exists(), "the same leader may ask again"
    assert (elsewhere / "kept").exists()


def test_a_later_leaders_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "8").mkdir()
    assert leaders_folder(tmp_path, 7) == tmp_path / "7"
    assert (tmp_path / "8").is_dir()


def test_a_folder_that_is_not_there_yet_is_no_mistake(tmp_path: Path) -> None:
    assert leaders_folder(tmp_path / "slots", 1) == tmp_path / "slots" / "1"
