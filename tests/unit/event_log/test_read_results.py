"""Results of dual reads in the state folder: kept, replaced as a whole, refused by name, removed by a reset."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from migrator.adapters.event_log.files.read_results import FILE, ReadResults
from migrator.adapters.event_log.files.remains import StateRemains
from migrator.errors import EventLogError
from migrator.model.cutover.reads import ReadShape
from migrator.ports.remains import Kind

SHAPE = ReadShape("/p/q.yaml", "c", "näh", "q", "m", 7.5, 1, 2, 3, 4, 0.5, 1.5, 2.5, 3.5)


def test_what_was_kept_is_read_again(tmp_path: Path) -> None:
    results = ReadResults(tmp_path / "state")
    assert results.read() == ()
    results.change(lambda kept: [*kept, SHAPE])
    results.change(lambda kept: [*kept, SHAPE])
    assert ReadResults(tmp_path / "state").read() == (SHAPE, SHAPE)


@pytest.mark.parametrize("content", ["{", '{"format": 1, "shapes": [{"file": 1}]}', "[]"])
def test_a_damaged_file_is_refused_and_the_remedy_works(tmp_path: Path, content: str) -> None:
    results = ReadResults(tmp_path)
    (tmp_path / FILE).write_text(content)
    with pytest.raises(EventLogError, match="can't be read") as raised:
        results.read()
    assert raised.value.remedy == "remove the file, then run the dual reads again"
    (tmp_path / FILE).unlink()
    results.change(lambda kept: [*kept, SHAPE])
    assert results.read() == (SHAPE,)


def test_a_newer_versions_file_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(json.dumps({"format": 2, "shapes": []}))
    with pytest.raises(EventLogError, match="knows formats up to 1"):
        ReadResults(tmp_path).change(lambda kept: kept)
    assert json.loads((tmp_path / FILE).read_text())["format"] == 2


def test_a_reset_removes_them(tmp_path: Path) -> None:
    ReadResults(tmp_path).change(lambda _: [SHAPE])
    remains = StateRemains(tmp_path, tmp_path / "reports")
    found = remains.found()
    assert [(left.kind, left.name) for left in found.left] == [(Kind.STATE, FILE)]
    remains.remove(found.left)
    remains.finish()
    assert not tmp_path.exists()
