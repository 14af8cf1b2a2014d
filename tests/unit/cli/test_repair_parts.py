"""What a repair is asked for, the file of keys it reads, and the statements it writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from migrator.cli.repair.choice import Choice, chosen, not_differing
from migrator.cli.repair.forms import lines
from migrator.cli.repair.report import outcome, planned_lines
from migrator.errors import RequestError, VerifyError
from migrator.model.requests.request import DumpRequest, RequestState, Scope
from migrator.model.table import TableId
from migrator.run.commands.repair import RepairStep, Way
from verify.tables.findings.differing import (
    Differing,
    DifferingKey,
    DifferingTable,
    read_differing,
)
from verify.tables.findings.fix_sql import write_fix_sql

ITEM = DifferingTable(
    "it`em",
    ("id", "place"),
    (("id", "int", "int4"), ("place", "text", "text"), ("raw", "bytea", "bytea"), ("doc", "json", "json")),
    3,
    3,
    "different",
)
ROW = ("9", "a'b", "ff", "{}")
KEYS = (
    DifferingKey("it`em", "different", ("9", "a'b"), ROW, ("9", "a'b", None, "[1]")),
    DifferingKey("it`em", "extra", ("10", "\n; DROP"), None, ("10", "\n; DROP", "00", None)),
    DifferingKey("it`em", "missing", ("100", "\\"), ("100", "\\", None, None), None),
)
FOUND = Differing("m", (ITEM,), KEYS)


def ids(differing: Differing) -> list[str]:
    return [key.key[0] for key in differing.keys]


def test_keys_are_chosen_by_table_list_and_range() -> None:
    assert ids(chosen(FOUND, Choice(), "m")) == ["9", "10", "100"]
    assert ids(chosen(FOUND, Choice(("it`em",), ("9,a'b",)), "m")) == ["9"]
    between = Choice(("it`em",), (), ("9,b", "100,A"))
    assert ids(chosen(FOUND, between, "m")) == ["10"], "numbers as numbers, then text"
    other = Choice(("it`em",), ("09.0,a'b", "8,x"))
    assert ids(chosen(FOUND, other, "m")) == ["9"], "a number however it is written"
    assert not_differing(chosen(FOUND, other, "m"), other) == ["8,x"]


def test_keys_of_other_kinds_are_found_however_they_are_written() -> None:
    columns = (("ref", "uuid", "uuid"), ("at", "double", "float8"))
    table = replace(ITEM, key=("ref", "at"), columns=columns)
    keys = tuple(DifferingKey("it`em", "extra", ("ab-c", at), None, ("ab-c", at)) for at in ("NaN", "1e3"))
    found = Differing("m", (table,), keys)
    assert chosen(found, Choice(("it`em",), ("AB-C,nan",)), "m").keys == keys[:1]
    assert chosen(found, Choice(("it`em",), (), ("ab-c,-Infinity", "ab-c,1000")), "m").keys == keys[1:]


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (Choice(("other",)), "no such table"),
        (Choice((), ("9",)), "of one table"),
        (Choice(("it`em",), ("9,x",), ("1,a", "2,b")), "of one table"),
        (Choice(("it`em",), ("9",)), "isn't a key"),
        (Choice(("it`em",), (), ("nine,a", "10,b")), "no number"),
        (Choice(("it`em",), ("nine,a",)), "no number"),
        (Choice(("it`em",), ('9,"a',)), "isn't a key"),
        (Choice(("it`em",), (), ("10,a", "9,b")), "ends before it begins"),
    ],
)
def test_what_makes_no_sense_is_refused(choice: Choice, said: str) -> None:
    with pytest.raises(RequestError, match=said):
        chosen(FOUND, choice, "m")


def test_a_report_of_another_migration_is_refused() -> None:
    with pytest.raises(RequestError, match="another migration"):
        chosen(FOUND, Choice(), "n")


def report(folder: Path, document: dict[str, Any] | str, head: dict[str, Any] | None = None) -> Path:
    text = document if isinstance(document, str) else json.dumps(document)
    (folder / "verify.json").write_text(text)
    if head is not None:
        (folder / "keys").write_text(json.dumps(head) + "\n")
    return folder / "verify.json"


def binary(folder: Path) -> Path:
    (folder / "verify.json").write_bytes(b"\xd0\x00")
    return folder / "verify.json"


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda folder: report(folder, {"format": 1}), "doesn't name the keys"),
        (lambda folder: report(folder, "[]"), "no report"),
        (lambda folder: folder / "absent", "no report"),
        (lambda folder: report(folder, {"format": 2, "differing_file": "keys"}), "no report"),
        (
            lambda folder: report(folder, {"format": 2, "differing_file": "keys"}, {"format": 2}),
            "another format",
        ),
        (
            lambda folder: report(
                folder, {"format": 2, "differing_file": "keys"}, {"format": 1, "tables": [{"table": "t"}]}
            ),
            "no report",
        ),
        (binary, "no report"),
    ],
)
def test_a_report_that_cannot_be_used_is_refused_by_name(
    tmp_path: Path, made: Callable[[Path], Path], said: str
) -> None:
    with pytest.raises(VerifyError, match=said) as caught:
        read_differing(made(tmp_path))
    assert str(tmp_path) in caught.value.where


def test_a_report_holds_any_characters(tmp_path: Path) -> None:
    """Python's own lines also end at U+2028, at U+0085 and so on, which JSON doesn't escape."""
    odd = "a\u2028b\u2029c\x85d\x1ce\nf"
    head = {"format": 1, "migration": "m", "tables": [asdict(ITEM)]}
    line = {"table": "it`em", "status": "extra", "key": [odd, odd], "mapped": None, "target": [odd] * 4}
    (tmp_path / "keys").write_text(
        "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in (head, line))
    )
    (tmp_path / "verify.json").write_text('{"differing_file": "keys"}')
    found = read_differing(tmp_path / "verify.json")
    assert [key.key for key in found.keys] == [(odd, odd)]
    (key,) = planned_lines(found, [])[1:2]
    assert key.isprintable(), "a key can't end a line or move a terminal"


def test_statements_are_quoted_and_guarded(tmp_path: Path) -> None:
    assert write_fix_sql(FOUND, "postgresql", "s", tmp_path / "pg.sql") == 3
    lines = (tmp_path / "pg.sql").read_text().splitlines()
    assert (
        """UPDATE "s"."it`em" SET "raw" = E'\\\\xff', "doc" = '{}' WHERE "id" = '9' AND "place" = 'a''b'"""
        """ AND "raw" IS NOT DISTINCT FROM NULL;"""
    ) in lines
    assert "-- extra: it`em id=10, place= ; DROP" in lines, "a comment stays one"
    assert write_fix_sql(FOUND, "mysql", "", tmp_path / "my.sql") == 3
    text = (tmp_path / "my.sql").read_text()
    assert "UPDATE `it``em` SET `raw` = X'ff', `doc` = '{}' WHERE `id` = '9' AND `place` = 'a\\'b'" in text
    assert "INSERT INTO `it``em` (`id`, `place`, `raw`, `doc`) VALUES ('100', '\\\\', NULL, NULL)" in text
    assert "NO_AUTO_VALUE_ON_ZERO" in text, "a missing row 0 comes back as row 0"


def test_statements_hold_foreign_keys_and_no_character_that_clients_act_upon(tmp_path: Path) -> None:
    """`mysql` refuses a NUL even in a comment."""
    tables = tuple(replace(ITEM, table=name) for name in ("parent", "child"))
    keys = tuple(
        DifferingKey(name, status, ("1", "\0\u2028"), ROW, ROW)
        for name in ("parent", "child")
        for status in ("missing", "extra")
    )
    write_fix_sql(Differing("m", tables, keys), "mysql", "", tmp_path / "f", ("child", "parent"))
    text = (tmp_path / "f").read_text()
    assert "\0" not in text
    said = [line.split(": ")[0:2] for line in text.split("\n") if line.startswith("-- ") and "=" in line]
    assert [(status, rest.split()[0]) for status, rest in said] == [
        ("-- extra", "child"),
        ("-- extra", "parent"),
        ("-- missing", "parent"),
        ("-- missing", "child"),
    ]


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(VerifyError, match="can't be written") as caught:
        write_fix_sql(FOUND, "mysql", "", tmp_path / "absent" / "f.sql")
    assert "absent" in caught.value.where


def test_an_outcome_counts_what_was_to_be_repaired_and_what_is_left() -> None:
    step = RepairStep("it`em", (("9", "a'b"),), Way.LISTED, (TableId("s", "t"),), Scope(), 1)
    done = DumpRequest("r1", (TableId("s", "t"),), state=RequestState.DONE)
    right = Differing("m", (ITEM,), ())
    assert outcome(FOUND, [step], [done], right).exit_code() == 0
    other = DifferingKey("it`em", "extra", ("77", "z"), None, ROW)
    left = outcome(FOUND, [step], [done], Differing("m", (ITEM,), (KEYS[1], other)))
    assert (left.exit_code(), left.after, left.others) == (1, {"it`em": {"extra": 1}}, {"it`em": 1})
    assert any("still extra" in line for line in lines(left))
    failed = DumpRequest("r1", (TableId("s", "t"),), state=RequestState.FAILED, reason="too much")
    assert outcome(FOUND, [step], [failed], right).exit_code() == 3
    hot = DifferingTable("it`em", ITEM.key, ITEM.columns, 0, 0, "unknown")
    assert outcome(FOUND, [step], [done], Differing("m", (hot,), ())).exit_code() == 3
    cut = replace(ITEM, differ=5, listed=0)
    assert outcome(FOUND, [step], [done], Differing("m", (cut,), ())).exit_code() == 3, (
        "who knows which differ"
    )
