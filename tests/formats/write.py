"""Writes one of each format into a folder, as this version does: ``python -m tests.formats.write FOLDER``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from click.testing import CliRunner

from migrator.adapters.coordination.local.hints import FileHints
from migrator.adapters.event_log.files.places import write_place
from migrator.adapters.event_log.files.request_store import FileRequests
from migrator.adapters.event_log.files.segment_writer import FileSegmentWriter
from migrator.cli import cli
from migrator.model.codecs.codec import FORMAT, checkpoint_to_json, requests_to_json
from migrator.model.codecs.hint_codec import hint_to_json
from scenarios.play import bundle
from scenarios.play.catalog_files import CATALOG, load
from scenarios.play.run_result import RESUMES, RunResult
from tests.formats.made import BOOK, CHECKPOINT, EPOCH, HINT, PLACE, segments
from tests.histories.tiny import Tiny
from tests.unit.verify.test_verify_parts import RESULT
from verify.history.result import Outcome
from verify.tables.report import json_report

SCENARIO = "bank_transfers"


def write(folder: Path) -> None:
    """All of them. ``folder`` must not exist."""
    folder.mkdir(parents=True)
    writer = FileSegmentWriter(folder / "eventlog", EPOCH)
    for segment in segments():
        writer.append(segment)
    (folder / "eventlog" / "readers").mkdir()
    write_place(folder / "eventlog" / "readers" / "a.json", PLACE)
    FileRequests(folder).update(lambda _: BOOK)
    FileHints(folder).publish(HINT)
    zookeeper = {"requests": requests_to_json(BOOK), "progress": hint_to_json(HINT)}
    for name, document in zookeeper.items():
        (folder / f"zookeeper-{name}.json").write_text(json.dumps(document) + "\n")
    ledger = {"format": FORMAT, "checkpoint": checkpoint_to_json(CHECKPOINT)}
    (folder / "ledger.json").write_text(json.dumps(ledger, indent=1) + "\n")
    (folder / "verify.json").write_text(json_report(RESULT))
    CliRunner().invoke(cli, ["init", str(folder / "project"), "--name", "shop"], catch_exceptions=False)
    for path in (folder / "project").iterdir():
        if path.name != "migration.toml":
            _remove(path)
    made = bundle.create(folder, SCENARIO, "postgresql", 1, "", (CATALOG / f"{SCENARIO}.yaml").read_text())
    (made / bundle.HISTORY).mkdir()
    Tiny().records.history().save(made / bundle.HISTORY)
    scenario = load(CATALOG / f"{SCENARIO}.yaml")
    result = RunResult(scenario, "postgresql", 1, RESUMES, "", (), Outcome.HOLDS, made, 1.5)
    bundle.write_result(result, {"python": "3"}, "migrator scenario run")
    for lock in folder.rglob("*.lock"):
        lock.unlink()


def _remove(path: Path) -> None:
    if path.is_dir():
        for each in path.iterdir():
            _remove(each)
        path.rmdir()
    else:
        path.unlink()


if __name__ == "__main__":
    write(Path(sys.argv[1]))
