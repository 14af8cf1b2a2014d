"""What older versions left is read, and what a newer one would leave is refused by name, whatever it is.

``tests/formats/<n>`` was written by the version that began that set of formats (see ``tests/formats/made.py``).
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from migrator.adapters.coordination.local.hints import FileHints
from migrator.adapters.coordination.zookeeper.leadership import FORMAT as NODES
from migrator.adapters.event_log.files.batch_reader import FileBatchReader
from migrator.adapters.event_log.files.layout import Layout
from migrator.adapters.event_log.files.places import FORMAT as PLACES
from migrator.adapters.event_log.files.places import read_place
from migrator.adapters.event_log.files.request_store import FileRequests
from migrator.adapters.event_log.files.segment_writer import FileSegmentWriter
from migrator.adapters.event_log.files.set_aside import set_damage_aside
from migrator.adapters.sources.postgres.change_tables.layout import FORMAT as CHANGE_TABLES
from migrator.adapters.targets.shared.mirror.columns import FORMAT as MIRROR
from migrator.config import project as config
from migrator.config.sections import FORMAT as SETTINGS
from migrator.errors import MigratorError
from migrator.model.codecs.codec import FORMAT, checkpoint_from_json, requests_from_json
from migrator.model.codecs.hint_codec import hint_from_json
from migrator.model.ledger import Ledger
from scenarios.play import bundle
from scenarios.report.document import FORMAT as REPORT
from tests.contract.event_log.eventlog_content import checkpoint, pairs, read
from tests.formats.made import BOOK, CHECKPOINT, EPOCH, HINT, PLACE
from tests.formats.write import SCENARIO
from verify.history.history import FORMAT as HISTORY
from verify.history.history import load_history
from verify.tables.result import FORMAT as VERIFY

FORMATS = Path(__file__).parents[1] / "formats"
EVENT_LOGS = sorted(folder for folder in FORMATS.iterdir() if (folder / "eventlog").is_dir())
UPGRADE = Path(__file__).parents[2] / "docs" / "how-to" / "upgrade.md"


@pytest.fixture(params=EVENT_LOGS, ids=[folder.name for folder in EVENT_LOGS])
def left(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """What a version left, to be written to."""
    return Path(shutil.copytree(request.param, tmp_path / "left"))


@pytest.fixture
def newest(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EVENT_LOGS[-1], tmp_path / "newest"))


def test_an_event_log_is_read_and_gone_on_with(left: Path) -> None:
    first = read(FileBatchReader(left / "eventlog"), max_rows=1)
    (chunk,) = first.chunks
    assert (first.first, first.last, chunk[2], first.checkpoint) == (1, 1, 2, checkpoint(1))
    assert pairs(first.deltas[0].after) == [(3, "c")]
    second = read(FileBatchReader(left / "eventlog"), first.last, max_rows=1)
    assert (second.first, second.last, sorted(pairs(second.deltas[0].after))) == (
        2,
        3,
        [(4, "n4"), (5, "n5")],
    )
    writer = FileSegmentWriter(left / "eventlog", EPOCH + 1)
    last = writer.last()
    assert last is not None
    assert last == list(FileBatchReader(left / "eventlog").manifests(2))[-1]
    assert last.number == (4 if (left / "eventlog" / "segments" / "0000000004.json").exists() else 3)


def test_a_truncate_is_read(newest: Path) -> None:
    (delta,) = read(FileBatchReader(newest / "eventlog"), 3).deltas
    assert (delta.emptied, pairs(delta.after)) == (True, [(6, "f")])
    (delta,) = read(FileBatchReader(newest / "eventlog"), 0).deltas
    assert (delta.emptied, pairs(delta.after)) == (True, [(6, "f")]), "nothing of before it"


def test_a_ledger_is_read(left: Path) -> None:
    document = json.loads((left / "ledger.json").read_text())
    wanted = CHECKPOINT if document["format"] > 1 else checkpoint(2)
    assert checkpoint_from_json(document["checkpoint"]) == wanted


def test_state_files_and_nodes_are_read(newest: Path) -> None:
    assert FileRequests(newest).read() == BOOK
    assert FileHints(newest).read() == HINT
    assert requests_from_json(json.loads((newest / "zookeeper-requests.json").read_text())) == BOOK
    assert hint_from_json(json.loads((newest / "zookeeper-progress.json").read_text())) == HINT
    assert read_place(newest / "eventlog" / "readers" / "a.json") == PLACE


def test_settings_bundles_and_reports_are_read(newest: Path) -> None:
    assert config.load(newest / "project" / "migration.toml", {}).name == "shop"
    made = newest / f"{SCENARIO}-postgresql-1"
    assert bundle.read_result(made).elapsed_s == 1.5
    assert load_history(made / bundle.HISTORY).description.scenario == "made"
    report = json.loads((newest / "verify.json").read_text())
    assert (report["format"], report["verdict"]) == (2, "different")


# -- newer ones ---------------------------------------------------------------------------------------------------


def numbered(path: Path, number: int, sealed: bool = False) -> None:
    """Gives a JSON file another format number; ``sealed``: and the checksum line that belongs to it."""
    line = path.read_bytes().partition(b"\n")[0] if sealed else path.read_bytes()
    document: dict[str, Any] = json.loads(line) | {"format": number}
    content = json.dumps(document).encode()
    seal = b'\n{"sha256":"' + hashlib.sha256(content).hexdigest().encode() + b'"}\n' if sealed else b""
    path.write_bytes(content + seal)


def settings(folder: Path, number: int) -> Path:
    path = folder / "project" / "migration.toml"
    path.write_text(path.read_text().replace("format = 1", f'format = {number}\nto_come = "x"'))
    return path


MANIFESTS = "eventlog/segments/000000000{}.json"
BUNDLE = f"{SCENARIO}-postgresql-1"


def _batch(folder: Path) -> object:
    return read(FileBatchReader(folder / "eventlog"), max_rows=1)  # the next one names what this one was


def _opened(folder: Path) -> object:
    return FileSegmentWriter(folder / "eventlog", 9)


LATER: dict[str, tuple[int, str, bool, Callable[[Path], object]]] = {
    "segment read": (FORMAT, MANIFESTS.format(1), True, _batch),
    "segment opened": (FORMAT, MANIFESTS.format(4), True, _opened),
    "requests": (FORMAT, "requests.json", True, lambda f: FileRequests(f).read()),
    "place": (PLACES, "eventlog/readers/a.json", False, lambda f: read_place(f / "eventlog/readers/a.json")),
    "bundle": (bundle.FORMAT, f"{BUNDLE}/result.json", False, lambda f: bundle.read_result(f / BUNDLE)),
    "history": (
        HISTORY,
        f"{BUNDLE}/history/description.json",
        False,
        lambda f: load_history(f / BUNDLE / "history"),
    ),
}


@pytest.mark.parametrize("name", LATER)
def test_a_newer_format_is_refused_by_name(newest: Path, name: str) -> None:
    number, file, sealed, load = LATER[name]
    numbered(newest / file, number, sealed)
    load(newest)  # the control: renumbering alone does no harm
    numbered(newest / file, number + 1, sealed)
    with pytest.raises(MigratorError) as caught:
        load(newest)
    told = str(caught.value)
    assert f"format is {number + 1}" in told or f"format {number + 1}" in told
    assert f"this version knows formats up to {number}" in told
    assert "newer one" in caught.value.remedy
    assert file.rpartition("/")[2] in told or str(newest) in told


def test_newer_settings_are_refused_by_that_name_alone(newest: Path) -> None:
    with pytest.raises(MigratorError) as caught:
        config.load(settings(newest, 2), {})
    assert "1 problem(s)" in caught.value.what
    assert "migration.format: it is 2, this version knows formats up to 1" in caught.value.where


def test_a_newer_hint_is_none(newest: Path) -> None:
    numbered(newest / "progress.json", FORMAT + 1)
    assert FileHints(newest).read() is None, "nothing depends on it"


def test_nobody_takes_a_newer_event_log_apart(newest: Path) -> None:
    """A newer format isn't damage: it must not be set aside."""
    numbered(Layout.of(newest / "eventlog").manifest(2), FORMAT + 1, sealed=True)
    with pytest.raises(MigratorError, match="newer version"):
        set_damage_aside(newest / "eventlog", Ledger("m", 9, 1, None))
    assert Layout.of(newest / "eventlog").numbers() == [1, 2, 3, 4]


def test_every_set_of_formats_has_its_folder_and_the_document_tells_the_numbers() -> None:
    assert [folder.name for folder in EVENT_LOGS] == [str(number) for number in range(1, FORMAT + 1)]
    text = UPGRADE.read_text()
    for name, number in (
        ("event log", FORMAT), ("places of outputs", PLACES), ("settings", SETTINGS), ("ledger", FORMAT),
        ("mirror", MIRROR), ("change tables", CHANGE_TABLES), ("ZooKeeper's nodes", NODES),
        ("dump requests, progress", FORMAT), ("scenario bundles", bundle.FORMAT), ("histories", HISTORY),
        ("report of scenarios", REPORT), ("report of `verify`", VERIFY),
    ):  # fmt: skip
        assert f"| {name} | {number} |" in text, name
