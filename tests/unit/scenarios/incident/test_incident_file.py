"""The file of an incident: what was put in comes out, and nothing that was changed or leads elsewhere is taken."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from migrator.errors import ConfigError
from scenarios.chaos.incident import structure
from scenarios.chaos.incident.added_test import added
from scenarios.chaos.incident.failure import Failure, Judgement, Wrong, judged, of_report
from scenarios.chaos.incident.history import around, from_place, identity, only
from scenarios.chaos.incident.incident_file import MANIFEST, packed, unpacked
from tests.unit.scenarios.incident.made_up import HISTORY, INCIDENT, STRUCTURE, customer, order


def written(folder: Path) -> Path:
    file = folder / "of a buyer.zip"
    file.write_bytes(packed(INCIDENT))
    return file


def changed(file: Path, name: str, data: bytes) -> None:
    with zipfile.ZipFile(file) as old:
        parts = {one: old.read(one) for one in old.namelist()}
    parts[name] = data
    with zipfile.ZipFile(file, "w") as new:
        for one, content in parts.items():
            new.writestr(one, content)


def test_what_was_put_in_comes_out(tmp_path: Path) -> None:
    found = unpacked(written(tmp_path))
    assert found.history == HISTORY
    assert found.structure == STRUCTURE
    assert found.failure == INCIDENT.failure
    assert found.project == INCIDENT.project
    assert packed(found) == packed(INCIDENT)


def test_the_manifest_names_every_part_with_its_content(tmp_path: Path) -> None:
    with zipfile.ZipFile(written(tmp_path)) as file:
        manifest = json.loads(file.read(MANIFEST))
        assert {one["name"] for one in manifest["parts"]} == {*file.namelist()} - {MANIFEST}
    assert manifest["format"] == 1
    assert manifest["counts"] == {"start_rows": 4, "transactions": 2, "row_changes": 3}


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("history/start.jsonl", b"{}\n", "was changed"),
        ("more.txt", b"", "aren't those of its manifest"),
        ("../outside", b"", "leads out of a folder"),
        ("project//outside", b"", "leads out of a folder"),
        (MANIFEST, b'{"format": 99}', "newer version"),
        (MANIFEST, b"[]", "no incident"),
    ],
)
def test_a_file_that_was_changed_is_refused(tmp_path: Path, name: str, data: bytes, said: str) -> None:
    file = written(tmp_path)
    changed(file, name, data)
    with pytest.raises(ConfigError, match=said):
        unpacked(file)


def test_a_flipped_bit_is_refused_or_changes_nothing(tmp_path: Path) -> None:
    file, whole, refused = tmp_path / "x.zip", packed(INCIDENT), 0
    for place in range(0, len(whole), 3):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :])
        try:
            assert packed(unpacked(file)) == whole
        except ConfigError:
            refused += 1
    assert refused > len(whole) // 6


def test_what_is_no_zip_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_text("no zip")
    with pytest.raises(ConfigError, match="no incident"):
        unpacked(tmp_path / "x.zip")


def test_statements_make_tables_then_their_links() -> None:
    found = structure.statements(STRUCTURE)
    assert [one.split("(")[0].strip() for one in found] == [
        'CREATE TABLE "customer"', 'CREATE TABLE "orders"', 'ALTER TABLE "orders" ADD FOREIGN KEY',
    ]  # fmt: skip
    assert '"id" integer NOT NULL' in found[0]
    own = replace(STRUCTURE.tables["orders"].columns[2], source_type="mood")
    table = replace(STRUCTURE.tables["orders"], columns=(*STRUCTURE.tables["orders"].columns[:2], own))
    other = replace(STRUCTURE, tables={"orders": table}, references=())
    assert '"note" text NULL' in structure.statements(other)[0]


def test_rows_are_linked_through_every_version_and_the_nearest_come_first() -> None:
    first = ("customer", ("4170005",))
    found, beyond = around(HISTORY, STRUCTURE, [first], 100)
    assert beyond == 0
    # ORD-Zeta-1 was the first one's, became ORD-Iota-4 of the other one, whose ORD-Theta-3 is.
    assert found == {
        first, ("customer", ("4170012",)), ("orders", ("ORD-Zeta-1",)), ("orders", ("ORD-Iota-4",)),
        ("orders", ("ORD-Theta-3",)),
    }  # fmt: skip
    part = only(HISTORY, STRUCTURE, found)
    assert [row["code"] for row in part.start["orders"]] == ["ORD-Zeta-1"]
    near, beyond = around(HISTORY, STRUCTURE, [first], 2)
    assert (near, beyond > 0) == ({first, ("orders", ("ORD-Zeta-1",))}, True)


def test_a_history_may_begin_later() -> None:
    later = from_place(HISTORY, STRUCTURE, 200)
    assert [one.order for one in later.transactions] == [200]
    assert {identity(STRUCTURE, "orders", row)[1][0] for row in later.start["orders"]} == {
        "ORD-Zeta-1", "ORD-Eta-22", "ORD-Theta-3",
    }  # fmt: skip


def failure(*wrong: Wrong, halted: str = "", checked: int = 5) -> Failure:
    return Failure(wrong, len(wrong), halted, checked, ("person",))


NAME = Wrong("person", "different", ("name",), {"id": "1"})
EMAIL = Wrong("person", "different", ("email",), {"id": "1"})
GONE = Wrong("person", "missing", (), {"id": "1"})


@pytest.mark.parametrize(
    ("recorded", "found", "judgement"),
    [
        (failure(NAME), failure(NAME), Judgement.REPRODUCED),
        (failure(NAME), failure(EMAIL, NAME), Judgement.REPRODUCED),
        (failure(NAME), failure(), Judgement.NOT_REPRODUCED),
        (failure(NAME), failure(checked=0), Judgement.UNKNOWN),
        (failure(NAME), failure(EMAIL), Judgement.UNKNOWN),
        (failure(NAME), failure(GONE), Judgement.UNKNOWN),
        (failure(NAME), failure(halted="no"), Judgement.UNKNOWN),
        (failure(), failure(NAME), Judgement.UNKNOWN),
        (failure(halted="refused; x"), failure(halted="refused; y"), Judgement.REPRODUCED),
        (failure(halted="refused; x"), failure(halted="other; x"), Judgement.UNKNOWN),
        (failure(halted="refused; x"), failure(), Judgement.NOT_REPRODUCED),
        (replace(failure(halted="x"), error="RowRefused"), failure(), Judgement.NOT_REPRODUCED),
        (replace(failure(halted="x"), error="SchemaError"), failure(), Judgement.UNKNOWN),
        (replace(failure(halted="x"), error="SchemaError"), failure(halted="x"), Judgement.REPRODUCED),
    ],
)
def test_a_replay_is_judged_by_the_same_table_status_and_column(
    recorded: Failure, found: Failure, judgement: Judgement
) -> None:
    assert judged(recorded, found)[0] is judgement


def test_a_failure_is_read_from_a_report() -> None:
    counts = {"compared": 7, "different": 1, "missing": 2, "extra": 0, "duplicate": 0}
    cells = [{"column": "name", "differs": True}, {"column": "id", "differs": False}]
    samples = [
        {"status": "different", "key": [["id", "1"]], "cells": cells, "old_rows": []},
        {"status": "set aside", "key": [["id", "2"]], "cells": [], "old_rows": []},
    ]
    table = {"target": "person", "counts": counts, "samples": samples, "columns": [{"column": "name"}]}
    found = of_report({"tables": [table]})
    assert found.wrong == (NAME, Wrong("person", "missing"))
    assert (found.number, found.checked) == (3, 7)


def test_an_incident_becomes_a_test_of_the_project(tmp_path: Path) -> None:
    test, copy = added(written(tmp_path), tmp_path / "tests")
    assert test.name == "test_of_a_buyer.py"
    compile(test.read_text(), str(test), "exec")
    assert 'migration.replay("incidents/of_a_buyer.zip")' in test.read_text()
    assert packed(unpacked(copy)) == packed(INCIDENT)
    with pytest.raises(ConfigError, match="there already"):
        added(written(tmp_path), tmp_path / "tests")


def test_no_test_is_written_that_could_not_fail(tmp_path: Path) -> None:
    file = tmp_path / "x.zip"
    file.write_bytes(packed(replace(INCIDENT, failure=Failure())))
    with pytest.raises(ConfigError, match="could not fail"):
        added(file, tmp_path / "tests")


def test_rows_of_the_made_up_incident_fit_its_tables() -> None:
    assert [*customer(1, "x")] == [*STRUCTURE.tables["customer"].names()]
    assert [*order("x", 1)] == [*STRUCTURE.tables["orders"].names()]
