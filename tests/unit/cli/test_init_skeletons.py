"""Skeletons that ``migrator init`` writes: valid Python for any names, with types and suggestions, never finished."""

from __future__ import annotations

import ast
import random
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from migrator.cli import cli
from migrator.cli.init import project_text
from migrator.cli.init.project_text import mapping_text
from migrator.model.table import Column, TableId, TableSchema
from migrator.model.target import TargetColumn, TargetTable
from transforms.analysis.matched import Matched, guessed, matched
from transforms.analysis.suggested import likeliest, suggestions
from transforms.load import load_mapping
from transforms.registry import Mapping

ODD = [
    "a b", "a-b", "a_b", "1st", "class", "None", "flag", "mapping", "F", "gap", "DataFrame", "__debug__", "é", "ﬁ",
    "ﬁle", "²", 'quo"te', "quo'te", "'\"both\\", "new\nline", "carriage\r", "a\u2028b", "tab\t", "`tick`", "a.b", "*",
    "%s{x}", "日本", "select", "#", '"""', "\\", "a" * 200, "\u202ex", "instant", "mysql_date", "list", "test",
    "a\x0cb", "İ",
]  # fmt: skip


def old_table(name: str, *columns: str, key: str = "", types: str = "int64") -> TableSchema:
    made = tuple(Column(one, types, True, "bigint") for one in columns)
    return TableSchema(TableId("s", name), made, (key or columns[0],))


def new_table(name: str, *columns: str, kind: str = "bigint") -> TargetTable:
    made = tuple(
        TargetColumn(one, kind, kind, nullable=place > 0, has_default=False, generated=False)
        for place, one in enumerate(columns)
    )
    return TargetTable(TableId("s", name), made, (columns[0],))


def loaded(folder: Path, tables: list[Matched], left: list[TableSchema]) -> tuple[Mapping, str]:
    text = mapping_text(tables, {"gone\n)": "no\nkey"}, left, {"un\nread": "no\rkey"})
    file = folder / "mapping.py"
    file.write_text(text, encoding="utf-8")
    return load_mapping(file), text


def test_any_names_give_valid_code_that_means_these_names(tmp_path: Path) -> None:
    tables = []
    for place, name in enumerate(ODD):
        columns = [f"id{place}", *ODD]
        tables.append(matched(old_table(name, *columns), new_table(name, *columns, "more" + name), False))
    tables.append(
        guessed({"x\ny": old_table("x\ny", *ODD)}, {"x\ny"}, new_table("no such\n", *ODD, "q"), False)
    )
    left = [old_table(name, "id", *ODD) for name in ODD]
    mapping, text = loaded(tmp_path, tables, left)
    assert [one.name for one in mapping] == [*ODD, "no such\n"]
    assert [one.sources for one in mapping] == [*((name,) for name in ODD), ("x\ny",)]
    assert mapping.gaps.keys() == {"gone\n)", "no such\n"}
    functions = [one.name for one in ast.parse(text).body if isinstance(one, ast.FunctionDef)]
    assert len(functions) == len(set(functions)) == len(ODD) + 1
    tests = ast.parse(project_text.tests_text(tables))
    names = [one.name for one in tests.body if isinstance(one, ast.FunctionDef)]
    assert len(names) == len(set(names)) == len(ODD) + 1

    skeletons = text[text.index("# Old tables that nothing reads") :]
    code = "\n".join(re.findall(r"^# ((?:@mapping|def |    ).*)$", skeletons, flags=re.MULTILINE))
    again = Mapping()
    names_there = {"mapping": again, "DataFrame": object, "F": None}
    exec(compile(code, "skeletons", "exec"), names_there)
    assert [one.name for one in again] == ODD


def test_each_column_is_named_with_both_types_and_what_may_fill_it(tmp_path: Path) -> None:
    old = {
        "customer": old_table("customer", "customer_id", "name", "ownerid", "cust_nr", "mail"),
        "log": old_table("log", "id", "at"),
    }
    new = new_table("person", "person_id", "full_name", "owner_id", "cust_number", "email", "motto")
    made = guessed(old, set(old), new, False)
    mapping, text = loaded(tmp_path, [made], [old["log"]])
    assert made.source.id.name == "customer"
    for column, hint in {
        "person_id": "<- customer_id bigint?",
        "full_name": "<- name bigint?",
        "owner_id": "<- ownerid bigint",
        "cust_number": "<- cust_nr bigint?",
        "email": "<- mail bigint?",
    }.items():
        [line] = [line for line in text.splitlines() if f'gap("person", "{column}"' in line]
        assert hint in line
        assert ("?" in line) == hint.endswith("?")
        assert "# bigint" in line
    [line] = [line for line in text.splitlines() if '"motto"' in line]
    assert "<-" not in line
    assert mapping.gaps.items() >= {"person": "no old table has its name; from customer?"}.items()


def test_a_guess_that_fills_every_column_is_no_finished_function(tmp_path: Path) -> None:
    made = guessed(
        {"people": old_table("people", "id", "a")}, {"people"}, new_table("person", "id", "a"), False
    )
    mapping, _ = loaded(tmp_path, [made], [])
    assert not any(one.gap for one in made.columns)
    assert "person" in mapping.gaps


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        ("OwnerId", "owner_id", True),
        ("id", "customer_id", False),
        ("customer_id", "id", False),
        ("qty", "quantity", False),
        ("amount", "cents", None),
        ("note", "notes", False),
        ("a", "ab", None),
        ("straße", "STRASSE", True),
    ],
)
def test_names_and_what_they_suggest(new: str, old: str, expected: bool | None) -> None:
    source, target = old_table("customer", old), new_table("customer", new)
    found = suggestions(target, target.columns, source, [old], lambda _new, _old: True)
    assert (found[new].sure if new in found else None) == expected


def test_likeness_alone_asks_whether_the_type_becomes_that() -> None:
    """A name that is the same without its table's, in front, isn't only alike."""
    source = old_table("customer", "notes", "owner_id", "customer_name")
    target = new_table("customer", "note", "ownerid", "name")
    found = suggestions(target, target.columns, source, source.names(), lambda _new, _old: False)
    assert {name: one.column.name for name, one in found.items()} == {
        "ownerid": "owner_id",
        "name": "customer_name",
    }


def test_no_old_column_is_suggested_twice() -> None:
    choice = random.Random(7)
    words = ["id", "name", "owner", "date", "no", "addr", "address", "number"]
    for _ in range(200):
        names = {"_".join(choice.sample(words, choice.randint(1, 3))) for _ in range(8)}
        others = {"".join(choice.sample(words, choice.randint(1, 3))) for _ in range(8)}
        source, target = old_table("one", *sorted(names)), new_table("two", *sorted(others))
        found = suggestions(target, target.columns, source, source.names(), lambda _new, _old: True)
        taken = [one.column.name for one in found.values()]
        assert len(taken) == len(set(taken))


def test_of_tables_alike_one_that_nothing_reads_is_taken() -> None:
    tables = {name: old_table(name, "id", "x") for name in ("read", "free")}
    assert likeliest(new_table("zzz", "id", "x"), tables, {"free"}) == "free"


def test_what_git_ignores_is_added_to_and_a_second_init_changes_nothing(tmp_path: Path) -> None:
    ignored = tmp_path / ".gitignore"
    ignored.write_bytes(b"mine\n.env\nlast without an end")
    assert CliRunner().invoke(cli, ["init", str(tmp_path), "--name", "shop"]).exit_code == 0
    lines = ignored.read_text().splitlines()
    assert lines[:3] == ["mine", ".env", "last without an end"]
    assert lines.count(".env") == 1
    assert {".migrator/", ".venv/", "__pycache__/"} <= set(lines)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert CliRunner().invoke(cli, ["init", str(tmp_path), "--name", "shop"]).exit_code != 0
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    (tmp_path / "mapping.py").unlink()
    for name in ("migration.toml", "alembic.ini", "tests/test_mapping.py"):
        (tmp_path / name).unlink()
    for path in (tmp_path / "alembic").rglob("*.*"):
        path.unlink() if path.is_file() else None
    assert CliRunner().invoke(cli, ["init", str(tmp_path), "--name", "shop"]).exit_code == 0
    assert ignored.read_text().splitlines() == lines


def test_a_new_project_ignores_its_state(tmp_path: Path) -> None:
    assert CliRunner().invoke(cli, ["init", str(tmp_path / "shop")]).exit_code == 0
    assert ".migrator/" in (tmp_path / "shop" / ".gitignore").read_text().splitlines()
