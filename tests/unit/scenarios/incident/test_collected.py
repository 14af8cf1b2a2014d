"""An incident is collected from what there is: with no server at all, a log that lost its beginning, or damage."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from migrator.adapters.coordination.local.hints import FileHints
from migrator.adapters.event_log.files.batch_reader import FileBatchReader
from migrator.adapters.event_log.files.layout import Layout
from migrator.adapters.event_log.files.manifest_file import read_manifest
from migrator.adapters.event_log.files.segment_writer import FileSegmentWriter
from migrator.errors import ConfigError, MigratorError
from migrator.model.hint import Hint
from migrator.model.observed.observation import Ended
from migrator.model.segment import Manifest
from scenarios.chaos.incident import event_log, project_files
from scenarios.chaos.incident.collect import Wish, collected
from scenarios.chaos.incident.incident_file import packed, unpacked
from scenarios.chaos.incident.project_files import names_of_places, without_addresses
from scenarios.rehearsal import copied
from tests.contract.event_log.eventlog_content import content, dump_rows, images

SETTINGS = """
[migration]
name = "moving_day"
[source]
kind = "postgresql"
host = "db7.internal.example"
database = "warehouse"
user = "night_shift"
password_env = "NOBODY_SET_THIS"
[target]
kind = "postgresql"
host = "db8.internal.example"
database = "storehouse"
user = "day_shift"
password_env = "NOBODY_SET_THIS"
[capture]
segment_rows = 500
"""
MAPPING = '''"""Rows as they are, from db7.internal.example."""
from transforms import Mapping
mapping = Mapping()
@mapping.target("thing", key="id")
def thing(item):
    return item
'''


def project(folder: Path) -> Path:
    (folder / "migration.toml").write_text(SETTINGS)
    (folder / "mapping.py").write_text(MAPPING)
    return folder / "migration.toml"


def logged(folder: Path) -> Path:
    """A log: a chunk of two rows, of which the log changes one, a third inserted, and the first deleted."""
    directory = folder / ".migrator" / "eventlog"
    writer = FileSegmentWriter(directory, 1)
    writer.append(content(10, dump_rows((1, "Aloysius"), (2, "Brunhilde"))))
    writer.append(
        content(
            20, images((20, 0, -1, 2, "Brunhilde"), (20, 0, 1, 2, "Clothilde"), (20, 1, 1, 3, "Diogenes"))
        )
    )
    writer.append(content(30, images((30, 0, -1, 1, "Aloysius"))))
    return directory


def reported(folder: Path) -> None:
    counts = {"compared": 3, "different": 1, "missing": 0, "extra": 0, "duplicate": 0}
    old = [{"table": "item", "values": [["id", "2"], ["name", "Clothilde"]]}]
    sample = {
        "status": "different",
        "key": [["id", "2"]],
        "cells": [{"column": "name", "differs": True}],
        "old_rows": old,
    }
    table = {"target": "thing", "counts": counts, "samples": [sample], "columns": [{"column": "name"}]}
    (folder / ".migrator" / "reports").mkdir(parents=True)
    (folder / ".migrator" / "reports" / "verify.json").write_text(json.dumps({"tables": [table]}))


def test_a_log_becomes_a_history(tmp_path: Path) -> None:
    found = event_log.read(logged(tmp_path), "postgresql")
    assert found.history.start == {
        "item": [{"id": "1", "name": "Aloysius"}, {"id": "2", "name": "Brunhilde"}]
    }
    assert [one.order for one in found.history.transactions] == [20, 30]
    changed, added = found.history.transactions[0].changes
    assert (changed.before, changed.after) == (
        {"id": "2", "name": "Brunhilde"},
        {"id": "2", "name": "Clothilde"},
    )
    assert (added.before, added.after) == (None, {"id": "3", "name": "Diogenes"})
    assert found.history.transactions[1].changes[0].after is None
    assert found.lacking == ()
    assert [one["number"] for one in found.segments] == [1, 2, 3]


def test_a_log_without_its_beginning_says_so_and_starts_with_the_first_images(tmp_path: Path) -> None:
    directory = logged(tmp_path)
    FileBatchReader(directory).release(1)
    found = event_log.read(directory, "postgresql")
    assert found.lacking == ("segments 1 to 1 are no longer in the event log",)
    assert found.history.start["item"] == [{"id": "2", "name": "Brunhilde"}, {"id": "1", "name": "Aloysius"}]


def test_damage_ends_what_can_be_said(tmp_path: Path) -> None:
    directory = logged(tmp_path)
    (file,) = directory.glob("data/0000000003-*")
    file.write_bytes(b"damaged")
    found = event_log.read(directory, "postgresql")
    assert [one.order for one in found.history.transactions] == [20]
    assert found.lacking[0].startswith("segment 3: ")


def test_a_segment_that_a_run_releases_meanwhile_takes_what_came_before_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = logged(tmp_path)
    reader = FileBatchReader(directory)

    def released_first(layout: Layout, number: int) -> Manifest | None:
        found = read_manifest(layout, number)
        if number == 2:
            reader.release(2)
        return found

    monkeypatch.setattr("scenarios.chaos.incident.event_log.read_manifest", released_first)
    found = event_log.read(directory, "postgresql")
    assert found.lacking == ("segments 1 to 2 are no longer in the event log",)
    assert found.history.start == {"item": [{"id": "1", "name": "Aloysius"}]}
    assert [one.order for one in found.history.transactions] == [30]


def test_a_transaction_without_its_end_is_left_out(tmp_path: Path) -> None:
    writer = FileSegmentWriter(tmp_path, 1)
    part = content(10, images((20, 0, 1, 1, "Aloysius")), ends=False)
    writer.append(replace(part, checkpoint=replace(part.checkpoint, partial_order=20, partial_index=1)))
    found = event_log.read(tmp_path, "postgresql")
    assert found.history.transactions == ()
    assert found.lacking == ("the end of the log's last transaction",)


def test_an_empty_log_is_named(tmp_path: Path) -> None:
    assert event_log.read(tmp_path / "nowhere", "postgresql").lacking == ("the event log holds no segment",)


def test_without_any_server_the_log_and_the_report_are_enough(tmp_path: Path) -> None:
    logged(tmp_path)
    reported(tmp_path)
    found = collected(project(tmp_path), Wish())
    assert {one["part"] for one in found.facts["missing"]} == {"servers"}
    assert found.history.rows() == 6
    assert found.failure.wrong[0].said() == "thing, id 2: different in name"
    assert set(found.project) == {"migration.toml", "mapping.py"}
    content_ = packed(found).decode("latin-1") + "".join(found.content().values())
    assert "NOBODY_SET_THIS" not in content_
    assert "segment_rows = 500" in found.project["migration.toml"]
    assert "db7.internal.example" in found.parts["settings.toml"]
    assert "db7" not in found.project["migration.toml"]


def test_what_lacks_is_named_one_by_one(tmp_path: Path) -> None:
    logged(tmp_path)
    FileBatchReader(tmp_path / ".migrator" / "eventlog").release(1)
    found = collected(project(tmp_path), Wish())
    assert [one["part"] for one in found.facts["missing"]] == ["servers", "verify report", "event log"]
    assert not found.failure.anything()


@pytest.mark.parametrize(
    ("ended", "wished", "halted"),
    [
        (
            Ended(1, "RowRefused", "the target refuses a row; where: thing"),
            "",
            "the target refuses a row; where: thing",
        ),
        (Ended(1, "RowRefused", "the target refuses a row"), "the mapping fails", "the mapping fails"),
        (Ended(1, "ConnectionFailed", "the target can't be reached"), "", ""),
        (Ended(1), "", ""),
        (None, "", ""),
    ],
)
def test_the_error_of_the_last_run_is_collected(
    tmp_path: Path, ended: Ended | None, wished: str, halted: str
) -> None:
    logged(tmp_path)
    FileHints(tmp_path / ".migrator").publish(Hint(1, 1, ended=ended))
    found = collected(project(tmp_path), Wish(halted=wished)).failure
    assert found.halted == halted
    assert found.error == ("RowRefused" if halted.startswith("the target") else "")
    anonymised = collected(project(tmp_path), Wish(halted=wished, anonymise=True)).failure
    assert (anonymised.halted, anonymised.error) == (halted.partition(";")[0], found.error)


def test_where_nothing_is_there_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(MigratorError, match="nothing to collect"):
        collected(project(tmp_path), Wish())


def test_an_anonymised_incident_names_no_place_and_no_value(tmp_path: Path) -> None:
    logged(tmp_path)
    reported(tmp_path)
    found = collected(project(tmp_path), Wish(anonymise=True))
    text = "\n".join([*found.content().values(), json.dumps(dict(found.facts))])
    secret = [
        "Aloysius",
        "Brunhilde",
        "Clothilde",
        "Diogenes",
        "db7.internal",
        "db8.internal",
        "night_shift",
        "day_shift",
    ]
    secret += ["warehouse", "storehouse", str(tmp_path), "moving_day"]
    assert [one for one in secret if one in text] == []
    assert all(
        one in "\n".join(collected(project(tmp_path), Wish()).content().values()) for one in secret[:4]
    )
    after = found.history.transactions[0].changes[0].after
    assert after is not None
    assert found.failure.wrong[0].key == {"id": after["id"]}


def test_the_rows_of_a_key_and_their_versions_alone(tmp_path: Path) -> None:
    logged(tmp_path)
    found = collected(project(tmp_path), Wish(keys=(("item", ("3",)),)))
    assert found.history.start["item"] == []
    assert [change.after for change in found.history.changes()] == [{"id": "3", "name": "Diogenes"}]


def test_a_key_that_is_nowhere_is_refused(tmp_path: Path) -> None:
    logged(tmp_path)
    with pytest.raises(ConfigError, match="no such row"):
        collected(project(tmp_path), Wish(keys=(("item", ("99",)),)))


def test_around_a_position_what_came_before_is_in_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged(tmp_path)
    monkeypatch.setattr("scenarios.chaos.incident.collect._WINDOW", 1)
    found = collected(project(tmp_path), Wish(position=30))
    assert [one.order for one in found.history.transactions] == [30]
    assert found.history.start["item"] == [{"id": "1", "name": "Aloysius"}]
    assert "1 transactions further away" in found.facts["left_out"][0]


def test_no_more_rows_than_asked_for_and_what_is_left_out_is_said(tmp_path: Path) -> None:
    logged(tmp_path)
    reported(tmp_path)
    found = collected(project(tmp_path), Wish(most_rows=1))
    assert {row["id"] for _, row in found.history.every()} == {"2"}


def test_what_is_expected_is_in_the_file_by_the_targets_key_and_under_pseudonyms(tmp_path: Path) -> None:
    logged(tmp_path)
    wish = Wish(anonymise=True, expected=(("thing", ("3",), "name", "Brunhilde"),))
    found = collected(project(tmp_path), wish)
    (expected,) = found.failure.expected
    changed, added = found.history.transactions[0].changes
    assert changed.before is not None
    assert added.after is not None
    assert expected.key == {"id": added.after["id"]}
    assert expected.value == changed.before["name"] != "Brunhilde"
    assert [one.status for one in found.failure.wrong] == ["unexpected"]
    (tmp_path / "x.zip").write_bytes(packed(found))
    assert unpacked(tmp_path / "x.zip").failure == found.failure


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        (("thing", ("3", "4"), "name", "x"), "no such row"),
        (("nothing", ("3",), "name", "x"), "no such row"),
        (("thing", ("3",), "name", "nobody's name"), "no pseudonym"),
    ],
)
def test_what_can_not_be_expected_is_refused(
    tmp_path: Path, expected: tuple[str, tuple[str, ...], str, str], said: str
) -> None:
    logged(tmp_path)
    with pytest.raises(ConfigError, match=said):
        collected(project(tmp_path), Wish(anonymise=True, expected=(expected,)))


def test_code_keeps_names_that_may_be_variables(tmp_path: Path) -> None:
    logged(tmp_path)
    names = names_of_places(copied.wanted(project(tmp_path)))
    text = without_addresses("warehouse = 1  # of db7.internal.example", names)
    assert text.startswith("warehouse = 1  # of place")


def test_a_dump_beside_the_mapping_is_not_code(tmp_path: Path) -> None:
    """Values that code mentions stay under pseudonyms: rows that somebody added to a dump must not be among them."""
    config = project(tmp_path)
    (tmp_path / "schema.sql").write_text(
        "CREATE TABLE item (id int);\nINSERT INTO item VALUES ('Wilhelmina')"
    )
    (tmp_path / "more.sql").write_text("-- target: other\n-- key: id\nSELECT id FROM item")
    (tmp_path / "alembic" / "versions").mkdir(parents=True)
    (tmp_path / "alembic" / "versions" / "0001_new_schema.sql").write_text("CREATE TABLE thing (id int)")
    found, left = project_files.code(copied.wanted(config))
    assert set(found) == {"mapping.py", "more.sql", "alembic/versions/0001_new_schema.sql"}
    assert left == ["schema.sql: no line of it says `-- target:`"]
